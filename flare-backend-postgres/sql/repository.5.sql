-- Inputs that documents are pulled from, fifth version of the repository: what each consumer is, what its owner stored of
-- it, and its messages that became no document.

-- Settings, mapping and status are JSON text: what a newer version put there stays. What the owner stores lies beside
-- it, so that storing it and removing the consumer are each one change of one record.
CREATE TABLE flare.consumers (
    id uuid PRIMARY KEY,
    resource uuid NOT NULL,
    generation bigint NOT NULL,
    record text NOT NULL,
    -- What its owner stored last, and under which epoch; neither is there until an owner has.
    epoch bigint,
    state text,
    needs integer
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Messages that became no document. Those who write or remove them have locked their consumer's record before, so that a
-- consumer that is removed leaves none.
CREATE TABLE flare.consumer_rejects (
    consumer uuid NOT NULL REFERENCES flare.consumers ON DELETE CASCADE,
    id uuid NOT NULL,
    rejected bigint NOT NULL,
    record text NOT NULL,
    needs integer,
    PRIMARY KEY (consumer, id)
);
CREATE INDEX consumer_rejects_rejected ON flare.consumer_rejects (consumer, rejected, id);
