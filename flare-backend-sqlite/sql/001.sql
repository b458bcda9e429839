-- What Flare keeps in a file, first version.
--
-- Records are known by integers: a row of `rows` names its subscription and its document by a number
-- of a byte or three each, and the content of a document is in a table of its own, so that what changes
-- with every delivery is small and lies together. Numbers of ids are never used twice.
--
-- Times are nanoseconds since 1970, by the store's clock. A version is a revision and whether the
-- document is gone in it. `needs`, in any record, is the format that a worker must know; without it, the
-- first.

-- One row: what there is one of.
CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- The store's clock: the time since the machine of this boot was started, and so much more.
    boot TEXT NOT NULL,
    ahead INTEGER NOT NULL,
    -- A time that was told lately, so that the clock does not go back over a restart of the machine.
    told INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    -- Numbers that are given out in blocks: of messages and of receipts.
    serial INTEGER NOT NULL,
    -- How often a number was forgotten, and how often a resource changed: what is remembered of them
    -- in memory is good for as long as these stand.
    forgotten INTEGER NOT NULL,
    catalogue INTEGER NOT NULL
) STRICT;
INSERT INTO store VALUES (1, '', 0, 0, 0, 0, 0, 0);

-- Who has the file open. A holder lives for as long as the file of that name beside the database is locked.
CREATE TABLE holders (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    boot TEXT NOT NULL,
    pid INTEGER NOT NULL,
    since INTEGER NOT NULL
) STRICT;

CREATE TABLE resource_ids (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE
) STRICT;

CREATE TABLE subscription_ids (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE
) STRICT;

-- Of which resources a subscription has rows: of one, its own.
CREATE TABLE subscription_resources (
    subscription INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    PRIMARY KEY (subscription, resource)
) STRICT, WITHOUT ROWID;

CREATE TABLE resources (
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    record TEXT NOT NULL,
    state TEXT NOT NULL,
    -- The endpoint as it is compared with others; of a deleted one it is free.
    endpoint TEXT,
    needs INTEGER
) STRICT;
CREATE UNIQUE INDEX resources_endpoint ON resources (endpoint) WHERE endpoint IS NOT NULL;

CREATE TABLE subscriptions (
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    resource INTEGER NOT NULL,
    partition INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    status TEXT NOT NULL,
    -- Whether it is told of changes: it is not deleting.
    told INTEGER NOT NULL,
    lanes INTEGER NOT NULL,
    -- What spread has to know beside: bit 0 that it is passive, bit 1 that it has a filter.
    marks INTEGER NOT NULL,
    -- Which of the slots its lanes are in, however many there are.
    slot_hash INTEGER NOT NULL,
    slot INTEGER,
    moving_from INTEGER,
    least_epoch INTEGER NOT NULL,
    left_at INTEGER,
    reason TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    resumed INTEGER,
    spec TEXT NOT NULL,
    needs INTEGER
) STRICT;
-- All that spread reads of a member.
CREATE INDEX subscriptions_members
    ON subscriptions (resource, partition, id, generation, status, lanes, slot, marks) WHERE told = 1;
CREATE INDEX subscriptions_list ON subscriptions (resource, id) WHERE told = 1;
CREATE INDEX subscriptions_slots ON subscriptions (slot_hash, id);
-- Those that are in a slot of their own, or have yet to leave one.
CREATE INDEX subscriptions_placed ON subscriptions (id) WHERE slot IS NOT NULL OR moving_from IS NOT NULL;

-- Who uses which url of those that are told.
CREATE TABLE subscription_urls (
    resource INTEGER NOT NULL,
    url TEXT NOT NULL,
    subscription INTEGER NOT NULL,
    PRIMARY KEY (resource, url)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscription_urls_of ON subscription_urls (subscription);

-- How many sit in a partition, deleting ones included.
CREATE TABLE partitions (
    resource INTEGER NOT NULL,
    number INTEGER NOT NULL,
    seats INTEGER NOT NULL,
    PRIMARY KEY (resource, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE lanes (
    subscription INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    state TEXT NOT NULL,
    needs INTEGER,
    PRIMARY KEY (subscription, shard)
) STRICT, WITHOUT ROWID;

-- `gone` is 0 of a live document, 1 of one that is gone, and 2 of none: rows name it.
CREATE TABLE documents (
    n INTEGER PRIMARY KEY,
    resource INTEGER NOT NULL,
    hash INTEGER NOT NULL,
    url TEXT NOT NULL,
    revision INTEGER,
    gone INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    -- Derived from the versions: some of its rows may be missing.
    undispatched INTEGER NOT NULL,
    dispatched INTEGER,
    dispatched_gone INTEGER NOT NULL,
    open TEXT,
    trace TEXT,
    moved BLOB,
    needs INTEGER
) STRICT;
-- By a hash of the URL: a quarter of the size that the URLs would have. What is live is counted in it.
CREATE INDEX documents_hash ON documents (resource, hash, gone);
CREATE INDEX documents_undispatched ON documents (updated) WHERE undispatched = 1;
CREATE INDEX documents_tombstones ON documents (updated) WHERE gone = 1 AND undispatched = 0;

CREATE TABLE contents (
    document INTEGER PRIMARY KEY,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE rows (
    subscription INTEGER NOT NULL,
    document INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    -- Derived from the versions: there is something left to tell.
    pending INTEGER NOT NULL,
    -- Which of the versions are gone (1 wanted, 2 settled, 4 given up, 8 attempted), and what the client
    -- holds (0 no, 16 maybe, 32 yes).
    state INTEGER NOT NULL,
    wanted INTEGER NOT NULL,
    settled INTEGER,
    due INTEGER NOT NULL,
    since INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    given_up INTEGER,
    attempted INTEGER,
    attempts INTEGER NOT NULL,
    first_failure INTEGER,
    round INTEGER NOT NULL,
    not_before INTEGER,
    demanded INTEGER NOT NULL,
    -- A puller's claim, until when it holds, and what the client held when it was made.
    claim BLOB,
    claim_until INTEGER,
    claim_held INTEGER,
    -- Whether there is a dead letter.
    dead INTEGER NOT NULL,
    needs INTEGER,
    PRIMARY KEY (subscription, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX rows_of ON rows (document);
CREATE INDEX rows_pending ON rows (subscription, due, document, bucket, since) WHERE pending = 1;
CREATE INDEX rows_demanded ON rows (subscription, due, document, bucket) WHERE pending = 1 AND demanded = 1;

CREATE TABLE dead_letters (
    subscription INTEGER NOT NULL,
    document INTEGER NOT NULL,
    id BLOB NOT NULL,
    died INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (subscription, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX dead_letters_list ON dead_letters (subscription, died, id);
CREATE INDEX dead_letters_ids ON dead_letters (id);
CREATE INDEX dead_letters_deaths ON dead_letters (died);

CREATE TABLE jobs (
    id BLOB PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    cursor TEXT,
    epoch INTEGER NOT NULL,
    due INTEGER NOT NULL,
    created INTEGER NOT NULL,
    needs INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_subject ON jobs (kind, subject);
CREATE INDEX jobs_due ON jobs (due);

CREATE TABLE queues (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE messages (
    n INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    -- When it may be received, or comes back.
    at INTEGER NOT NULL,
    -- The receipt it is, or was last, out under.
    receipt INTEGER,
    attempt INTEGER NOT NULL,
    key TEXT,
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX messages_at ON messages (queue, at);
CREATE INDEX messages_key ON messages (queue, key) WHERE key IS NOT NULL;

-- One row: how far the history of keys is, and from where on it is remembered.
CREATE TABLE lease_history (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL,
    forgotten INTEGER NOT NULL
) STRICT;
INSERT INTO lease_history VALUES (1, 0, 0);

-- `ends` is by the machine's own clock, which nobody can set.
CREATE TABLE leases (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    holder INTEGER NOT NULL,
    ttl INTEGER NOT NULL,
    ends INTEGER NOT NULL
) STRICT;

CREATE TABLE lease_keys (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL,
    created INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    lease INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_keys_of ON lease_keys (lease) WHERE lease IS NOT NULL;

-- What watches can resume over. Without a value the key was deleted.
CREATE TABLE lease_events (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    value BLOB,
    created INTEGER,
    lease INTEGER
) STRICT;
