-- What Flare's repository keeps, first version.
--
-- Records are known by integers: a row names its subscription and its document by a number each, and the
-- content of a document is in a table of its own, so that what changes with every delivery is small and lies
-- together. Numbers are never used twice.
--
-- Times are nanoseconds since 1970, by flare.now(). A version is a revision and whether the document is gone
-- in it. `needs`, in any record, is the format that a worker must know; without it, the first.
--
-- Tables that change with every delivery keep room in their pages and are vacuumed early and without pauses.

-- One row: what there is one of.
CREATE TABLE flare.store (
    one boolean PRIMARY KEY CHECK (one),
    epoch bigint NOT NULL,
    -- How often a resource changed: what is remembered of them in memory is good for as long as this stands.
    catalogue bigint NOT NULL
);
INSERT INTO flare.store VALUES (true, 0, 0);

CREATE TABLE flare.resource_ids (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL CONSTRAINT resource_ids_id UNIQUE
);

CREATE TABLE flare.subscription_ids (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL CONSTRAINT subscription_ids_id UNIQUE
);

CREATE TABLE flare.resources (
    id uuid PRIMARY KEY,
    record text NOT NULL,
    state text NOT NULL,
    -- The endpoint as it is compared with others; of a deleted one it is free.
    endpoint text COLLATE "C",
    needs integer
);
CREATE UNIQUE INDEX resources_endpoint ON flare.resources (endpoint) WHERE endpoint IS NOT NULL;

CREATE TABLE flare.subscriptions (
    id uuid PRIMARY KEY,
    resource uuid NOT NULL,
    partition bigint NOT NULL,
    generation bigint NOT NULL,
    status text NOT NULL,
    -- Whether it is told of changes: it is not deleting.
    told boolean NOT NULL,
    lanes bigint NOT NULL,
    -- What spread has to know beside: bit 0 that it is passive, bit 1 that it has a filter.
    marks smallint NOT NULL,
    -- Which of the slots its lanes are in, however many there are.
    slot_hash bigint NOT NULL,
    slot bigint,
    moving_from bigint,
    least_epoch bigint NOT NULL,
    left_at bigint,
    reason text,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    resumed bigint,
    spec text NOT NULL,
    needs integer
);
CREATE INDEX subscriptions_members ON flare.subscriptions (resource, partition, id) WHERE told;
CREATE INDEX subscriptions_list ON flare.subscriptions (resource, id) WHERE told;
CREATE INDEX subscriptions_slots ON flare.subscriptions (slot_hash, id);
-- Those that are in a slot of their own, or have yet to leave one.
CREATE INDEX subscriptions_placed ON flare.subscriptions (id) WHERE slot IS NOT NULL OR moving_from IS NOT NULL;

-- Who uses which url of those that are told. Known by a digest: a url may be longer than an index takes.
CREATE TABLE flare.subscription_urls (
    resource uuid NOT NULL,
    digest bytea NOT NULL,
    subscription uuid NOT NULL,
    PRIMARY KEY (resource, digest)
);
CREATE INDEX subscription_urls_of ON flare.subscription_urls (subscription);

-- How many sit in a partition, deleting ones included.
CREATE TABLE flare.partitions (
    resource uuid NOT NULL,
    number bigint NOT NULL,
    seats bigint NOT NULL,
    PRIMARY KEY (resource, number)
);

CREATE TABLE flare.lanes (
    subscription uuid NOT NULL,
    shard bigint NOT NULL,
    epoch bigint NOT NULL,
    state text NOT NULL,
    needs integer,
    PRIMARY KEY (subscription, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- `gone` is 0 of a live document, 1 of one that is gone, and 2 of none: rows name it.
CREATE TABLE flare.documents (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    resource bigint NOT NULL,
    hash bigint NOT NULL GENERATED ALWAYS AS (hashtextextended(url, 0)) STORED,
    url text COLLATE "C" NOT NULL,
    revision bigint,
    gone smallint NOT NULL,
    updated bigint NOT NULL,
    -- Derived from the versions: some of its rows may be missing.
    undispatched boolean NOT NULL,
    dispatched bigint,
    dispatched_gone smallint NOT NULL,
    open text,
    trace text,
    moved bytea,
    needs integer,
    CONSTRAINT documents_key UNIQUE (resource, hash, url)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);
-- A row's key names no resource.
CREATE INDEX documents_hash ON flare.documents (hash);
CREATE INDEX documents_undispatched ON flare.documents (updated, n) WHERE undispatched;
CREATE INDEX documents_tombstones ON flare.documents (updated, n) WHERE gone = 1 AND NOT undispatched;

CREATE TABLE flare.contents (
    document bigint PRIMARY KEY,
    content bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE flare.rows (
    subscription bigint NOT NULL,
    document bigint NOT NULL,
    wanted bigint NOT NULL,
    settled bigint,
    due bigint NOT NULL,
    since bigint NOT NULL,
    generation bigint NOT NULL,
    epoch bigint NOT NULL,
    round bigint NOT NULL,
    bucket integer NOT NULL,
    -- Which of the versions are gone (1 wanted, 2 settled, 4 given up, 8 attempted), and what the client
    -- holds (0 no, 16 maybe, 32 yes).
    state smallint NOT NULL,
    -- Derived from the versions: there is something left to tell.
    pending boolean NOT NULL,
    demanded boolean NOT NULL,
    attempts bigint NOT NULL,
    given_up bigint,
    attempted bigint,
    first_failure bigint,
    not_before bigint,
    -- A puller's claim, until when it holds, and what the client held when it was made.
    claim uuid,
    claim_until bigint,
    claim_held smallint,
    -- What is kept of a version that was given up, as JSON; what it is found by, and when that was.
    dead text,
    dead_id uuid,
    died bigint,
    needs integer,
    CONSTRAINT rows_key PRIMARY KEY (subscription, document)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX rows_of ON flare.rows (document);
CREATE INDEX rows_pending ON flare.rows (subscription, due, document) INCLUDE (bucket, since) WHERE pending;
CREATE INDEX rows_demanded ON flare.rows (subscription, due, document) WHERE pending AND demanded;

CREATE INDEX rows_dead ON flare.rows (subscription, died, dead_id) WHERE dead IS NOT NULL;
CREATE INDEX rows_dead_ids ON flare.rows (dead_id) WHERE dead_id IS NOT NULL;
CREATE INDEX rows_deaths ON flare.rows (died) WHERE dead IS NOT NULL;

CREATE TABLE flare.jobs (
    id uuid PRIMARY KEY,
    kind text NOT NULL,
    subject text NOT NULL,
    cursor text,
    epoch bigint NOT NULL,
    due bigint NOT NULL,
    created bigint NOT NULL,
    needs integer,
    CONSTRAINT jobs_subject UNIQUE (kind, subject)
);
CREATE INDEX jobs_due ON flare.jobs (due, id);

-- Which of these documents, by their places, an open transaction has made that is not this one. Nothing but its end
-- would tell, so each is made here, too, for as long as that takes no waiting; the caller takes that back.
CREATE FUNCTION flare.made_by_others(resources uuid[], urls text[]) RETURNS SETOF bigint
LANGUAGE plpgsql SET lock_timeout = '1ms' SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT k.i, r.n AS resource, k.url
        FROM unnest(resources, urls) WITH ORDINALITY k(resource, url, i) JOIN flare.resource_ids r ON r.id = k.resource
        WHERE NOT EXISTS (SELECT 1 FROM flare.documents d WHERE d.resource = r.n
            AND d.hash = hashtextextended(k.url, 0) AND d.url = k.url)
        ORDER BY r.n, hashtextextended(k.url, 0), k.url COLLATE "C"
    LOOP
        BEGIN
            INSERT INTO flare.documents (resource, url, gone, updated, undispatched, dispatched_gone)
            VALUES (wanted.resource, wanted.url, 2, 0, false, 0)
            ON CONFLICT ON CONSTRAINT documents_key DO NOTHING;
        EXCEPTION WHEN lock_not_available THEN
            RETURN NEXT wanted.i;
        END;
    END LOOP;
END
$$;
