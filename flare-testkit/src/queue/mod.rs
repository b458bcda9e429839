//! Takes anybody's queue; gives one trial per clause of the [`Queue`] contract.

mod bench;
mod coalescing;
mod content;
mod depth;
mod existence;
mod facts;
mod order;
mod settling;
mod time;
mod waiting;

use flare_core::port::Queue;

pub use coalescing::*;
pub use content::*;
pub use depth::*;
pub use existence::*;
pub use facts::*;
pub use order::*;
pub use settling::*;
pub use time::*;
pub use waiting::*;

crate::suite::suite! {
    $
    /// Tries every clause of the `Queue` contract on the ports of a fixture, a test each.
    ///
    /// Takes an expression that makes a [`Fixture`](crate::Fixture) whose port is `dyn Queue`.
    queue_suite for dyn Queue, queue, [
        q1_what_is_sent_is_received,
        q1_it_comes_back_until_it_is_settled,
        q1_receivers_share_without_losing,
        q2_done_is_never_seen_again,
        q2_each_of_a_batch_is_done_by_itself,
        q3_retry_waits,
        q3_retry_comes_back,
        q3_retry_without_delay_comes_back_at_once,
        q4_a_delayed_message_waits,
        q4_a_delayed_message_comes,
        q5_what_is_received_is_invisible,
        q5_an_extension_keeps_it_invisible,
        q5_an_extension_counts_from_now,
        q6_a_stale_receipt_is_lost,
        q6_a_stale_retry_changes_nothing,
        q6_a_stale_done_changes_nothing,
        q6_a_receipt_of_a_deleted_queue_is_lost,
        q7_a_waiting_message_absorbs_its_equal,
        q7_only_equal_keys_are_absorbed,
        q7_the_earlier_time_holds,
        q7_nothing_is_absorbed_in_flight,
        q7_queues_absorb_apart,
        q8_an_empty_queue_makes_it_wait,
        q8_an_arrival_ends_the_wait,
        q8_becoming_visible_ends_the_wait,
        q8_no_more_than_asked_for,
        q9_a_queue_never_created_is_not_found,
        q9_a_deleted_queue_is_not_found,
        q9_creating_and_deleting_again_are_no_errors,
        q9_creating_again_keeps_what_is_there,
        q9_what_exists_is_listed,
        q10_queues_are_apart,
        q11_a_payload_too_large_is_refused,
        q11_a_delay_too_long_is_refused,
        q11_a_batch_too_large_is_refused,
        q12_attempts_are_counted,
        q13_any_bytes_come_back,
        q13_the_largest_payload_comes_back,
        q14_depth_counts_what_waits,
        q14_depth_counts_what_is_delayed,
        q14_depth_counts_what_is_in_flight,
        q14_depth_forgets_what_is_done,
        q15_a_group_is_in_order,
        q15_an_unsettled_message_holds_its_group_back,
        q15_a_retried_message_keeps_its_place,
        q15_groups_do_not_hold_each_other_back,
    ]
}
