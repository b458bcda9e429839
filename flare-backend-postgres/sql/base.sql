-- What every part of Flare in a schema builds on.

-- Numbered changes that have run, of each part.
CREATE TABLE IF NOT EXISTS flare.migrations (
    part text NOT NULL,
    number integer NOT NULL,
    about text NOT NULL,
    ran_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (part, number)
);

-- The store's time: nanoseconds since 1970, by this server's clock.
CREATE OR REPLACE FUNCTION flare.now() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
    AS 'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000';
