//! Takes anybody's broker; gives one trial per clause of the [`Source`] contract.

mod bench;
mod holding;
mod life;
mod order;
mod places;
mod settling;
mod waiting;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::Result;
use flare_core::model::Checkpoint;
use flare_core::port::{Outgoing, Source};

pub use holding::*;
pub use life::*;
pub use order::*;
pub use places::*;
pub use settling::*;
pub use waiting::*;

/// A broker with one queue or stream that is new and empty: what a fixture of this suite opens.
///
/// Sources of it hold a message for six ticks of the fixture at least, or for as long as they are open.
#[async_trait]
pub trait TrialBroker: Send + Sync + 'static {
    /// Opens a source on it, to go on from there; without checkpoints from the oldest message on.
    async fn open(&self, checkpoints: Vec<Checkpoint>) -> Result<Arc<dyn Source>>;

    /// Opens a source on a queue or stream that is not there.
    async fn open_missing(&self) -> Result<Arc<dyn Source>>;

    /// Publishes messages as others would: their payloads (which are JSON), each in its group where the broker knows
    /// such a thing, in this order.
    async fn publish(&self, messages: Vec<Outgoing>);

    /// What was left and is still with the broker, or where it puts what was refused.
    async fn left(&self) -> Vec<Bytes>;

    /// Takes the broker away (connections break, and none can be made) or brings it back.
    async fn set_away(&self, away: bool);
}

crate::suite::suite! {
    $
    /// Tries every clause of the `Source` contract on the broker of a fixture, a test each.
    ///
    /// Takes an expression that makes a [`Fixture`](crate::Fixture) whose port is `dyn TrialBroker`
    /// ([`TrialBroker`](crate::source::TrialBroker)).
    source_suite for dyn TrialBroker, source, [
        s1_what_is_there_is_received,
        s1_what_arrives_later_is_received,
        s1_what_is_not_settled_is_the_next_one_s,
        s2_done_is_not_received_again,
        s2_each_of_a_batch_is_done_by_itself,
        s3_what_is_returned_comes_at_once,
        s4_what_is_left_is_the_broker_s,
        s4_nothing_waits_for_what_is_left,
        s5_an_empty_source_makes_it_wait,
        s5_an_arrival_ends_the_wait,
        s5_no_more_than_asked_for,
        s5_a_dropped_receive_loses_nothing,
        s6_a_receipt_of_a_closed_source_is_lost,
        s6_a_receipt_that_came_late_is_lost,
        s7_what_is_held_is_not_given_out,
        s7_what_is_kept_is_held_on,
        s7_what_is_not_kept_comes_again,
        s8_bodies_come_byte_for_byte,
        s8_a_message_keeps_its_id,
        s9_a_group_is_in_order,
        s9_a_group_goes_on_with_the_first_that_is_open,
        s10_checkpoints_stop_before_what_is_open,
        s10_checkpoints_go_on_behind_what_is_done,
        s11_lag_ends_with_the_last_message,
        s12_an_absence_is_survived,
        s13_what_is_not_there_is_not_found,
        s13_closing_gives_back,
    ]
}
