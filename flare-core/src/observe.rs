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
//! | [`CONSUMER`] | `consumer`, `epoch` | all work of one consumer under one owner |
//! | [`CONSUME`] | `messages` | storing what a batch of messages says, and telling their source |
//! | [`ATTEMPT`] | `document`, `version`, `action`, `notifications`, `traceparent` | one request to a client; of many notifications, the first |
//! | [`MEMBER`] | `node` | all a node does in its cluster under one registration |
//! | [`LEAD`] | `node`, `term` | making plans, within that |
//!
//! `traceparent` is the trace the version was put with, or that of the batch it was pulled with if the host says which
//! that is ([`FlareBuilder::current_trace`](crate::FlareBuilder::current_trace)); clients get it as a header.
//!
//! What changes in a cluster is an event of `flare_core::cluster`: joined, left and lost its place; leads
//! and leads no more; made a plan, with what it moved and why it could; was granted, is to give up, has
//! given up and lost slots, with how many; took slots by force; keeps less of its weight, and takes
//! it back.
//!
//! What operators and nodes did is an event of [`AUDIT`], with `by`, `action`, `subject`, `detail` and `count`: the
//! same as in the log that [`Flare::audit_log`](crate::Flare::audit_log) reads.
//!
//! With the feature `metrics` these are counted through the `metrics` facade, for all Flares of a
//! process together:
//!
//! | metric | kind | is |
//! |---|---|---|
//! | [`ACCEPTED`] | counter | puts and deletes that were answered, whatever they changed |
//! | [`CHANGED`] | counter | those of them that a client is told of |
//! | [`DELIVERED`] | counter | notifications clients accepted |
//! | [`DISCARDED`] | counter | notifications clients refused |
//! | [`FAILED`] | counter | attempts that failed |
//! | [`RETRIED`] | counter | failed attempts that are followed by another one |
//! | [`DEAD`] | counter | notifications that were given up |
//! | [`UNKNOWN_IDS`] | counter | notifications that clients named in their answers and were not told of |
//! | [`FILTERED`] | counter | filters evaluated, each once for a version of a document |
//! | [`FILTER_FAILED`] | counter | those of them that failed on the document, or said neither true nor false: no match |
//! | [`RECEIVED`] | counter | messages that consumers were given by their sources |
//! | [`REJECTED`] | counter, `reason` | messages that became no document, or not all that they say |
//! | [`AUDIT_LOST`] | counter | entries of the log of what was done that could not be stored |
//! | [`LATENCY`] | histogram | seconds from the store to the client, of notifications accepted |
//! | [`ATTEMPT_TIME`] | histogram | seconds that requests to clients took, however they ended |
//! | [`ATTEMPT_PHASE`] | histogram, `phase` | parts of that, where they happened and are known apart: `dns`, `connect`, `tls`, `first-byte` |
//! | [`PUT_RATE`] | gauge, `window` | puts and deletes this runtime answered a second, over `1m` and `5m` |
//! | [`LAG`] | gauge | notifications pending, of all subscriptions |
//! | [`SUBSCRIPTION_LAG`] | gauge, `subscription` | notifications pending of one that is among the worst, or of all `others` |
//! | [`SUBSCRIPTION_OLDEST`] | gauge, `subscription` | seconds the oldest of them has waited; of `others` the oldest of all |
//! | [`SUBSCRIPTION_FAILURES`] | gauge, `subscription` | attempts that failed in a row; of `others` the most any has |
//! | [`SUBSCRIPTION_RATE`] | gauge, `subscription`, `outcome` | outcomes a second over the last minute: `delivered`, `failed` or `discarded` |
//! | [`CONSUMER_LAG`] | gauge, `consumer` | messages that wait for a consumer that is among the worst, or for all `others`, where brokers say so |
//! | [`CONSUMER_BEHIND`] | gauge, `consumer` | seconds the oldest of them has waited, where brokers say so; of `others` the oldest of all |
//! | [`CONSUMER_FAILING`] | gauge, `consumer` | 1 if it is to pull and its last error stands, else 0; of `others` how many |
//! | [`SPREADING`] | gauge | changes not spread to all subscriptions yet |
//! | [`QUEUE_DEPTH`] | gauge, `queue` | messages ready in a queue between stages |
//! | [`LANES`] | gauge | lanes this runtime works |
//! | [`UNREADABLE`] | gauge, `kind` | stored records that this process met of late and could not read |
//! | [`LOOP_IDLE`] | gauge, `loop` | seconds since a loop got somewhere |
//! | [`LOOP_BUSY`] | gauge, `loop` | seconds that a loop has had something to do without getting anywhere |
//! | [`CLUSTER_NODES`] | gauge | nodes of the cluster, as far as this one has read |
//! | [`CLUSTER_SLOTS`] | gauge, `state` | slots of the cluster: `owned`, `moving` or `unassigned` |
//! | [`CLUSTER_OWN_SLOTS`] | gauge | slots this node works |
//! | [`CLUSTER_MEMBER`] | gauge | 1 while this node is registered, else 0 |
//! | [`CLUSTER_LEADER`] | gauge | 1 while this node leads, else 0 |
//! | [`CLUSTER_WEIGHT`] | gauge | this node's weight, less what it has shed |
//! | [`CLUSTER_BUSY`] | gauge | how busy this node is, in percent: what it sheds by |
//! | [`CLUSTER_JOINED`] | counter | registrations of this node |
//! | [`CLUSTER_LOST`] | counter | those of them that were lost, rather than given back |
//! | [`CLUSTER_SLOT_CHANGES`] | counter, `change` | slots `granted` to this node, `released` by it in good order, `lost` |
//! | [`CLUSTER_PLANS`] | counter | plans this node stored while it led |
//! | [`CLUSTER_MOVES`] | counter, `reason` | slots that got another owner by them: `free` before, `orphaned`, `handed-over`, or `forced` |
//! | [`CLUSTER_EPOCHS`] | counter | epochs it drew for them |
//! | [`CLUSTER_HAND_OVER`] | histogram | seconds from asking for slots to their next owner having them, once for each time it asked |

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
/// All work of one consumer under one owner.
pub const CONSUMER: &str = "flare.consumer";
/// Storing what a batch of messages says, and telling their source.
pub const CONSUME: &str = "flare.consume";
/// One request to a client.
pub const ATTEMPT: &str = "flare.attempt";
/// All a node does in its cluster under one registration.
pub const MEMBER: &str = "flare.member";
/// What operators and nodes did: the target of its events.
pub const AUDIT: &str = "flare.audit";
/// Making plans.
pub const LEAD: &str = "flare.lead";

/// Puts and deletes that were answered, whatever they changed.
pub const ACCEPTED: &str = "flare_accepted_total";
/// Puts and deletes that a client is told of.
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
/// Notifications that clients named in their answers and were not told of.
pub const UNKNOWN_IDS: &str = "flare_unknown_ids_total";
/// Filters evaluated, each once for a version of a document.
pub const FILTERED: &str = "flare_filter_evaluations_total";
/// Evaluations of filters that failed.
pub const FILTER_FAILED: &str = "flare_filter_failures_total";
/// Messages that consumers were given by their sources.
pub const RECEIVED: &str = "flare_received_total";
/// Messages that became no document, by the reason.
pub const REJECTED: &str = "flare_rejected_total";
/// Entries of the log of what was done that could not be stored.
pub const AUDIT_LOST: &str = "flare_audit_lost_total";
/// Seconds from the store to the client, of notifications accepted.
pub const LATENCY: &str = "flare_delivery_latency_seconds";
/// Seconds that requests to clients took.
pub const ATTEMPT_TIME: &str = "flare_attempt_seconds";
/// Seconds that parts of requests to clients took.
pub const ATTEMPT_PHASE: &str = "flare_attempt_phase_seconds";
/// Puts and deletes this runtime answered a second.
pub const PUT_RATE: &str = "flare_puts_per_second";
/// Notifications pending, of all subscriptions.
pub const LAG: &str = "flare_lag";
/// Notifications pending of one subscription, or of those without metrics of their own.
pub const SUBSCRIPTION_LAG: &str = "flare_subscription_lag";
/// Seconds the oldest change has waited that is pending for a subscription.
pub const SUBSCRIPTION_OLDEST: &str = "flare_subscription_oldest_pending_seconds";
/// Attempts of a subscription that failed in a row.
pub const SUBSCRIPTION_FAILURES: &str = "flare_subscription_failures";
/// Outcomes of a subscription a second, over the last minute.
pub const SUBSCRIPTION_RATE: &str = "flare_subscription_outcomes_per_second";
/// Messages that wait for a consumer, or for those without metrics of their own.
pub const CONSUMER_LAG: &str = "flare_consumer_lag";
/// Seconds the oldest message has waited that waits for a consumer.
pub const CONSUMER_BEHIND: &str = "flare_consumer_behind_seconds";
/// Whether a consumer fails.
pub const CONSUMER_FAILING: &str = "flare_consumer_failing";
/// Changes not spread to all subscriptions yet.
pub const SPREADING: &str = "flare_spreading";
/// Messages ready in a queue between stages.
pub const QUEUE_DEPTH: &str = "flare_queue_depth";
/// Stored records that this process met of late and could not read.
pub const UNREADABLE: &str = "flare_unreadable_records";
/// Lanes this runtime works.
pub const LANES: &str = "flare_lanes";
/// Seconds since a loop got somewhere.
pub const LOOP_IDLE: &str = "flare_loop_idle_seconds";
/// Seconds that a loop has had something to do without getting anywhere.
pub const LOOP_BUSY: &str = "flare_loop_busy_seconds";
/// Nodes of the cluster, as far as this one has read.
pub const CLUSTER_NODES: &str = "flare_cluster_nodes";
/// Slots of the cluster, by state.
pub const CLUSTER_SLOTS: &str = "flare_cluster_slots";
/// Slots this node works.
pub const CLUSTER_OWN_SLOTS: &str = "flare_cluster_own_slots";
/// 1 while this node is registered, else 0.
pub const CLUSTER_MEMBER: &str = "flare_cluster_member";
/// 1 while this node leads, else 0.
pub const CLUSTER_LEADER: &str = "flare_cluster_leader";
/// This node's weight, less what it has shed.
pub const CLUSTER_WEIGHT: &str = "flare_cluster_weight";
/// How busy this node is, in percent.
pub const CLUSTER_BUSY: &str = "flare_cluster_busy_percent";
/// Registrations of this node.
pub const CLUSTER_JOINED: &str = "flare_cluster_registrations_total";
/// Registrations of this node that were lost.
pub const CLUSTER_LOST: &str = "flare_cluster_registrations_lost_total";
/// Slots that came to this node or left it.
pub const CLUSTER_SLOT_CHANGES: &str = "flare_cluster_slot_changes_total";
/// Plans this node stored while it led.
pub const CLUSTER_PLANS: &str = "flare_cluster_plans_total";
/// Slots that got another owner by them.
pub const CLUSTER_MOVES: &str = "flare_cluster_moves_total";
/// Epochs this node drew while it led.
pub const CLUSTER_EPOCHS: &str = "flare_cluster_epochs_total";
/// Seconds from asking for slots to their next owner having them.
pub const CLUSTER_HAND_OVER: &str = "flare_cluster_hand_over_seconds";
