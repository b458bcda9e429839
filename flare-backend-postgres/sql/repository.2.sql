-- Puts and deletes from plain SQL, second version of the repository: what Flare's Rust decides, said here again for
-- whoever has only a connection. Everything is in the transaction of the caller, and its commit tells clients.
--
-- They run as whoever set Flare up, and nobody else may call them until that is granted. Those that a host calls pin
-- the search path, for those that they call, too.

-- Whether a segment of a path may stand for a wildcard: its bytes are text.
CREATE FUNCTION flare.fits_wildcard(segment text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    bytes text;
BEGIN
    IF strpos(segment, '%') = 0 THEN
        RETURN true;
    END IF;
    -- A zero is text as any other, but not to this server.
    SELECT string_agg(CASE WHEN m.found[1] LIKE '\%%' THEN substr(m.found[1], 2)
            ELSE encode(convert_to(m.found[1], 'UTF8'), 'hex') END, '' ORDER BY m.i)
        INTO bytes
        FROM regexp_matches(replace(segment, '%00', '0'), '%[0-9A-F]{2}|[^%]', 'g')
            WITH ORDINALITY m(found, i);
    PERFORM convert_from(decode(bytes, 'hex'), 'UTF8');
    RETURN true;
EXCEPTION WHEN character_not_in_repertoire THEN
    RETURN false;
END
$$;

-- The resources of a host whose endpoints have so many segments: each segment of the pattern, and whether it is wild.
CREATE FUNCTION flare.endpoints(authority text, segments integer)
RETURNS TABLE (id uuid, field text, format text, needs integer, pattern text[], wild boolean[])
LANGUAGE sql STABLE AS $$
    SELECT r.id, CASE WHEN r.needs IS NULL THEN r.record::json #>> '{change,field}' END,
        CASE WHEN r.needs IS NULL THEN r.record::json #>> '{change,format}' END, r.needs, p.words,
        ARRAY(SELECT w.word LIKE '{%' OR (r.needs IS NOT NULL AND w.word = '*')
            FROM unnest(p.words) WITH ORDINALITY w(word, i) ORDER BY w.i)
    FROM flare.resources r CROSS JOIN LATERAL (SELECT string_to_array(substr(
        CASE WHEN r.needs IS NULL THEN r.record::json ->> 'endpoint' ELSE r.endpoint END,
        length(authority) + 2), '/') AS words) p
    -- All that begin with the host and a slash: a zero is what follows a slash.
    WHERE r.state = 'active' AND r.endpoint >= authority || '/' AND r.endpoint < authority || '0'
        AND cardinality(p.words) = segments
$$;

-- The resources that a URL matches, the most specific first.
CREATE FUNCTION flare.matching(url text) RETURNS TABLE (id uuid, field text, format text, needs integer)
LANGUAGE sql STABLE AS $$
    WITH u AS (SELECT parts[1] AS authority, string_to_array(parts[2], '/') AS segments
        FROM regexp_match(url, '^(https?://[^/]+)/(.+)$') p(parts))
    SELECT e.id, e.field, e.format, e.needs
    FROM u CROSS JOIN LATERAL flare.endpoints(u.authority, cardinality(u.segments)) e
    WHERE u.segments && ARRAY['', '.', '..'] IS NOT TRUE
        AND NOT EXISTS (SELECT 1 FROM unnest(e.pattern, e.wild, u.segments) s(word, wild, segment)
            WHERE NOT CASE WHEN s.wild THEN flare.fits_wildcard(s.segment) ELSE s.word = s.segment END)
    ORDER BY e.wild
$$;

-- Unix nanoseconds of a time as RFC 3339 writes it; none if it is no such time.
CREATE FUNCTION flare.instant(shown text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    p text[] := regexp_match(shown,
        '^([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))$');
    year integer := p[1];
    month integer := p[2];
    day integer := p[3];
    away integer := coalesce(p[9]::integer * 3600 + p[10]::integer * 60, 0);
    nanos numeric;
BEGIN
    IF p IS NULL OR year NOT BETWEEN 1677 AND 2262 OR month NOT BETWEEN 1 AND 12 OR day < 1
        OR p[4]::integer > 23 OR p[5]::integer > 59 OR p[6]::integer > 59
        OR coalesce(p[9]::integer, 0) > 23 OR coalesce(p[10]::integer, 0) > 59 THEN
        RETURN NULL;
    END IF;
    IF day > extract(day FROM make_date(year, month, 1) + interval '1 month' - interval '1 day') THEN
        RETURN NULL;
    END IF;
    nanos := (make_date(year, month, day) - date '1970-01-01')::numeric * 86400
        + p[4]::integer * 3600 + p[5]::integer * 60 + p[6]::integer
        - CASE p[8] WHEN '-' THEN -away ELSE away END;
    nanos := nanos * 1000000000 + rpad(left(coalesce(p[7], ''), 9), 9, '0')::integer;
    IF nanos NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
        RETURN NULL;
    END IF;
    RETURN nanos;
END
$$;

-- What is wrong with JSON that the server takes and Flare does not: half a surrogate pair, numbers beyond any float,
-- more than 127 levels.
CREATE FUNCTION flare.json_problem(content text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    bare text;
    digits text[];
BEGIN
    IF content ~ '\\u[dD]' THEN
        bare := regexp_replace(replace(content, '\\', ' '),
            '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}', ' ', 'g');
        IF bare ~ '\\u[dD][89a-fA-F]' THEN
            RETURN 'document is not well-formed JSON: half of a surrogate pair';
        END IF;
    END IF;
    -- A number begins the text of a value, a digit in a string does not.
    IF content !~ '[,[\s:]-?[0-9.]+[eE][+]?[0-9]{3}|[0-9]{200}'
        AND octet_length(content) - octet_length(translate(content, '{[', '')) <= 127 THEN
        RETURN NULL;
    END IF;
    bare := regexp_replace(content, '"(?:[^"\\]|\\.)*"', '""', 'g');
    IF 127 < (SELECT max(deep) FROM (SELECT sum(CASE WHEN b.bracket IN ('{', '[') THEN 1 ELSE -1 END) OVER (ORDER BY b.i)
            FROM unnest(string_to_array(regexp_replace(bare, '[^][{}]', '', 'g'), NULL)) WITH ORDINALITY b(bracket, i))
            depth(deep)) THEN
        RETURN 'document is nested deeper than 127 levels';
    END IF;
    FOR digits IN SELECT regexp_matches(bare, '-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?', 'g') LOOP
        -- The place of the first digit that is not zero, counted from the point.
        IF (digits[1] || coalesce(digits[2], '')) ~ '[1-9]' AND 309 <= coalesce(digits[3]::numeric, 0)
            + length(digits[1]) - length(substring(digits[1] || coalesce(digits[2], '') FROM '^0*')) THEN
            IF coalesce(digits[3]::numeric, 0) > 100000 OR (digits[1] || coalesce('.' || digits[2], ''))::numeric
                >= 1.797693134862315807e308 / power(10::numeric, coalesce(digits[3]::numeric, 0)) THEN
                RETURN 'document is not well-formed JSON: a number is out of range';
            END IF;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- A revision, or what is wrong with it.
CREATE TYPE flare.reading AS (revision bigint, problem text);

-- The revision that a value of JSON is, by the rule of a resource.
CREATE FUNCTION flare.read_revision(kind text, shown text, field text, format text) RETURNS flare.reading
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    nanos numeric;
    scale numeric := CASE format WHEN 'unix' THEN 1000000000 WHEN 'unix-ms' THEN 1000000 ELSE 1 END;
BEGIN
    IF kind NOT IN ('string', 'number') OR (format = 'rfc3339' AND kind = 'number') THEN
        RETURN (NULL::bigint, format('%s must be %s, found %s', field,
            CASE format WHEN 'rfc3339' THEN 'a string' ELSE 'an integer or a string holding one' END, kind));
    END IF;
    IF format = 'rfc3339' THEN
        nanos := flare.instant(shown);
        RETURN (nanos::bigint, CASE WHEN nanos IS NULL
            THEN format('%s: %s: no time of RFC 3339 between 1677 and 2262', field, to_json(left(shown, 64))) END);
    END IF;
    IF shown !~ '^-?[0-9]+$' THEN
        RETURN (NULL::bigint, format('%s: %s: not a decimal integer', field, to_json(left(shown, 64))));
    END IF;
    nanos := CASE WHEN length(ltrim(shown, '-0')) < 20 THEN shown::numeric * scale END;
    IF nanos IS NULL OR nanos NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
        RETURN (NULL::bigint, format('%s: %s out of range of 64 bits', field, left(shown, 64)));
    END IF;
    RETURN (nanos::bigint, NULL::text);
END
$$;

-- The revision of a document, by the rule of its resource.
CREATE FUNCTION flare.revision_of(content text, field text, format text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    -- Keys with a zero in them are no text to this server.
    here json := CASE WHEN strpos(content, '\u0000') = 0 THEN content
        ELSE regexp_replace(content, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END;
    steps text[] := CASE WHEN field = '/' THEN ARRAY[''] WHEN field LIKE '/%' THEN string_to_array(substr(field, 2), '/')
        ELSE ARRAY[field] END;
    step text;
    times bigint;
    found text;
    read flare.reading;
    problem text;
BEGIN
    IF json_typeof(here) <> 'object' THEN
        RAISE EXCEPTION 'document must be a JSON object, found %', json_typeof(here)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    problem := flare.json_problem(content);
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOREACH step IN ARRAY steps LOOP
        IF field LIKE '/%' THEN
            step := replace(replace(step, '~1', '/'), '~0', '~');
        END IF;
        times := 0;
        IF json_typeof(here) = 'object' THEN
            SELECT count(*), min(e.value::text) INTO times, found FROM json_each(here) e WHERE e.key = step;
        ELSIF json_typeof(here) = 'array' AND field LIKE '/%' AND step ~ '^(0|[1-9][0-9]{0,8})$' THEN
            found := here -> step::integer;
            times := CASE WHEN found IS NULL THEN 0 ELSE 1 END;
        END IF;
        IF times <> 1 THEN
            RAISE EXCEPTION '% is %', field, CASE times WHEN 0 THEN 'missing' ELSE 'repeated' END
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        here := found;
    END LOOP;
    read := flare.read_revision(json_typeof(here), here #>> '{}', field, format);
    IF read.problem IS NOT NULL THEN
        RAISE EXCEPTION '%', read.problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN read.revision;
END
$$;

-- The copies that the resources of documents may have: their own, and those of less specific ones that match, too.
CREATE FUNCTION flare.copies(resources uuid[], others text[], urls text[])
RETURNS TABLE (place bigint, rank bigint, resource bigint, hash bigint, url text)
LANGUAGE sql STABLE AS $$
    SELECT u.place, c.rank, i.n, hashtextextended(u.url, 0), u.url
    FROM unnest(resources, others, urls) WITH ORDINALITY u(resource, others, url, place)
    CROSS JOIN LATERAL unnest(u.resource || coalesce(u.others, '{}')::uuid[]) WITH ORDINALITY c(id, rank)
    JOIN flare.resource_ids i ON i.id = c.id
$$;

-- Has documents spread by the same commit, where the queue is in this schema; elsewhere the reconciler finds them.
CREATE FUNCTION flare.announce(resources bigint[], urls text[], revisions bigint[], gone boolean[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(urls) > 0 AND to_regclass('flare.messages') IS NOT NULL THEN
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
    END IF;
END
$$;

-- Makes documents gone in resources that they have left, whose clients are told of it.
CREATE FUNCTION flare.leave(documents bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    told record;
BEGIN
    IF documents IS NULL THEN
        RETURN;
    END IF;
    WITH d AS (UPDATE flare.documents d SET gone = 1, updated = flare.now(), undispatched = true, trace = NULL,
            open = NULL, moved = NULL
        WHERE d.n = ANY (documents) RETURNING d.resource, d.url, d.revision)
    SELECT array_agg(d.resource) AS resources, array_agg(d.url) AS urls, array_agg(d.revision) AS revisions,
        array_agg(true) AS gone INTO told FROM d;
    PERFORM flare.announce(told.resources, told.urls, told.revisions, told.gone);
END
$$;

-- Locks all copies of documents, and finishes the moves between them that are noted.
CREATE FUNCTION flare.finish_moves(resources uuid[], others text[], urls text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    noted bigint[];
    former bigint[];
    told record;
BEGIN
    SELECT array_agg(l.n) FILTER (WHERE l.moved IS NOT NULL AND l.needs IS NULL) INTO noted FROM (
        SELECT d.n, d.moved, d.needs FROM flare.copies(resources, others, urls) c
        JOIN flare.documents d ON d.resource = c.resource AND d.hash = c.hash AND d.url = c.url
        ORDER BY d.n FOR NO KEY UPDATE OF d) l;
    IF noted IS NULL THEN
        RETURN;
    END IF;
    -- One from a resource that is not among them is left to the reconciler.
    SELECT array_agg(d.n), array_agg(o.n) FILTER (WHERE o.gone = 0 AND o.needs IS NULL
            AND d.moved = uuid_send(i.id) || int8send(o.revision) || '\x00'::bytea)
        INTO noted, former
        FROM flare.documents d JOIN flare.copies(resources, others, urls) c ON c.hash = d.hash AND c.url = d.url
        JOIN flare.resource_ids i ON i.n = c.resource AND uuid_send(i.id) = substr(d.moved, 1, 16)
        LEFT JOIN flare.documents o ON o.resource = c.resource AND o.hash = c.hash AND o.url = c.url
        WHERE d.n = ANY (noted);
    WITH d AS (UPDATE flare.documents d SET moved = NULL WHERE d.n = ANY (noted) AND d.n <> ALL (coalesce(former, '{}'))
        RETURNING d.resource, d.url, d.revision, d.gone = 1 AS gone)
    SELECT array_agg(d.resource) AS resources, array_agg(d.url) AS urls, array_agg(d.revision) AS revisions,
        array_agg(d.gone) AS gone INTO told FROM d;
    PERFORM flare.leave(former);
    PERFORM flare.announce(told.resources, told.urls, told.revisions, told.gone);
END
$$;

-- Writes a version each of documents that are there: live with its content, or gone. Gives those it found, with what
-- came of them: created, updated, unchanged, stale, deleted, or newer of what a newer version of Flare wrote.
CREATE FUNCTION flare.write_found(places bigint[], resources bigint[], urls text[], revisions bigint[],
    contents bytea[], goes boolean[], OUT answered bigint[], OUT changes text[], OUT stored bigint[], OUT changed bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    moment bigint := flare.now();
    told record;
BEGIN
    WITH l AS MATERIALIZED (
        SELECT v.place, v.asked, v.content, v.goes, d.n, d.resource, d.url, d.revision, d.gone, d.undispatched,
            d.dispatched, d.dispatched_gone, d.moved, d.needs
        FROM unnest(places, resources, urls, revisions, contents, goes) v(place, resource, url, asked, content, goes)
        JOIN flare.documents d ON d.resource = v.resource AND d.hash = hashtextextended(v.url, 0) AND d.url = v.url
        ORDER BY d.n FOR NO KEY UPDATE OF d),
    -- What SPEC's table of puts and deletes says; a document without a revision is only a name.
    x AS MATERIALIZED (
        SELECT l.*, coalesce(l.asked, l.revision) AS target, CASE
            WHEN l.needs IS NOT NULL THEN 'newer'
            WHEN l.revision IS NULL THEN CASE WHEN l.goes THEN 'unchanged' ELSE 'created' END
            WHEN NOT l.goes THEN CASE
                WHEN l.asked > l.revision THEN CASE l.gone WHEN 0 THEN 'updated' ELSE 'created' END
                WHEN l.asked = l.revision AND l.gone = 0 THEN 'unchanged' ELSE 'stale' END
            WHEN l.asked < l.revision THEN 'stale'
            WHEN l.gone = 0 THEN 'deleted' ELSE 'unchanged' END AS change,
            l.needs IS NULL AND (coalesce(l.asked > l.revision, l.revision IS NULL AND l.asked IS NOT NULL)
                OR (l.goes AND l.gone = 0 AND coalesce(l.asked >= l.revision, true))) AS stores
        FROM l),
    -- A tombstone nobody is told of needs no spreading.
    y AS MATERIALIZED (SELECT x.*, x.change = 'unchanged' AND (x.revision IS NULL OR NOT x.undispatched) AS silent FROM x),
    written AS (UPDATE flare.documents d SET revision = y.target, gone = y.goes::integer, updated = moment,
            undispatched = NOT y.silent, trace = NULL, open = NULL,
            dispatched = CASE WHEN y.silent THEN y.target ELSE y.dispatched END,
            dispatched_gone = CASE WHEN y.silent THEN 1 ELSE y.dispatched_gone END,
            moved = CASE WHEN NOT y.silent THEN y.moved END
        FROM y WHERE d.n = y.n AND y.stores),
    kept AS (INSERT INTO flare.contents AS c (document, content) SELECT y.n, y.content FROM y
            WHERE y.stores AND y.content IS NOT NULL
        ON CONFLICT (document) DO UPDATE SET content = excluded.content)
    SELECT array_agg(y.place) AS answered, array_agg(y.change) AS changes, array_agg(y.revision) AS stored,
        array_agg(y.place) FILTER (WHERE y.change IN ('created', 'updated', 'deleted')) AS changed,
        -- One that has yet to leave another resource is announced by the reconciler, once it has.
        array_agg(y.resource) FILTER (WHERE y.stores AND NOT y.silent AND y.moved IS NULL) AS resources,
        array_agg(y.url) FILTER (WHERE y.stores AND NOT y.silent AND y.moved IS NULL) AS urls,
        array_agg(y.target) FILTER (WHERE y.stores AND NOT y.silent AND y.moved IS NULL) AS revisions,
        array_agg(y.goes) FILTER (WHERE y.stores AND NOT y.silent AND y.moved IS NULL) AS gone
        INTO told FROM y;
    answered := told.answered;
    changes := told.changes;
    stored := told.stored;
    changed := told.changed;
    PERFORM flare.announce(told.resources, told.urls, told.revisions, told.gone);
END
$$;

-- The same of documents that are not there; gives those that nobody else made meanwhile.
CREATE FUNCTION flare.write_missing(places bigint[], resources bigint[], urls text[], revisions bigint[],
    contents bytea[], goes boolean[], OUT answered bigint[], OUT changes text[], OUT stored bigint[], OUT changed bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    moment bigint := flare.now();
    made bigint[];
    told record;
BEGIN
    WITH d AS (INSERT INTO flare.documents AS d (resource, url, revision, gone, updated, undispatched, dispatched,
            dispatched_gone)
        SELECT v.resource, v.url, v.revision, v.goes::integer, moment, NOT v.goes, CASE WHEN v.goes THEN v.revision END,
            v.goes::integer
        FROM unnest(resources, urls, revisions, goes) v(resource, url, revision, goes) WHERE v.revision IS NOT NULL
        ORDER BY v.resource, hashtextextended(v.url, 0), v.url
        ON CONFLICT ON CONSTRAINT documents_key DO NOTHING RETURNING d.n)
    SELECT array_agg(d.n) INTO made FROM d;
    WITH v AS MATERIALIZED (SELECT v.*, d.n
        FROM unnest(places, resources, urls, revisions, contents, goes) v(place, resource, url, revision, content, goes)
        LEFT JOIN flare.documents d ON v.revision IS NOT NULL AND d.resource = v.resource
            AND d.hash = hashtextextended(v.url, 0) AND d.url = v.url AND d.n + 0 = ANY (made)
        -- A delete of nothing, of no revision, leaves nothing.
        WHERE v.revision IS NULL OR d.n IS NOT NULL),
    kept AS (INSERT INTO flare.contents (document, content) SELECT v.n, v.content FROM v WHERE v.content IS NOT NULL)
    SELECT array_agg(v.place) AS answered, array_agg(CASE WHEN v.goes THEN 'unchanged' ELSE 'created' END) AS changes,
        array_agg(v.place) FILTER (WHERE NOT v.goes) AS changed,
        array_agg(v.resource) FILTER (WHERE NOT v.goes) AS resources, array_agg(v.url) FILTER (WHERE NOT v.goes) AS urls,
        array_agg(v.revision) FILTER (WHERE NOT v.goes) AS revisions, array_agg(v.goes) FILTER (WHERE NOT v.goes) AS gone
        INTO told FROM v;
    answered := told.answered;
    changes := told.changes;
    changed := told.changed;
    PERFORM flare.announce(told.resources, told.urls, told.revisions, told.gone);
END
$$;

-- Writes a version each of some documents, no two of the same URL: live with its content, or gone, as of the revision that
-- is given or of the stored one. Says what came of each, and which revision was stored before. Others are the less
-- specific resources that match a URL, too: a document that is put leaves those, one that is deleted is deleted where it
-- is live.
--
-- Documents are locked by their number and new ones made in the order of their keys, as by all of Flare. They are found by
-- their indexes, however few there were when a session first planned it: of few, a plan is made once and kept.
CREATE FUNCTION flare.write_documents(resources uuid[], others text[], urls text[], revisions bigint[], contents bytea[],
    goes boolean[]) RETURNS TABLE (place bigint, change text, stored bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    shared boolean := cardinality(array_remove(others, NULL)) > 0;
    numbers bigint[];
    rest record;
    done record;
    changed bigint[];
    there boolean := true;
BEGIN
    -- Of many the plan is made anew: one that was made while a table was known to be empty may read all of it each time.
    IF cardinality(urls) > 20 THEN
        PERFORM set_config('plan_cache_mode', 'force_custom_plan', true);
    END IF;
    INSERT INTO flare.resource_ids (id) SELECT DISTINCT r.id FROM unnest(resources) r(id)
        WHERE NOT EXISTS (SELECT 1 FROM flare.resource_ids i WHERE i.id = r.id) ORDER BY r.id ON CONFLICT DO NOTHING;
    IF shared THEN
        PERFORM flare.finish_moves(resources, others, urls);
        -- A delete is for where the document is live, else where its tombstone is, else where a put would store it.
        SELECT array_agg(t.resource ORDER BY t.place) INTO numbers FROM (
            SELECT DISTINCT ON (c.place) c.place, c.resource FROM flare.copies(resources, others, urls) c
            LEFT JOIN flare.documents d ON d.resource = c.resource AND d.hash = c.hash AND d.url = c.url
            ORDER BY c.place, (goes[c.place] AND d.gone = 0) DESC NULLS LAST,
                (goes[c.place] AND d.revision IS NOT NULL) DESC, c.rank) t;
    ELSE
        SELECT array_agg(i.n ORDER BY r.place) INTO numbers FROM unnest(resources) WITH ORDINALITY r(id, place)
            JOIN flare.resource_ids i ON i.id = r.id;
    END IF;
    SELECT array_agg(p.place ORDER BY p.place) AS places, numbers AS resources, write_documents.urls,
        write_documents.revisions, write_documents.contents, write_documents.goes
        INTO rest FROM generate_subscripts(urls, 1) p(place);
    LOOP
        IF there THEN
            done := flare.write_found(rest.places, rest.resources, rest.urls, rest.revisions, rest.contents, rest.goes);
        ELSE
            done := flare.write_missing(rest.places, rest.resources, rest.urls, rest.revisions, rest.contents, rest.goes);
        END IF;
        RETURN QUERY SELECT * FROM unnest(done.answered, done.changes, done.stored);
        changed := changed || done.changed;
        EXIT WHEN cardinality(done.answered) = cardinality(rest.places);
        SELECT array_agg(v.place) AS places, array_agg(v.resource) AS resources, array_agg(v.url) AS urls,
            array_agg(v.revision) AS revisions, array_agg(v.content) AS contents, array_agg(v.goes) AS goes INTO rest
            FROM unnest(rest.places, rest.resources, rest.urls, rest.revisions, rest.contents, rest.goes)
                v(place, resource, url, revision, content, goes)
            WHERE v.place <> ALL (coalesce(done.answered, '{}'));
        -- Those that are not there are made; those that another transaction made at the same moment are found then.
        there := NOT there;
    END LOOP;
    IF shared AND changed IS NOT NULL THEN
        PERFORM flare.leave((SELECT array_agg(d.n) FROM flare.copies(resources, others, urls) c
            JOIN flare.documents d ON d.resource = c.resource AND d.hash = c.hash AND d.url = c.url
            WHERE c.place = ANY (changed) AND c.resource <> numbers[c.place] AND d.gone = 0 AND d.needs IS NULL));
    END IF;
END
$$;

-- The resource of a URL that is to be written, after what is wrong with the URL.
CREATE FUNCTION flare.resource_for(url text, OUT id uuid, OUT field text, OUT format text, OUT others uuid[])
LANGUAGE plpgsql STABLE AS $$
DECLARE
    m record;
BEGIN
    IF url IS NULL OR url = '' OR octet_length(url) > 2048 THEN
        RAISE EXCEPTION 'url must be 1 to 2,048 bytes long' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Whether the host is written as it should be shows when it is compared.
    IF url !~ '^https?://[^/?#@]+/(?:[A-Za-z0-9._~!$&''()*+,;=:@/-]|%[0-9A-F]{2})+$'
        OR url ~ '%(?:4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A]|3[0-9]|2D|2E|5F|7E)' THEN
        RAISE EXCEPTION 'url % must be in normal form: http or https, a host in lower case, a path; no user, default port, query or fragment; upper-case escapes, and only where they are needed',
            to_json(left(url, 200)) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR m IN SELECT * FROM flare.matching(url) LOOP
        IF id IS NOT NULL THEN
            others := others || m.id;
            CONTINUE;
        END IF;
        IF m.needs IS NOT NULL THEN
            RAISE EXCEPTION 'the resource of % was written by a newer version of Flare', url USING ERRCODE = '0A000';
        END IF;
        id := m.id;
        field := m.field;
        format := m.format;
    END LOOP;
    IF id IS NULL THEN
        RAISE EXCEPTION '% matches the endpoint of no resource', url USING ERRCODE = 'no_data_found';
    END IF;
END
$$;

-- Writes a version of one document, and says what came of it.
CREATE FUNCTION flare.write_document(resource uuid, others uuid[], url text, revision bigint, content text, gone boolean)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    change text;
BEGIN
    SELECT w.change INTO change FROM flare.write_documents(ARRAY[resource], ARRAY[others::text], ARRAY[url], ARRAY[revision],
        ARRAY[convert_to(content, 'UTF8')], ARRAY[gone]) w;
    IF change = 'newer' THEN
        RAISE EXCEPTION 'the document % was written by a newer version of Flare', url USING ERRCODE = '0A000';
    END IF;
    RETURN change;
END
$$;

-- Puts a document: created, updated, unchanged or stale. A revision that is given must be the one in the content; of
-- a resource with a format it is in Unix nanoseconds.
CREATE FUNCTION flare.put(url text, content text, revision bigint DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    r record;
    read bigint;
BEGIN
    r := flare.resource_for(url);
    IF coalesce(r.format, 'unix') NOT IN ('unix', 'unix-ms', 'rfc3339') THEN
        RAISE EXCEPTION 'the resource of % has revisions in the layout %: put it through Flare, SQL reads integers, unix, unix-ms and rfc3339',
            url, to_json(r.format) USING ERRCODE = '0A000';
    END IF;
    IF content IS NULL THEN
        RAISE EXCEPTION 'document must be a JSON object, found nothing' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    read := flare.revision_of(content, r.field, r.format);
    IF revision <> read THEN
        RAISE EXCEPTION 'revision % is not that of the document, %', revision, read
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN flare.write_document(r.id, r.others, url, read, content, false);
END
$$;

-- Puts a document that Flare has read already: whose it is and, in a layout, which revision it has are its to say.
CREATE FUNCTION flare.put_read(resource uuid, url text, content text, revision bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    r record;
    problem text;
BEGIN
    IF resource IS NULL OR content IS NULL OR revision IS NULL THEN
        RAISE EXCEPTION 'resource, content and revision must be given' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    r := flare.resource_for(url);
    IF r.id <> resource THEN
        RAISE EXCEPTION '% is the document of another resource by now: prepare it again', url USING ERRCODE = '40001';
    END IF;
    IF coalesce(r.format, 'unix') IN ('unix', 'unix-ms', 'rfc3339') THEN
        RETURN flare.put(url, content, revision);
    END IF;
    problem := CASE WHEN json_typeof(content::json) <> 'object'
        THEN 'document must be a JSON object, found ' || json_typeof(content::json) ELSE flare.json_problem(content) END;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN flare.write_document(r.id, r.others, url, revision, content, false);
END
$$;

-- The same of a value of the server's own, as it writes it.
CREATE FUNCTION flare.put(url text, content jsonb, revision bigint DEFAULT NULL) RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT flare.put(url, content::text, revision)
$$;

-- Deletes a document where it is stored, as of the revision that is given or of the stored one: deleted, unchanged or
-- stale.
CREATE FUNCTION flare.delete(url text, revision bigint DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    r record;
BEGIN
    r := flare.resource_for(url);
    RETURN flare.write_document(r.id, r.others, url, revision, NULL, true);
END
$$;

REVOKE ALL ON FUNCTION flare.fits_wildcard(text), flare.endpoints(text, integer), flare.matching(text),
    flare.instant(text), flare.json_problem(text), flare.read_revision(text, text, text, text),
    flare.revision_of(text, text, text), flare.copies(uuid[], text[], text[]),
    flare.announce(bigint[], text[], bigint[], boolean[]), flare.leave(bigint[]),
    flare.finish_moves(uuid[], text[], text[]),
    flare.write_found(bigint[], bigint[], text[], bigint[], bytea[], boolean[]),
    flare.write_missing(bigint[], bigint[], text[], bigint[], bytea[], boolean[]),
    flare.write_documents(uuid[], text[], text[], bigint[], bytea[], boolean[]), flare.resource_for(text),
    flare.write_document(uuid, uuid[], text, bigint, text, boolean), flare.put_read(uuid, text, text, bigint),
    flare.put(text, text, bigint), flare.put(text, jsonb, bigint), flare.delete(text, bigint) FROM PUBLIC;
