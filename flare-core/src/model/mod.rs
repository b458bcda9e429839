//! What things are: values with their rules. No I/O, no clock, no log.
//!
//! Construction validates; every refusal is an [`Invalid`] that names the field and the reason.
//!
//! - a kind of document: [`Resource`], its [`Endpoint`] pattern, its [`ChangeRule`]
//! - a document: [`DocumentUrl`], [`Content`], [`Revision`], [`Version`]; whether it changed:
//!   [`detect_put`], [`detect_delete`]
//! - what documents are pulled from: [`consumer`]
//! - a client's wish: [`subscription`]
//! - what a client has and is told: [`Row`], [`decide`], [`Notification`]
//! - what this version cannot read: [`Unreadable`]

mod action;
mod audit;
mod bucket;
pub mod consumer;
mod dead_notification;
mod decision;
mod detect;
mod document;
mod document_delivery;
pub mod duration;
mod entries;
mod id;
mod invalid;
mod job;
mod kept;
mod lane;
mod lane_activity;
mod layout;
mod normal;
mod notification;
mod pattern;
mod placement;
mod rate_window;
mod recent_times;
mod resource;
mod revision;
mod rfc3339;
mod row;
pub mod secret;
pub mod size;
mod slot_hash;
mod spread;
pub mod subscription;
mod template;
mod timestamp;
mod trace;
mod unreadable;
mod url;
mod version;

pub use action::Action;
pub use audit::{Actor, AuditAction, AuditEntry, AuditSubject};
pub use bucket::{Bucket, BucketRange};
pub use consumer::{
    Checkpoint, Consumer, ConsumerState, ConsumerStatus, NewConsumer, OnReject, Reject,
    SourceSettings,
};
pub use dead_notification::DeadNotification;
pub use decision::{
    Decision, FilterVerdict, Present, Takeover, Target, Telling, Verdict, decide, present_after,
};
pub use detect::{Detected, DocumentChange, detect_delete, detect_leave, detect_put};
pub use document::{Content, Document, DocumentKey, MovedFrom, PartitionId};
pub use document_delivery::{ClientCondition, DocumentDelivery, WaitsFor};
pub use id::{
    AuditEntryId, ClaimId, ConsumerId, DeadLetterId, FreshId, IdSource, JobId, NodeId, RejectId,
    ResourceId, SubscriptionId,
};
pub use invalid::Invalid;
pub use job::{Job, JobKind};
pub use lane::{LaneId, LaneState};
pub use lane_activity::{
    AttemptPhases, LaneActivity, RecentOutcomes, SubscriptionRates, SubscriptionTimes,
};
pub use layout::Layout;
pub(crate) use notification::most_bytes;
pub use notification::{Notification, batch_id, webhook_id};
pub use pattern::{Endpoint, EndpointConflict, EndpointIndex, Params};
pub use placement::Placement;
pub use rate_window::{RateWindow, WindowRates};
pub use recent_times::{RecentTimes, TimeFigures};
pub use resource::{NewResource, Resource, ResourceState};
pub use revision::{ChangeField, ChangeFormat, ChangeRule, GivenRevision, Revision, ShownRevision};
pub use row::{
    Applied, Claim, ClaimEffect, DeadLetter, DeathReason, Epoch, Generation, Row, RowEffect, RowKey,
};
pub use slot_hash::SlotHash;
pub use spread::{Round, Spread, SpreadCause};
pub use subscription::{
    BackfillProgress, ContentOptions, Filter, Method, Subscription, SubscriptionInput,
    SubscriptionReport, SubscriptionSpec, SubscriptionStatus, SubscriptionSummary, SummaryOrder,
};
pub use template::{Escape, MissingValue, Template};
pub use timestamp::Timestamp;
pub use trace::TraceContext;
pub use unreadable::{RECORD_FORMAT, RecordKind, RecordName, Unreadable, WhyUnreadable};
pub use url::DocumentUrl;
pub use version::Version;
