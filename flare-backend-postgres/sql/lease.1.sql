-- What Flare's leases keep, first version.

-- One row: how far the history of keys is, and from where on it is remembered.
CREATE TABLE flare.lease_history (
    one boolean PRIMARY KEY CHECK (one),
    revision bigint NOT NULL,
    forgotten bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO flare.lease_history VALUES (true, 0, 0);

CREATE TABLE flare.leases (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ttl bigint NOT NULL,
    ends bigint NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE flare.lease_keys (
    key text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL,
    created bigint NOT NULL,
    revision bigint NOT NULL,
    lease bigint
);
CREATE INDEX lease_keys_of ON flare.lease_keys (lease) WHERE lease IS NOT NULL;

-- What watches can resume over. Without a value the key was deleted.
CREATE TABLE flare.lease_events (
    revision bigint PRIMARY KEY,
    key text COLLATE "C" NOT NULL,
    value bytea,
    created bigint,
    lease bigint
);
