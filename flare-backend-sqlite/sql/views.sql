-- For people: what is kept, with names instead of numbers. Nothing of Flare reads them.

DROP VIEW IF EXISTS documents_v;
CREATE VIEW documents_v AS
SELECT
    d.url AS url,
    lower(substr(hex(i.id), 1, 8) || '-' || substr(hex(i.id), 9, 4) || '-' || substr(hex(i.id), 13, 4)
        || '-' || substr(hex(i.id), 17, 4) || '-' || substr(hex(i.id), 21)) AS resource,
    d.revision AS revision,
    CASE d.gone WHEN 1 THEN 'gone' ELSE 'live' END AS state,
    strftime('%Y-%m-%dT%H:%M:%fZ', d.updated / 1e9, 'unixepoch') AS updated,
    CASE d.undispatched WHEN 1 THEN 'no' ELSE 'yes' END AS spread,
    CAST(c.content AS TEXT) AS content
FROM documents d
JOIN resource_ids i ON i.n = d.resource
LEFT JOIN contents c ON c.document = d.n
WHERE d.revision IS NOT NULL;

DROP VIEW IF EXISTS deliveries_v;
CREATE VIEW deliveries_v AS
SELECT
    lower(substr(hex(i.id), 1, 8) || '-' || substr(hex(i.id), 9, 4) || '-' || substr(hex(i.id), 13, 4)
        || '-' || substr(hex(i.id), 17, 4) || '-' || substr(hex(i.id), 21)) AS subscription,
    d.url AS url,
    CASE WHEN r.pending = 1 THEN 'pending' WHEN r.dead = 1 THEN 'dead letter' ELSE 'settled' END AS state,
    r.wanted AS wanted,
    r.settled AS settled,
    r.given_up AS given_up,
    CASE r.state >> 4 WHEN 0 THEN 'no' WHEN 1 THEN 'maybe' ELSE 'yes' END AS present,
    r.attempts AS attempts,
    strftime('%Y-%m-%dT%H:%M:%fZ', r.since / 1e9, 'unixepoch') AS since,
    CASE r.pending WHEN 1 THEN strftime('%Y-%m-%dT%H:%M:%fZ', r.due / 1e9, 'unixepoch') END AS due,
    json_extract(l.record, '$.lastError') AS last_error
FROM rows r
JOIN subscription_ids i ON i.n = r.subscription
JOIN documents d ON d.n = r.document
LEFT JOIN dead_letters l ON l.subscription = r.subscription AND l.document = r.document;

DROP VIEW IF EXISTS lag_v;
CREATE VIEW lag_v AS
SELECT
    lower(substr(hex(s.id), 1, 8) || '-' || substr(hex(s.id), 9, 4) || '-' || substr(hex(s.id), 13, 4)
        || '-' || substr(hex(s.id), 17, 4) || '-' || substr(hex(s.id), 21)) AS subscription,
    json_extract(s.spec, '$.endpoint.url') AS url,
    s.status AS status,
    (SELECT count(*) FROM rows r WHERE r.subscription = s.n AND r.pending = 1) AS pending,
    (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', min(r.since) / 1e9, 'unixepoch')
        FROM rows r WHERE r.subscription = s.n AND r.pending = 1) AS since,
    (SELECT count(*) FROM dead_letters l WHERE l.subscription = s.n) AS dead_letters
FROM subscriptions s
WHERE s.told = 1;
