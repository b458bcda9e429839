-- Inputs that documents are pulled from, what their owners store of them, and messages that became no document.
--
-- States and rejects know their consumer by its number, which is never used twice, and go with it in one
-- transaction: none of them is ever left over, or met by a consumer that gets the same id anew.

CREATE TABLE consumers (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    -- The id and no number: a consumer may be read when its resource has none any more.
    resource BLOB NOT NULL,
    generation INTEGER NOT NULL,
    record TEXT NOT NULL,
    needs INTEGER
) STRICT;

-- What an owner wrote last, and under which epoch: a lesser one does not write it any more.
CREATE TABLE consumer_states (
    consumer INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    state TEXT NOT NULL,
    needs INTEGER
) STRICT;

-- A message may be large: records lie by number, so that what finds them and puts them in order stays small.
CREATE TABLE rejects (
    n INTEGER PRIMARY KEY,
    consumer INTEGER NOT NULL,
    id BLOB NOT NULL,
    rejected INTEGER NOT NULL,
    record TEXT NOT NULL,
    needs INTEGER
) STRICT;
CREATE UNIQUE INDEX rejects_ids ON rejects (consumer, id);
CREATE INDEX rejects_list ON rejects (consumer, rejected, id);
