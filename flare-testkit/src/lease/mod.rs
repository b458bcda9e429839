//! Takes anybody's coordination store; gives one trial per clause of the [`Lease`]
//! contract.

mod bench;
mod conditions;
mod history;
mod keys;
mod life;
mod prefix;
mod snapshot;
mod watching;

use flare_core::port::Lease;

pub use conditions::*;
pub use history::*;
pub use keys::*;
pub use life::*;
pub use prefix::*;
pub use snapshot::*;
pub use watching::*;

crate::suite::suite! {
    $
    /// Tries every clause of the `Lease` contract on the ports of a fixture, a test each.
    ///
    /// Takes an expression that makes a [`Fixture`](crate::Fixture) whose port is `dyn Lease`.
    lease_suite for dyn Lease, lease, [
        l1_a_lease_lives_its_ttl,
        l1_a_lease_lives_not_much_longer,
        l1_keeping_alive_starts_anew,
        l2_revisions_grow_over_all_keys,
        l2_writing_the_same_again_is_a_write,
        l2_a_key_remembers_its_revisions,
        l3_of_many_that_expect_absence_one_wins,
        l3_of_many_that_expect_a_revision_one_wins,
        l3_a_conflict_tells_what_is_there,
        l3_a_delete_is_conditional_too,
        l4_revocation_ends_its_keys,
        l4_expiry_ends_its_keys,
        l4_watchers_are_told_of_a_revocation,
        l4_watchers_are_told_of_an_expiry,
        l5_an_ended_lease_cannot_be_kept_alive,
        l5_nothing_can_be_bound_to_an_ended_lease,
        l5_ending_it_again_is_no_error,
        l6_entries_are_in_key_order,
        l6_a_list_is_a_snapshot,
        l6_what_is_deleted_is_not_listed,
        l7_a_watch_gives_what_happened_before_it,
        l7_a_watch_gives_what_happens_after_it,
        l7_a_watch_begins_after_its_revision,
        l7_watches_do_not_take_from_each_other,
        l8_no_gap_over_a_long_history,
        l8_no_gap_for_a_slow_watcher,
        l9_a_write_binds_to_its_lease_alone,
        l9_a_write_without_lease_sets_free,
        l10_deleting_nothing_is_no_error,
        l10_deleting_nothing_makes_no_revision,
        l11_list_takes_prefixes_byte_for_byte,
        l11_watch_takes_prefixes_byte_for_byte,
        l12_the_dead_are_not_waited_for_where_that_is_known,
    ]
}
