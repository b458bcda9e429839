//! What the queues keep, and the indexes their questions need.

use crate::schema::{CollectionSpec, IndexSpec, Only};

pub(crate) const QUEUES: &str = "queues";
pub(crate) const MESSAGES: &str = "messages";

/// A message: `{_id, queue, at, payload, attempt}`, with times in nanoseconds of the server's
/// clock. `at` is when it may be received, or comes back. `receipt` says who has it; `key` (with the
/// queue in front) which messages say the same; `absorbs` is that key while the message waits and
/// no other absorbs.
pub(crate) const COLLECTIONS: &[CollectionSpec] = &[
    CollectionSpec { name: QUEUES, holds: "which queues there are", indexes: &[] },
    CollectionSpec {
        name: MESSAGES,
        holds: "messages that were sent and are not settled",
        indexes: &[
            IndexSpec {
                name: "due",
                keys: &["queue", "at", "receipt"],
                unique: false,
                only: Only::All,
                answers: "what may be received, which queues have any of it, and how much is there",
            },
            IndexSpec {
                name: "absorbs",
                keys: &["absorbs"],
                unique: true,
                only: Only::Having("absorbs"),
                answers: "which waiting message absorbs those with its key",
            },
        ],
    },
];
