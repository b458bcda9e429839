-- Who is told of messages by NOTIFY, second version of the queue.

-- One row, once somebody listened: until when it is worth saying that there are messages. Whoever listens says so now and
-- then. A notice takes a lock of the whole database at its commit, so that nobody pays for one that nobody hears.
CREATE TABLE flare.listening (
    one boolean PRIMARY KEY CHECK (one),
    until bigint NOT NULL
) WITH (fillfactor = 50);
