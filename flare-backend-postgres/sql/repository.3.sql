-- Tables of the host's own whose rows are documents, third version of the repository: triggers put and delete what a
-- statement changed, in the transaction that changed it.

-- Which tables are watched, and how a row becomes a document.
CREATE TABLE flare.watches (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The table: it may be renamed, and a copy of the database names it, too.
    watched regclass NOT NULL CONSTRAINT watches_table UNIQUE,
    resource uuid NOT NULL,
    -- The URL of a row's document, with columns in braces; and what is around these, one text more than columns.
    url text NOT NULL,
    literals text[] NOT NULL,
    columns text[] NOT NULL,
    -- The column with the revision, and where and how the resource looks for it.
    revision text NOT NULL,
    field text NOT NULL,
    format text,
    on_error text NOT NULL,
    -- Rejects that are not kept any more.
    forgotten bigint NOT NULL DEFAULT 0
);

-- Rows that could not become documents, while the host's write went on. Those of a watch that has ended stay for a while.
CREATE TABLE flare.rejects (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    watch bigint NOT NULL,
    at bigint NOT NULL,
    url text,
    reason text NOT NULL,
    -- The beginning of the row, as JSON.
    excerpt text
);
CREATE INDEX rejects_of ON flare.rejects (watch, n);

-- What is watched, with the number of rejects that there were.
CREATE VIEW flare.watching AS SELECT w.n, w.watched, w.resource, w.url, w.revision, w.on_error,
    w.forgotten + (SELECT count(*) FROM flare.rejects r WHERE r.watch = w.n) AS rejected FROM flare.watches w;

-- A value as one segment of a path.
CREATE FUNCTION flare.escaped(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(CASE WHEN c.one ~ '[A-Za-z0-9._~-]' THEN c.one
        ELSE regexp_replace(upper(encode(convert_to(c.one, 'UTF8'), 'hex')), '(..)', '%\1', 'g') END, '' ORDER BY c.i)
    FROM unnest(string_to_array(value, NULL)) WITH ORDINALITY c(one, i)
$$;

-- The URL of a row: its columns, and what is around them; none if a column is null.
CREATE FUNCTION flare.filled(literals text[], columns text[], row_ jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    url text := literals[1];
    value text;
BEGIN
    FOR i IN 1 .. cardinality(columns) LOOP
        value := row_ ->> columns[i];
        IF value !~ '^[A-Za-z0-9._~-]*$' THEN
            value := flare.escaped(value);
        END IF;
        url := url || value || literals[i + 1];
    END LOOP;
    RETURN url;
END
$$;

-- A row as JSON, or why the server cannot write it so, as a JSON string. It writes nothing, so it costs no transaction id.
CREATE FUNCTION flare.row_or_reason(row_ anyelement) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN to_jsonb(row_);
EXCEPTION WHEN OTHERS THEN
    IF flare.is_of_the_server(SQLSTATE) THEN
        RAISE;
    END IF;
    RETURN to_jsonb(SQLERRM);
END
$$;

-- Whether an error is nothing to do with a row, so that the host hears of it: it lost a race, or the server is in need.
-- An error without a name of its own (XX000) is what the server says of a value that is too large for it.
CREATE FUNCTION flare.is_of_the_server(code text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT left(code, 2) IN ('40', '53', '55', '57', '58') OR code IN ('XX001', 'XX002')
$$;

-- Keeps what could not become a document; the last 10,000 of a watch, and up to 1,000 more.
CREATE FUNCTION flare.reject(watch bigint, urls text[], reasons text[], excerpts text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    oldest bigint;
    many bigint;
BEGIN
    INSERT INTO flare.rejects (watch, at, url, reason, excerpt)
        SELECT reject.watch, flare.now(), left(u.url, 2048), left(u.reason, 1000), u.excerpt
        FROM unnest(urls, reasons, excerpts) u(url, reason, excerpt);
    SELECT r.n INTO oldest FROM flare.rejects r WHERE r.watch = reject.watch ORDER BY r.n DESC OFFSET 11000 LIMIT 1;
    -- Another transaction that forgets them now does not have to be waited for.
    IF oldest IS NULL OR (EXISTS (SELECT 1 FROM flare.watches w WHERE w.n = reject.watch)
        AND NOT EXISTS (SELECT 1 FROM flare.watches w WHERE w.n = reject.watch FOR NO KEY UPDATE SKIP LOCKED)) THEN
        RETURN;
    END IF;
    WITH d AS (DELETE FROM flare.rejects r WHERE r.watch = reject.watch AND r.n <= (SELECT r.n FROM flare.rejects r
        WHERE r.watch = reject.watch ORDER BY r.n DESC OFFSET 10000 LIMIT 1) RETURNING 1)
    SELECT count(*) INTO many FROM d;
    UPDATE flare.watches w SET forgotten = w.forgotten + many WHERE w.n = reject.watch;
END
$$;

-- The resources that rows of a watch are documents of, the most specific first; and whether that holds for all rows,
-- because every column stands where each of these has a wildcard.
CREATE FUNCTION flare.matching_rows(url text, OUT resources uuid[], OUT all_rows boolean)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    WITH u AS (SELECT parts[1] AS authority, string_to_array(parts[2], '/') AS segments
        FROM regexp_match(url, '^(https?://[^/{]+)/(.+)$') p(parts))
    SELECT array_agg(e.id ORDER BY e.wild), coalesce(bool_and(NOT EXISTS (
            SELECT 1 FROM unnest(e.wild, u.segments) s(wild, segment) WHERE s.segment LIKE '%{%' AND NOT s.wild)), false)
        INTO resources, all_rows
        FROM u CROSS JOIN LATERAL flare.endpoints(u.authority, cardinality(u.segments)) e
        WHERE NOT EXISTS (SELECT 1 FROM unnest(e.pattern, e.wild, u.segments) s(word, wild, segment)
            WHERE NOT CASE WHEN s.segment LIKE '%{%' THEN true WHEN s.wild THEN flare.fits_wildcard(s.segment)
                ELSE s.word = s.segment END);
END
$$;

-- Puts and deletes the documents of some rows, each of them once. What is wrong with one of them is found without an error,
-- so that it costs the others nothing.
CREATE FUNCTION flare.tell(w flare.watches, resources uuid[], all_rows boolean, urls text[], rows_ jsonb[], goes boolean[],
    twice boolean[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    host integer := length(substring(w.url FROM '^https?://[^/]+'));
    good record;
    bad record;
BEGIN
    WITH a AS MATERIALIZED (
        SELECT u.url, u.row_, u.goes, u.twice,
            CASE WHEN all_rows THEN resources ELSE ARRAY(SELECT m.id FROM flare.matching(u.url) m) END AS matching,
            CASE WHEN u.goes OR jsonb_typeof(u.row_) <> 'object' THEN NULL WHEN w.field = w.revision THEN u.row_::text
                WHEN u.row_ ? w.field THEN (u.row_ || jsonb_build_object(w.field, u.row_ -> w.revision))::text
                ELSE '{' || to_json(w.field) || ': ' || coalesce((u.row_ -> w.revision)::text, 'null') || ', '
                    || substr(u.row_::text, 2) END AS content,
            CASE WHEN w.format IS NULL AND u.row_ ->> w.revision ~ '^-?[0-9]{1,18}$'
                THEN (u.row_ ->> w.revision)::bigint END AS revision
        FROM unnest(urls, rows_, goes, twice) u(url, row_, goes, twice)
        -- No row was a document whose URL lacked a column.
        WHERE u.url IS NOT NULL OR NOT u.goes),
    b AS MATERIALIZED (
        SELECT a.*, CASE WHEN a.revision IS NULL AND a.content IS NOT NULL THEN flare.read_revision(coalesce(
                jsonb_typeof(a.row_ -> w.revision), 'nothing'), a.row_ ->> w.revision, w.field, w.format) END AS read
        FROM a),
    c AS MATERIALIZED (
        SELECT b.url, b.row_, b.goes, b.content,
            CASE WHEN NOT b.goes THEN coalesce(b.revision, (b.read).revision) END AS revision,
            b.matching[1] AS resource, CASE WHEN cardinality(b.matching) > 1 THEN b.matching[2:]::text END AS others, CASE
            WHEN jsonb_typeof(b.row_) <> 'object' THEN 'the row cannot be written as JSON: ' || (b.row_ #>> '{}')
            WHEN b.url IS NULL THEN format('a column of %s is null', w.url)
            WHEN octet_length(b.url) > 2048 THEN 'url must be 1 to 2,048 bytes long'
            WHEN b.twice THEN 'another row of the statement has the same URL'
            WHEN CASE WHEN all_rows THEN substr(b.url, host + 1) ~ '/\.{0,2}(?:/|$)' ELSE b.matching = '{}' END
                THEN format('%s matches the endpoint of no resource', b.url)
            -- A document is put where the watch says; it is deleted where it is.
            WHEN NOT b.goes AND b.matching[1] <> w.resource
                THEN format('%s is the document of another resource than the watch is about', b.url)
            WHEN NOT b.goes AND (b.read).problem IS NOT NULL THEN (b.read).problem
            -- As the server writes it a number has no exponent, and no text is half a surrogate pair.
            WHEN octet_length(b.content) > 250 AND (b.content ~ '[0-9]{200}'
                OR octet_length(b.content) - octet_length(translate(b.content, '{[', '')) > 127)
                THEN flare.json_problem(b.content) END AS problem
        FROM b WHERE NOT (b.goes AND b.twice))
    SELECT array_agg(c.url) FILTER (WHERE c.problem IS NULL) AS urls,
        array_agg(c.resource) FILTER (WHERE c.problem IS NULL) AS resources,
        array_agg(c.others) FILTER (WHERE c.problem IS NULL) AS others,
        array_agg(c.revision) FILTER (WHERE c.problem IS NULL) AS revisions,
        array_agg(convert_to(c.content, 'UTF8')) FILTER (WHERE c.problem IS NULL) AS contents,
        array_agg(c.goes) FILTER (WHERE c.problem IS NULL) AS goes,
        array_agg(c.url) FILTER (WHERE c.problem IS NOT NULL) AS bad_urls,
        array_agg(c.problem) FILTER (WHERE c.problem IS NOT NULL) AS reasons,
        array_agg(left(c.row_::text, 1000)) FILTER (WHERE c.problem IS NOT NULL) AS excerpts
        INTO good FROM c;
    IF good.reasons IS NOT NULL THEN
        IF w.on_error = 'raise' THEN
            RAISE EXCEPTION '%', good.reasons[1] USING ERRCODE = 'invalid_parameter_value', DETAIL = good.excerpts[1];
        END IF;
        PERFORM flare.reject(w.n, good.bad_urls, good.reasons, good.excerpts);
    END IF;
    IF good.urls IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(r.place) AS places, array_agg(CASE r.change
            WHEN 'newer' THEN 'the document was written by a newer version of Flare'
            ELSE format('stale: the document is, or was deleted, at revision %s, and %s is not above it', r.stored,
                good.revisions[r.place]) END) AS reasons INTO bad
        FROM flare.write_documents(good.resources, good.others, good.urls, good.revisions, good.contents, good.goes) r
        WHERE r.change IN ('stale', 'newer');
    IF bad.places IS NOT NULL THEN
        IF w.on_error = 'raise' THEN
            RAISE EXCEPTION '%', bad.reasons[1]
                USING ERRCODE = 'invalid_parameter_value', DETAIL = good.urls[bad.places[1]];
        END IF;
        PERFORM flare.reject(w.n, array_agg(good.urls[b.place]), array_agg(b.reason),
                array_agg(left(convert_from(good.contents[b.place], 'UTF8'), 1000)))
            FROM unnest(bad.places, bad.reasons) b(place, reason);
    END IF;
END
$$;

-- The statement that gives the rows of a source, which says for each whether it goes, with their URLs: page by page of at
-- most 1,000 of them and about 8 MB, in the order in which documents are locked.
CREATE FUNCTION flare.pages(source text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format('SELECT array_agg(p.url) AS urls, array_agg(p.row_) AS rows_, array_agg(p.goes) AS goes, array_agg(p.twice) AS twice
        FROM (SELECT k.url, k.row_, k.goes, coalesce(lag(k.url) OVER keys = k.url, false) AS twice,
                (row_number() OVER keys - 1) / 1000 AS page,
                sum(pg_column_size(k.row_)) OVER (keys ROWS UNBOUNDED PRECEDING) / 8388608 AS bytes
            FROM (SELECT u.*, hashtextextended(u.url, 0) AS hash, (SELECT d.n FROM flare.documents d
                    WHERE d.resource = $4 AND d.hash = hashtextextended(u.url, 0) AND d.url = u.url) AS n
                FROM (SELECT flare.filled($1, $2, s.row_) AS url, s.row_, s.goes FROM (%s OFFSET 0) s(row_, goes) OFFSET 0) u
                OFFSET 0) k
            WINDOW keys AS (ORDER BY k.n NULLS LAST, k.hash, k.url COLLATE "C", k.goes, k.row_ -> $3 DESC)) p
        GROUP BY p.page, p.bytes ORDER BY p.page, p.bytes', source)
$$;

-- What the triggers of a watched table do. Says nothing of an error that is a row's own, unless it is to be raised. Pages
-- are made one after the other, never all at once.
CREATE FUNCTION flare.watched() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_hashagg = off SET jit = off AS $$
DECLARE
    w flare.watches;
    number bigint;
    matched record;
    source text;
    names text;
    as_json text;
    page record;
    pages refcursor;
    failed text;
BEGIN
    SELECT * INTO w FROM flare.watches t WHERE t.n = TG_ARGV[0]::bigint;
    IF NOT FOUND THEN
        failed := format('there is no watch %s any more of %s: flare.watch makes another, flare.unwatch removes the triggers',
            TG_ARGV[0], TG_RELID::regclass);
        IF TG_ARGV[1] = 'raise' THEN
            RAISE EXCEPTION '%', failed USING ERRCODE = 'object_not_in_prerequisite_state';
        END IF;
        PERFORM flare.reject(TG_ARGV[0]::bigint, ARRAY[NULL], ARRAY[failed], ARRAY[NULL]);
        RETURN NULL;
    END IF;
    -- First as if nothing could go wrong; then with an eye on each row that the server is to write as JSON.
    FOREACH as_json IN ARRAY ARRAY['to_jsonb', 'flare.row_or_reason'] LOOP
        BEGIN
            matched := flare.matching_rows(w.url);
            SELECT i.n INTO number FROM flare.resource_ids i WHERE i.id = w.resource;
            IF TG_OP = 'UPDATE' THEN
                -- A row whose URL changed is another document: the former one is deleted, unless a row has it now.
                SELECT string_agg(format('o.%1$I::text COLLATE "C" = r.%1$I::text COLLATE "C"', c), ' AND ')
                    INTO names FROM unnest(w.columns) c;
                source := format('SELECT %1$s(r), false FROM flare_rows r UNION ALL SELECT %1$s(o), true FROM flare_old o
                    WHERE NOT EXISTS (SELECT 1 FROM flare_rows r WHERE %2$s)', as_json, names);
            ELSE
                -- A table is read before it is emptied: nobody else has it open.
                source := format('SELECT %s(r), %L::boolean FROM %s r', as_json, TG_OP <> 'INSERT',
                    CASE TG_OP WHEN 'TRUNCATE' THEN TG_RELID::regclass::text ELSE 'flare_rows' END);
            END IF;
            OPEN pages NO SCROLL FOR EXECUTE flare.pages(source) USING w.literals, w.columns, w.revision, number;
            LOOP
                FETCH pages INTO page;
                EXIT WHEN NOT FOUND;
                PERFORM flare.tell(w, matched.resources, matched.all_rows, page.urls, page.rows_,
                    page.goes, page.twice);
            END LOOP;
            CLOSE pages;
            RETURN NULL;
        EXCEPTION WHEN OTHERS THEN
            IF w.on_error = 'raise' OR flare.is_of_the_server(SQLSTATE) THEN
                RAISE;
            END IF;
            failed := SQLERRM;
        END;
    END LOOP;
    PERFORM flare.reject(w.n, ARRAY[NULL], ARRAY[format('%s, all rows of the statement: %s', TG_OP, failed)], ARRAY[NULL]);
    RETURN NULL;
END
$$;

-- Has the rows of a table be documents from now on: each at the URL that the template makes of its columns, with the
-- revision of a column. Those that are there are put when they next change.
CREATE FUNCTION flare.watch(watched regclass, resource uuid, url text, revision text, on_error text DEFAULT 'reject')
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
    event text;
    r record;
    made bigint;
    literals text[] := string_to_array(regexp_replace(url, '\{[^{}]+\}', E'\n', 'g'), E'\n');
    columns text[] := ARRAY(SELECT m[1] FROM regexp_matches(url, '\{([^{}]+)\}', 'g') m);
BEGIN
    IF on_error NOT IN ('reject', 'raise') THEN
        RAISE EXCEPTION 'on_error must be reject or raise, not %', on_error USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF strpos(url, E'\n') > 0 OR url !~ '^[^{}]*//[^{}/]+/.*\{' THEN
        RAISE EXCEPTION 'url % must have columns in its path', to_json(url) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOREACH name IN ARRAY columns || revision LOOP
        PERFORM 1 FROM pg_attribute a WHERE a.attrelid = watch.watched AND a.attname = name AND a.attnum > 0
            AND NOT a.attisdropped;
        IF NOT FOUND THEN
            RAISE EXCEPTION '% has no column %', watched, name USING ERRCODE = 'undefined_column';
        END IF;
    END LOOP;
    r := flare.resource_for(array_to_string(literals, 'x'));
    IF r.id <> resource THEN
        RAISE EXCEPTION 'url % makes documents of resource %, not %', url, r.id, resource
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF r.field LIKE '/%' OR coalesce(r.format, 'unix') NOT IN ('unix', 'unix-ms', 'rfc3339') THEN
        RAISE EXCEPTION 'resource % has its revision at % as %: a table needs a key of the document itself, and integers, unix, unix-ms or rfc3339',
            resource, r.field, coalesce(r.format, 'an integer') USING ERRCODE = '0A000';
    END IF;
    PERFORM flare.unwatch(watched);
    INSERT INTO flare.watches AS w (watched, resource, url, literals, columns, revision, field, format, on_error)
        VALUES (watch.watched, watch.resource, watch.url, literals, columns, watch.revision, r.field, r.format, watch.on_error)
        RETURNING w.n INTO made;
    FOR name, event IN SELECT * FROM (VALUES
        ('flare_insert', 'AFTER INSERT ON %s REFERENCING NEW TABLE AS flare_rows'),
        ('flare_update', 'AFTER UPDATE ON %s REFERENCING NEW TABLE AS flare_rows OLD TABLE AS flare_old'),
        ('flare_delete', 'AFTER DELETE ON %s REFERENCING OLD TABLE AS flare_rows'),
        ('flare_truncate', 'BEFORE TRUNCATE ON %s')) t(name, event)
    LOOP
        EXECUTE format('CREATE TRIGGER %I ' || event || ' FOR EACH STATEMENT EXECUTE FUNCTION flare.watched(%L, %L)',
            name, watched, made, on_error);
    END LOOP;
    RETURN made;
END
$$;

-- Ends it; what was put stays. Says whether the table was watched. Rejects of watches that have ended are kept up to
-- 10,000 of all of them.
CREATE FUNCTION flare.unwatch(watched regclass) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
    was boolean;
BEGIN
    -- A copy of a table may have the triggers and no watch.
    FOR name IN SELECT t.tgname FROM pg_trigger t WHERE t.tgrelid = unwatch.watched AND NOT t.tgisinternal
        AND t.tgfoid = 'flare.watched()'::regprocedure LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', name, watched);
    END LOOP;
    DELETE FROM flare.watches w WHERE w.watched = unwatch.watched;
    was := FOUND;
    DELETE FROM flare.rejects r WHERE r.n <= (SELECT r.n FROM flare.rejects r
            WHERE NOT EXISTS (SELECT 1 FROM flare.watches w WHERE w.n = r.watch) ORDER BY r.n DESC OFFSET 10000 LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM flare.watches w WHERE w.n = r.watch);
    RETURN was;
END
$$;

REVOKE ALL ON FUNCTION flare.escaped(text), flare.filled(text[], text[], jsonb), flare.row_or_reason(anyelement),
    flare.is_of_the_server(text), flare.reject(bigint, text[], text[], text[]), flare.matching_rows(text),
    flare.tell(flare.watches, uuid[], boolean, text[], jsonb[], boolean[], boolean[]), flare.pages(text), flare.watched(),
    flare.watch(regclass, uuid, text, text, text), flare.unwatch(regclass) FROM PUBLIC;
