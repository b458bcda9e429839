-- Documents that are announced to those who listen, seventh version of the repository.

-- Has documents spread by the same commit, where the queue is in this schema; elsewhere the reconciler finds them. The
-- commit also says so on the channel that is called as the schema is, while somebody listens there.
CREATE OR REPLACE FUNCTION flare.announce(resources bigint[], urls text[], revisions bigint[], gone boolean[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(cardinality(urls), 0) = 0 OR to_regclass('flare.messages') IS NULL THEN
        RETURN;
    END IF;
    WITH q AS (SELECT q.n FROM flare.queues q WHERE q.name = 'partition' FOR KEY SHARE)
    INSERT INTO flare.messages (queue, at, attempt, payload)
        SELECT q.n, flare.now(), 0, convert_to('{"v":1,"task":"partition","resource":"' || i.id || '","documents":['
            || t.documents || ']}', 'UTF8')
        FROM q CROSS JOIN (SELECT d.resource, string_agg('{"url":' || to_json(d.url) || ',"version":{"revision":'
                || d.revision || ',"gone":' || d.gone || '}}', ',') AS documents
            FROM (SELECT u.*, (row_number() OVER (PARTITION BY u.resource) - 1) / 50 AS task
                FROM unnest(resources, urls, revisions, gone) u(resource, url, revision, gone)) d
            GROUP BY d.resource, d.task) t
        JOIN flare.resource_ids i ON i.n = t.resource;
    -- A queue that is not brought up to its second version has nobody to listen.
    IF to_regclass('flare.listening') IS NOT NULL THEN
        IF EXISTS (SELECT 1 FROM flare.listening l WHERE l.until > flare.now()) THEN
            PERFORM pg_notify(rtrim('flare.', '.'), 'partition');
        END IF;
    END IF;
END
$$;
