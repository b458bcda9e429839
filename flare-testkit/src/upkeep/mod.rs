//! Takes whatever keeps anybody's stores in order; gives one trial per clause of the [`Upkeep`]
//! contract.
//!
//! The clauses can try only what there is to do: a fixture opens a store that is not set up yet and
//! has something to clean up, if its backend knows such things. What is in use and what is not
//! Flare's (U5) the backend's own tests have to put there.

mod applying;
mod backup;
mod bench;
mod planning;
mod progress;
mod refusing;

use flare_core::port::Upkeep;

pub use applying::*;
pub use backup::*;
pub use planning::*;
pub use progress::*;
pub use refusing::*;

crate::suite::suite! {
    $
    /// Tries every clause of the `Upkeep` contract on the ports of a fixture, a test each.
    ///
    /// Takes an expression that makes a [`Fixture`](crate::Fixture) whose port is `dyn Upkeep`, on
    /// a store that is not set up yet and has something to clean up.
    upkeep_suite for dyn Upkeep, upkeep, [
        u1_a_plan_changes_nothing,
        u1_no_step_is_planned_twice,
        u2_what_another_purpose_has_done_is_not_needed,
        u2_a_step_of_another_state_does_not_take_place,
        u3_applying_again_is_not_needed,
        u3_several_at_once_do_no_harm,
        u4_what_is_applied_is_not_planned_again,
        u5_a_cleanup_removes_nothing_that_is_brought_back,
        u6_a_step_of_nobody_s_is_refused,
        u6_a_step_of_another_purpose_does_not_take_place,
        u7_what_takes_long_says_how_far_it_is,
        u8_a_backup_is_a_new_file_or_what_to_use_instead,
    ]
}
