//! What the repository keeps, and the indexes its questions need.

use crate::schema::{CollectionSpec, IndexSpec, Only};

pub(crate) const RESOURCES: &str = "resources";
pub(crate) const SUBSCRIPTIONS: &str = "subscriptions";
pub(crate) const PARTITIONS: &str = "partitions";
pub(crate) const DOCUMENTS: &str = "documents";
pub(crate) const ROWS: &str = "rows";
pub(crate) const LANES: &str = "lanes";
pub(crate) const JOBS: &str = "jobs";
pub(crate) const CONSUMERS: &str = "consumers";
pub(crate) const REJECTS: &str = "rejects";
pub(crate) const AUDIT: &str = "audit";
pub(crate) const COUNTERS: &str = "counters";

/// How many segments of an endpoint's path the index tells apart; the rest is compared afterwards.
pub(crate) const INDEXED_SEGMENTS: usize = 6;

pub(crate) const COLLECTIONS: &[CollectionSpec] = &[
    CollectionSpec {
        name: RESOURCES,
        holds: "kinds of documents",
        indexes: &[
            IndexSpec {
                name: "endpoint",
                keys: &["endpoint"],
                unique: true,
                only: Only::Having("endpoint"),
                answers: "no two resources have conflicting endpoints",
            },
            IndexSpec {
                name: "match",
                keys: &["origin", "length", "s0", "s1", "s2", "s3", "s4", "s5"],
                unique: false,
                only: Only::True("active"),
                answers: "which resource does a document belong to",
            },
            IndexSpec {
                name: "active",
                keys: &["active", "_id"],
                unique: false,
                only: Only::True("active"),
                answers: "which resources are there",
            },
        ],
    },
    CollectionSpec {
        name: SUBSCRIPTIONS,
        holds: "clients' wishes",
        indexes: &[
            IndexSpec {
                name: "urls",
                keys: &["resource", "urls"],
                unique: true,
                only: Only::True("told"),
                answers: "no two subscriptions of a resource share a url",
            },
            IndexSpec {
                name: "members",
                keys: &["resource", "told", "partition", "generation", "status", "lanes", "_id"],
                unique: false,
                only: Only::All,
                answers: "which partitions does a resource have, and who sits in one",
            },
            IndexSpec {
                name: "list",
                keys: &["resource", "told", "_id"],
                unique: false,
                only: Only::All,
                answers: "which subscriptions does a resource have",
            },
            IndexSpec {
                name: "slots",
                keys: &["slotHash", "_id"],
                unique: false,
                only: Only::All,
                answers: "whose lanes are in some slots",
            },
            IndexSpec {
                name: "reserved",
                keys: &["slot"],
                unique: false,
                only: Only::Having("slot"),
                answers: "whose lanes are in a slot that is reserved for them",
            },
            IndexSpec {
                name: "leaving",
                keys: &["movingFrom"],
                unique: false,
                only: Only::Having("movingFrom"),
                answers: "whose lanes have yet to leave a slot",
            },
        ],
    },
    CollectionSpec {
        name: PARTITIONS,
        holds: "how many seats of each partition are taken",
        indexes: &[],
    },
    CollectionSpec {
        name: DOCUMENTS,
        holds: "the newest version of each document",
        indexes: &[
            IndexSpec {
                name: "undispatched",
                keys: &["undispatched", "_id.resource", "updatedAt"],
                unique: false,
                only: Only::True("undispatched"),
                answers: "which versions still have to be spread",
            },
            IndexSpec {
                name: "tombstones",
                keys: &["tombstone", "updatedAt"],
                unique: false,
                only: Only::True("tombstone"),
                answers: "which deletions can be forgotten",
            },
            IndexSpec {
                name: "gone",
                keys: &["version.gone", "_id.resource"],
                unique: false,
                only: Only::True("version.gone"),
                answers: "how many documents does a resource have",
            },
        ],
    },
    CollectionSpec {
        name: ROWS,
        holds: "which version each subscription has of each document",
        indexes: &[
            IndexSpec {
                name: "pending",
                keys: &["pending", "_id.subscription", "due", "bucket", "since"],
                unique: false,
                only: Only::True("pending"),
                answers: "what is to be sent next, and how far behind is a client",
            },
            IndexSpec {
                name: "demanded",
                keys: &["demanded", "_id.subscription", "due", "bucket"],
                unique: false,
                only: Only::True("demanded"),
                answers: "what did a client ask for that is told nothing by itself",
            },
            IndexSpec {
                name: "documents",
                keys: &["_id.url", "_id.subscription"],
                unique: false,
                only: Only::All,
                answers: "which rows does a document have",
            },
            IndexSpec {
                name: "dead",
                keys: &["_id.subscription", "dead.diedAt", "dead.id"],
                unique: false,
                only: Only::Having("dead"),
                answers: "which notifications were given up",
            },
            IndexSpec {
                name: "deaths",
                keys: &["dead.diedAt"],
                unique: false,
                only: Only::Having("dead"),
                answers: "which dead letters are past their retention",
            },
            IndexSpec {
                name: "deadIds",
                keys: &["dead.id"],
                unique: false,
                only: Only::Having("dead"),
                answers: "which row a dead letter is of",
            },
        ],
    },
    CollectionSpec { name: LANES, holds: "counters and health of each lane", indexes: &[] },
    CollectionSpec {
        name: JOBS,
        holds: "long work to go on with",
        indexes: &[
            IndexSpec {
                name: "subject",
                keys: &["kind", "subject"],
                unique: true,
                only: Only::All,
                answers: "one job per kind and subject",
            },
            IndexSpec {
                name: "due",
                keys: &["due", "_id"],
                unique: false,
                only: Only::All,
                answers: "which jobs are to be gone on with",
            },
        ],
    },
    CollectionSpec {
        name: CONSUMERS,
        holds: "inputs that documents are pulled from, and how far each has come",
        indexes: &[],
    },
    CollectionSpec {
        name: REJECTS,
        holds: "messages that became no document",
        indexes: &[IndexSpec {
            name: "rejected",
            keys: &["_id.consumer", "rejectedAt", "_id"],
            unique: false,
            only: Only::All,
            answers: "which messages of a consumer were rejected, and when",
        }],
    },
    CollectionSpec {
        name: AUDIT,
        holds: "what operators and nodes did",
        indexes: &[IndexSpec {
            name: "subject",
            keys: &["subject", "_id"],
            unique: false,
            only: Only::All,
            answers: "what was done to one thing",
        }],
    },
    CollectionSpec { name: COUNTERS, holds: "the newest epoch", indexes: &[] },
];
