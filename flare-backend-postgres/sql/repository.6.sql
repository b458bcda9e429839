-- The order in which a call makes and locks documents, sixth version of the repository: no transaction
-- waits for one that another makes while it has locked any that were there, so that no circle of waiting closes.

-- Writes a version each of some documents, no two of the same URL: live with its content, or gone, as of the revision that
-- is given or of the stored one. Says what came of each, and which revision was stored before. Others are the less
-- specific resources that match a URL, too: a document that is put leaves those, one that is deleted is deleted where it
-- is live.
--
-- Of several, those that are missing are made first, in the order of their keys; then the others are locked by their
-- number. So a call that waits for a document that another transaction makes has locked none that was there, and one that
-- waits for a lock wants none that is not made yet: no two of them wait for each other. Those that are there are kept from
-- being forgotten before any is made, else there might be one left to make in the end: that is in the way of removals
-- alone, and they wait for no lock. Where a document may have copies in several resources, all of them are locked at once,
-- so the missing ones get their names before that.
--
-- They are found by their indexes, however few there were when a session first planned it: of few, a plan is made once and
-- kept.
CREATE OR REPLACE FUNCTION flare.write_documents(resources uuid[], others text[], urls text[], revisions bigint[],
    contents bytea[], goes boolean[]) RETURNS TABLE (place bigint, change text, stored bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    shared boolean := cardinality(array_remove(others, NULL)) > 0;
    alone boolean := cardinality(urls) = 1;
    there boolean := alone;
    numbers bigint[];
    rest record;
    kept bigint[];
    missing record;
    done record;
    changed bigint[];
BEGIN
    -- Of many the plan is made anew: one that was made while a table was known to be empty may read all of it each time.
    IF cardinality(urls) > 20 THEN
        PERFORM set_config('plan_cache_mode', 'force_custom_plan', true);
    END IF;
    INSERT INTO flare.resource_ids (id) SELECT DISTINCT r.id FROM unnest(resources) r(id)
        WHERE NOT EXISTS (SELECT 1 FROM flare.resource_ids i WHERE i.id = r.id) ORDER BY r.id ON CONFLICT DO NOTHING;
    IF shared THEN
        LOOP
            -- A put needs the first of the copies, and a delete of a revision any that says something.
            SELECT array_agg(l.place) INTO kept FROM (
                SELECT c.place, c.rank, d.revision FROM flare.copies(resources, others, urls) c
                JOIN flare.documents d ON d.resource = c.resource AND d.hash = c.hash AND d.url = c.url
                ORDER BY d.n FOR KEY SHARE OF d) l
                WHERE l.rank = 1 OR goes[l.place] AND l.revision IS NOT NULL;
            SELECT array_agg(c.resource) AS resources, array_agg(c.hash) AS hashes, array_agg(c.url) AS urls INTO missing
                FROM flare.copies(resources, others, urls) c
                WHERE c.rank = 1 AND c.place <> ALL (coalesce(kept, '{}')) AND revisions[c.place] IS NOT NULL;
            EXIT WHEN missing.urls IS NULL;
            -- Those that another transaction made at the same moment are there the next time.
            INSERT INTO flare.documents (resource, hash, url, gone, updated, undispatched, dispatched_gone)
                SELECT m.*, 2, 0, false, 0 FROM unnest(missing.resources, missing.hashes, missing.urls) m(resource, hash, url)
                ORDER BY m.resource, m.hash, m.url ON CONFLICT ON CONSTRAINT documents_key DO NOTHING;
        END LOOP;
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
            -- One alone is looked for first: whoever did not find it has locked none.
            kept := '{}';
            IF NOT alone THEN
                SELECT array_agg(l.place) INTO kept FROM (
                    SELECT v.place FROM unnest(rest.places, rest.resources, rest.urls) v(place, resource, url)
                    JOIN flare.documents d ON d.resource = v.resource AND d.hash = hashtextextended(v.url, 0) AND d.url = v.url
                    ORDER BY d.n FOR KEY SHARE OF d) l;
            END IF;
            SELECT array_agg(v.place) AS places, array_agg(v.resource) AS resources, array_agg(v.url) AS urls,
                array_agg(v.revision) AS revisions, array_agg(v.content) AS contents, array_agg(v.goes) AS goes INTO missing
                FROM unnest(rest.places, rest.resources, rest.urls, rest.revisions, rest.contents, rest.goes)
                    v(place, resource, url, revision, content, goes)
                WHERE v.place <> ALL (coalesce(kept, '{}'));
            IF missing.places IS NULL THEN
                there := true;
                CONTINUE;
            END IF;
            done := flare.write_missing(missing.places, missing.resources, missing.urls, missing.revisions,
                missing.contents, missing.goes);
        END IF;
        RETURN QUERY SELECT * FROM unnest(done.answered, done.changes, done.stored);
        changed := changed || done.changed;
        EXIT WHEN cardinality(done.answered) = cardinality(rest.places);
        SELECT array_agg(v.place) AS places, array_agg(v.resource) AS resources, array_agg(v.url) AS urls,
            array_agg(v.revision) AS revisions, array_agg(v.content) AS contents, array_agg(v.goes) AS goes INTO rest
            FROM unnest(rest.places, rest.resources, rest.urls, rest.revisions, rest.contents, rest.goes)
                v(place, resource, url, revision, content, goes)
            WHERE v.place <> ALL (coalesce(done.answered, '{}'));
        -- Those that another transaction made at the same moment are there the next time.
        there := alone AND NOT there;
    END LOOP;
    IF shared AND changed IS NOT NULL THEN
        PERFORM flare.leave((SELECT array_agg(d.n) FROM flare.copies(resources, others, urls) c
            JOIN flare.documents d ON d.resource = c.resource AND d.hash = c.hash AND d.url = c.url
            WHERE c.place = ANY (changed) AND c.resource <> numbers[c.place] AND d.gone = 0 AND d.needs IS NULL));
    END IF;
END
$$;

-- The statement that gives the rows of a source, which says for each whether it goes, with their URLs: page by page of at
-- most 1,000 of them and about 8 MB. Documents that are missing come first, in the order in which they are made, then the
-- others, in the order in which they are locked.
CREATE OR REPLACE FUNCTION flare.pages(source text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format('SELECT array_agg(p.url) AS urls, array_agg(p.row_) AS rows_, array_agg(p.goes) AS goes, array_agg(p.twice) AS twice
        FROM (SELECT k.url, k.row_, k.goes, coalesce(lag(k.url) OVER keys = k.url, false) AS twice,
                (row_number() OVER keys - 1) / 1000 AS page,
                sum(pg_column_size(k.row_)) OVER (keys ROWS UNBOUNDED PRECEDING) / 8388608 AS bytes
            FROM (SELECT u.*, hashtextextended(u.url, 0) AS hash, (SELECT d.n FROM flare.documents d
                    WHERE d.resource = $4 AND d.hash = hashtextextended(u.url, 0) AND d.url = u.url) AS n
                FROM (SELECT flare.filled($1, $2, s.row_) AS url, s.row_, s.goes FROM (%s OFFSET 0) s(row_, goes) OFFSET 0) u
                OFFSET 0) k
            WINDOW keys AS (ORDER BY k.n NULLS FIRST, k.hash, k.url COLLATE "C", k.goes, k.row_ -> $3 DESC)) p
        GROUP BY p.page, p.bytes ORDER BY p.page, p.bytes', source)
$$;
