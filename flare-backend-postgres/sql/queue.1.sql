-- What Flare's queue keeps, first version.

CREATE TABLE flare.queues (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL CONSTRAINT queues_name UNIQUE
);

CREATE SEQUENCE flare.receipts;

-- Everything in it is short-lived, so it is vacuumed early and without pauses.
CREATE TABLE flare.messages (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue bigint NOT NULL REFERENCES flare.queues ON DELETE CASCADE,
    -- When it may be received, or comes back.
    at bigint NOT NULL,
    -- The receipt it is, or was last, out under.
    receipt bigint,
    attempt bigint NOT NULL,
    key text COLLATE "C",
    payload bytea NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX messages_at ON flare.messages (queue, at, n);
-- One that waits stands for all with its key.
CREATE UNIQUE INDEX messages_key ON flare.messages (queue, key) WHERE key IS NOT NULL AND receipt IS NULL;
