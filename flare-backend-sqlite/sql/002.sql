-- Who has a message out: should that process die, others need not wait for the message's time.
ALTER TABLE messages ADD COLUMN holder INTEGER;
CREATE INDEX messages_holder ON messages (holder) WHERE holder IS NOT NULL;
