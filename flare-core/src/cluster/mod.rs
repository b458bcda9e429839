//! Takes many Flares on the same stores; gives each of them slots to work, one worker per slot.
//!
//! In the order in which one step needs the other, each ending with the one before it:
//! - **registry**: a node has one lease, under a fresh incarnation; what it is trusted with ends
//!   before that lease can have lapsed.
//! - **election**: one of the nodes leads. Leadership is a value; only with it a plan is written.
//! - **assignment**: who should work which slot. Pure; `handover` turns it into the
//!   next plan, in two phases per slot: Owned → Releasing → Owned with a larger epoch.
//! - **runner**: follows the plan and says, as `SlotChange`s, what to stop and what to start.
//!
//! All of them look at the same picture of the store's keys (`mirror`), of which [`ClusterView`] is
//! what operators see. Nodes never talk to each other.
//!
//! # Why a slot is worked by one node at a time
//! A slot changes hands only when its owner's lease has ended, when the owner has confirmed, or when
//! it has had `hand_over_limit` to do so. For the first, `Trust` ends at three quarters of the lease.
//! For the last, a node is trusted only while it has *read* the newest plan within three quarters of
//! its lease: by the time a slot is taken from it by force it has either seen that it must give it up,
//! and had three quarters of the limit from before the plan was written, or it is not trusted with
//! anything any more. All this rests on clocks that run at about the same speed (a quarter apart at
//! most), not on clocks that show the same time. Should even that fail, epochs fence what is stored.
//!
//! # Load
//! A node says how busy it is ([`ClusterHandle::set_load`]; a Flare's runtime does) and, unless
//! [`ClusterSettings::shed_load`] is off, lowers its own weight after a minute of overload: by a quarter at
//! a time, at most to a quarter, and back in steps after long calm (`shedding`). The plan follows as
//! it follows any weight: a few slots at a time, and not at all within a tenth.
//!
//! # What it costs
//! Whatever a node announces to all of them is one write of one key, read by their watches. Besides,
//! per node a keep-alive and a read of the plan a few times per lease; a write of its record when
//! weight, leaving or load changed, of load at most one every [`ClusterSettings::publish_every`]; per plan
//! one write, one epoch, and one confirmation by each node that gave slots up. Nothing is written while
//! nothing changes, however many slots and subscriptions there are.

#[cfg_attr(not(feature = "internals"), allow(unreachable_pub))]
pub(crate) mod assignment;
mod context;
mod election;
mod feed;
mod follow;
mod handle;
mod handover;
mod held;
mod keys;
mod leader;
mod leader_changes;
mod load;
mod lone_owner;
#[cfg_attr(not(feature = "internals"), allow(unreachable_pub))]
pub(crate) mod member;
mod meter;
mod mirror;
mod moves;
mod pins;
mod plan;
mod record;
mod registry;
mod runner;
mod settings;
mod shed;
mod shedding;
mod state;
mod view;

pub(crate) use feed::{FeedItem, FeedReader};
pub(crate) use leader_changes::LeaderChanges;
pub(crate) use load::Activity;
pub(crate) use member::ClusterMember;
pub(crate) use pins::SlotRecords;
pub(crate) use view::has_workers;

pub use handle::{ClusterHandle, Membership};
pub use plan::{SlotPlan, SlotState};
pub use record::{NodeLoad, NodeRecord, Roles};
pub use settings::ClusterSettings;
pub use view::{ClusterView, Health, NodeView};
