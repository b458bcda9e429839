//! Every span Flare opens, once. Hosts filter and count by these names; they do not change lightly.
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
