-- What operators and nodes did, eighth version of the repository. The record is JSON text: who, what, and how often.

CREATE TABLE flare.audit (
    id uuid PRIMARY KEY,
    at bigint NOT NULL,
    subject text COLLATE "C" NOT NULL,
    record text NOT NULL,
    needs integer
);
CREATE INDEX audit_subjects ON flare.audit (subject, id);
