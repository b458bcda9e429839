-- What operators and nodes did. The record is JSON text: who, what, and how often.

CREATE TABLE audit (
    id BLOB PRIMARY KEY,
    at INTEGER NOT NULL,
    subject TEXT NOT NULL,
    record TEXT NOT NULL,
    needs INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_subjects ON audit (subject, id);
-- Jobs are listed by their id, which is what they are found by already.
