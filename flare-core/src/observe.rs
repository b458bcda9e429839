//! Every span Flare opens and every figure it counts, once. Hosts filter and count by these names;
//! they do not change lightly.
//!
//! | span | fields | around |
//! |---|---|---|
//! | [`PUT`] | `documents` | storing and announcing puts and deletes |
//! | [`PARTITION`] | `tasks` | finding the partitions of a batch of changes |
//! | [`SPREAD`] | `tasks` | writing the rows of a batch of partitions |
//! | [`JOB`] | `kind`, `subject` | a turn at a stored job |
//! | [`LANE`] | `lane`, `epoch` | all work of one lane under one owner |
//! | [`ATTEMPT`] | `document`, `version`, `action`, `traceparent` | one request to a client |
//!
//! `traceparent` is the trace the version was put with; clients get it as a header.
//!
//! With the feature `metrics` these are counted through the `metrics` facade, for all Flares of a
//! process together:
//!
//! | metric | kind | is |
//! |---|---|---|
//! | [`ACCEPTED`] | counter | puts and deletes that were answered, whatever they changed |
//! | [`CHANGED`] | counter | those of them that somebody is told of |
//! | [`DELIVERED`] | counter | notifications clients accepted |
//! | [`DISCARDED`] | counter | notifications clients refused |
//! | [`FAILED`] | counter | attempts that failed |
//! | [`RETRIED`] | counter | failed attempts that are followed by another one |
//! | [`DEAD`] | counter | notifications that were given up |
//! | [`LATENCY`] | histogram | seconds from the store to the client, of notifications accepted |
//! | [`LAG`] | gauge | notifications pending, of all subscriptions |
//! | [`SPREADING`] | gauge | changes not spread to all subscriptions yet |
//! | [`QUEUE_DEPTH`] | gauge, `queue` | messages ready in a queue between stages |
//! | [`LANES`] | gauge | lanes this runtime works |
//! | [`LOOP_IDLE`] | gauge, `loop` | seconds since a loop got somewhere |
//! | [`LOOP_BUSY`] | gauge, `loop` | seconds that a loop has had something to do without getting anywhere |

/// Storing and announcing puts and deletes.
pub const PUT: &str = "flare.put";
/// Finding the partitions of a batch of changes.
pub const PARTITION: &str = "flare.partition";
/// Writing the rows of a batch of partitions.
pub const SPREAD: &str = "flare.spread";
/// A turn at a stored job.
pub const JOB: &str = "flare.job";
/// All work of one lane under one owner.
pub const LANE: &str = "flare.lane";
/// One request to a client.
pub const ATTEMPT: &str = "flare.attempt";

/// Puts and deletes that were answered, whatever they changed.
pub const ACCEPTED: &str = "flare_accepted_total";
/// Puts and deletes that somebody is told of.
pub const CHANGED: &str = "flare_changed_total";
/// Notifications clients accepted.
pub const DELIVERED: &str = "flare_delivered_total";
/// Notifications clients refused.
pub const DISCARDED: &str = "flare_discarded_total";
/// Attempts that failed.
pub const FAILED: &str = "flare_failed_total";
/// Failed attempts that are followed by another one.
pub const RETRIED: &str = "flare_retried_total";
/// Notifications that were given up.
pub const DEAD: &str = "flare_dead_total";
/// Seconds from the store to the client, of notifications accepted.
pub const LATENCY: &str = "flare_delivery_latency_seconds";
/// Notifications pending, of all subscriptions.
pub const LAG: &str = "flare_lag";
/// Changes not spread to all subscriptions yet.
pub const SPREADING: &str = "flare_spreading";
/// Messages ready in a queue between stages.
pub const QUEUE_DEPTH: &str = "flare_queue_depth";
/// Lanes this runtime works.
pub const LANES: &str = "flare_lanes";
/// Seconds since a loop got somewhere.
pub const LOOP_IDLE: &str = "flare_loop_idle_seconds";
/// Seconds that a loop has had something to do without getting anywhere.
pub const LOOP_BUSY: &str = "flare_loop_busy_seconds";
