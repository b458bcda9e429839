//! The contract of [`Repository`], clause by clause: RE, RS, RD, RR, RJ, RC and RA; and RU, in [`unreadable`].
//!
//! Every clause says by hand what has to come out, and asks none of the model's own functions
//! (`detect_put`, `Row::apply` …): a store that uses them proves nothing by agreeing with itself.

mod audit;
mod consumers;
mod consumers_rejects;
mod documents;
mod documents_move;
mod documents_spread;
mod everybody;
mod history_documents;
mod history_rows;
mod jobs;
mod make;
mod resources;
mod rows;
mod rows_at_once;
mod rows_claim;
mod rows_dead;
mod rows_lane;
mod rows_round;
mod subscriptions;
mod subscriptions_change;
mod subscriptions_slots;
pub mod unreadable;

use flare_core::port::Repository;

pub use audit::{
    ra1_an_entry_stays_as_it_was_first_stored, ra1_entries_come_back_exactly,
    ra2_lists_the_newest_first, ra2_lists_those_of_one_subject, ra3_forgets_what_is_old,
    ra3_keeps_the_newest,
};
pub use consumers::{
    rc1_all_of_it_comes_back_exactly, rc1_one_of_many_inserts_is_stored,
    rc1_the_same_again_changes_nothing, rc2_one_of_many_replacements_wins,
    rc2_other_generations_learn_what_is_there, rc2_replaces_at_the_generation_named,
    rc2_what_is_stored_for_it_stays, rc3_lists_oldest_first, rc3_scans_everything_by_id,
    rc4_forgets_it_with_state_and_rejects, rc4_forgets_what_crosses_it,
    rc4_forgets_what_is_stored_afterwards, rc4_one_of_removal_and_replacements_wins,
    rc4_only_at_the_generation_named, rc5_a_claim_gives_what_is_stored_and_fences,
    rc5_a_claim_misses_nothing, rc5_gives_what_was_stored_last, rc5_states_are_fenced,
    rc5_the_greatest_epoch_stays,
};
pub use consumers_rejects::{
    rc6_a_reject_takes_the_place_of_what_was_there, rc6_keeps_those_rejected_last,
    rc6_those_of_nobody_are_not_kept, rc7_gives_those_named, rc7_lists_the_oldest_rejection_first,
    rc7_rejects_come_back_exactly, rc8_expires_those_rejected_before,
    rc8_removes_those_named_alone,
};
pub use documents::{
    rd1_deletes_follow_the_table, rd1_leaves_follow_the_table, rd1_one_revision_changes_once,
    rd1_puts_follow_the_table, rd1_the_version_never_goes_down, rd2_content_is_kept_byte_for_byte,
    rd2_only_newer_content_replaces, rd3_changes_forget_the_open_set,
    rd3_changes_leave_the_document_undispatched, rd3_silent_tombstones_keep_it_as_it_was,
    rd4_a_batch_keeps_its_order, rd12_too_large_is_refused, rd13_a_version_keeps_its_trace,
};
pub use documents_move::{
    rd14_heads_are_documents_without_content, rd15_a_move_is_noted_until_it_is_dispatched,
    rd15_what_notes_nothing_keeps_the_note,
};
pub use documents_spread::{
    rd5_only_the_stored_version_is_opened, rd5_the_first_open_set_stays,
    rd6_a_newer_version_stays_undispatched, rd6_removals_at_once_lose_nothing,
    rd6_the_last_removal_dispatches, rd7_marking_only_raises,
    rd8_finds_and_counts_what_is_undispatched, rd9_removes_only_the_version_named,
    rd10_finds_dispatched_tombstones, rd10_scans_live_documents_in_one_order,
    rd10_tombstones_come_by_their_time, rd11_removes_documents_bit_by_bit,
    rd16_counts_what_is_live, rd17_what_is_announced_was_not_put_beside,
};
pub use everybody::{
    rr23_counts_what_is_pending_of_each, rr24_gives_the_lanes_of_all_subscriptions,
    rs11_gives_the_members_of_all_resources,
};
pub use history_documents::rd_history_agrees_with_the_model;
pub use history_rows::rr_history_agrees_with_the_model;
pub use jobs::{
    rj1_one_job_per_kind_and_subject, rj2_due_jobs_come_earliest_first,
    rj3_work_on_a_job_is_fenced, rj4_a_finished_job_is_gone, rj5_finds_a_job_due_or_not,
    rj6_a_job_is_claimed_as_it_is_stored, rj7_lists_all_oldest_first,
};
pub use resources::{
    re1_a_deleting_one_keeps_its_endpoint, re1_conflicting_inserts_have_one_winner,
    re1_what_does_not_conflict_is_taken, re2_reads_back_what_was_inserted,
    re3_all_that_match_come_most_specific_first, re3_many_are_matched_in_their_order,
    re3_only_active_ones_match_and_at_once, re3_the_most_specific_one_matches,
    re4_lists_active_ones_oldest_first, re5_a_deleted_one_frees_its_endpoint,
    re5_moves_only_from_the_state_named, re5_one_of_many_moves_takes_place,
    re6_forgets_only_deleted_ones,
};
pub use rows::{
    rr1_epochs_only_rise, rr2_a_pending_row_stays_as_it_is,
    rr2_a_row_that_becomes_pending_starts_afresh, rr2_spread_leaves_what_was_given_up,
    rr2_spread_makes_a_fresh_row, rr3_a_batch_answers_each_row, rr3_effects_are_fenced_and_ordered,
    rr3_settling_ends_what_was_counted, rr4_many_at_once_lose_nothing,
    rr4_spread_and_effects_lose_nothing, rr14_reads_one_answer_per_key,
};
pub use rows_at_once::{
    rr19_everyone_is_told_of_what_is_owed, rr19_takes_as_many_as_fit,
    rr20_several_partitions_are_left_apart, rr21_dispatches_what_it_spreads_if_asked_to,
    rr22_gives_what_was_written,
};
pub use rows_claim::{
    rr7_a_lapsed_claim_changes_nothing, rr7_a_newer_version_waits_for_the_claim,
    rr7_an_earlier_round_settles_nothing, rr7_every_puller_gets_some_while_enough_waits,
    rr7_hands_out_what_is_pending_and_due, rr7_no_row_is_handed_out_twice,
    rr7_the_earliest_due_is_handed_out_first, rr7_the_holder_settles,
    rr7_what_is_demanded_is_not_handed_out, rr18_every_demand_marks_some_while_enough_waits,
    rr18_marks_what_waits,
};
pub use rows_dead::{
    rr8_a_settlement_removes_it, rr8_finds_them_by_id, rr8_lists_the_oldest_death_first,
    rr9_a_newer_pending_version_goes_on, rr9_a_replay_starts_afresh_once,
    rr9_one_of_many_replays_takes_place, rr10_retention_keeps_what_was_given_up,
};
pub use rows_lane::{
    rr5_lanes_share_the_rows_out, rr5_pending_rows_come_by_due_time, rr6_the_lag_is_exact,
    rr11_makes_later_rows_due_now, rr12_removes_a_settled_row_alone, rr12_removes_rows_bit_by_bit,
    rr13_a_lane_of_nobody_has_no_state, rr13_lane_states_are_fenced,
    rr15_finds_the_rows_of_documents,
};
pub use rows_round::{
    rr2_a_change_waits_for_its_client, rr3_an_earlier_round_changes_nothing,
    rr11_hurries_no_further_than_the_client_allows, rr16_what_is_refused_makes_no_row,
    rr17_a_backfill_leaves_what_is_held_or_dead, rr17_a_resync_begins_a_round_once,
    rr17_a_round_waits_until_the_client_allows,
};
pub use subscriptions::{
    rs1_stores_it_with_its_partition, rs1_the_same_again_changes_nothing,
    rs2_left_seats_are_taken_again, rs2_no_partition_is_over_its_limit, rs3_a_url_has_one_winner,
    rs3_no_url_is_used_twice, rs3_replacements_keep_urls_apart,
    rs4_names_every_partition_with_members, rs5_gives_members_as_they_stand,
};
pub use subscriptions_change::{
    rs6_one_of_many_replacements_wins, rs6_other_generations_learn_what_is_there,
    rs6_replaces_at_the_generation_named, rs7_lists_oldest_first, rs7_scans_everything_by_id,
    rs8_forgets_it_with_seat_and_lanes, rs8_forgets_states_that_cross_it,
    rs9_settings_come_back_exactly,
};
pub use subscriptions_slots::{
    rs10_finds_it_where_it_is_now, rs10_finds_whose_lanes_are_in_the_slots,
    rs10_goes_on_after_each_of_them,
};

crate::suite::suite! {
    $
    /// Tests a repository backend: one `#[test]` per clause, each on a fresh port.
    ///
    /// Takes an expression that makes a fixture whose port is `dyn Repository`.
    repository_suite for dyn Repository, repository, [
        re1_conflicting_inserts_have_one_winner,
        re1_a_deleting_one_keeps_its_endpoint,
        re1_what_does_not_conflict_is_taken,
        re2_reads_back_what_was_inserted,
        re3_the_most_specific_one_matches,
        re3_many_are_matched_in_their_order,
        re3_only_active_ones_match_and_at_once,
        re3_all_that_match_come_most_specific_first,
        re4_lists_active_ones_oldest_first,
        re5_moves_only_from_the_state_named,
        re5_one_of_many_moves_takes_place,
        re5_a_deleted_one_frees_its_endpoint,
        re6_forgets_only_deleted_ones,
        rs1_stores_it_with_its_partition,
        rs1_the_same_again_changes_nothing,
        rs2_no_partition_is_over_its_limit,
        rs2_left_seats_are_taken_again,
        rs3_no_url_is_used_twice,
        rs3_replacements_keep_urls_apart,
        rs3_a_url_has_one_winner,
        rs4_names_every_partition_with_members,
        rs5_gives_members_as_they_stand,
        rs6_replaces_at_the_generation_named,
        rs6_other_generations_learn_what_is_there,
        rs6_one_of_many_replacements_wins,
        rs7_lists_oldest_first,
        rs7_scans_everything_by_id,
        rs8_forgets_it_with_seat_and_lanes,
        rs8_forgets_states_that_cross_it,
        rs9_settings_come_back_exactly,
        rs10_finds_whose_lanes_are_in_the_slots,
        rs10_finds_it_where_it_is_now,
        rs10_goes_on_after_each_of_them,
        rs11_gives_the_members_of_all_resources,
        rd1_one_revision_changes_once,
        rd1_puts_follow_the_table,
        rd1_deletes_follow_the_table,
        rd1_leaves_follow_the_table,
        rd1_the_version_never_goes_down,
        rd2_content_is_kept_byte_for_byte,
        rd2_only_newer_content_replaces,
        rd3_changes_leave_the_document_undispatched,
        rd3_silent_tombstones_keep_it_as_it_was,
        rd3_changes_forget_the_open_set,
        rd4_a_batch_keeps_its_order,
        rd5_the_first_open_set_stays,
        rd5_only_the_stored_version_is_opened,
        rd6_the_last_removal_dispatches,
        rd6_a_newer_version_stays_undispatched,
        rd6_removals_at_once_lose_nothing,
        rd7_marking_only_raises,
        rd8_finds_and_counts_what_is_undispatched,
        rd9_removes_only_the_version_named,
        rd10_scans_live_documents_in_one_order,
        rd10_finds_dispatched_tombstones,
        rd10_tombstones_come_by_their_time,
        rd11_removes_documents_bit_by_bit,
        rd12_too_large_is_refused,
        rd13_a_version_keeps_its_trace,
        rd14_heads_are_documents_without_content,
        rd15_a_move_is_noted_until_it_is_dispatched,
        rd15_what_notes_nothing_keeps_the_note,
        rd16_counts_what_is_live,
        rd17_what_is_announced_was_not_put_beside,
        rd_history_agrees_with_the_model,
        rr1_epochs_only_rise,
        rr2_spread_makes_a_fresh_row,
        rr2_a_pending_row_stays_as_it_is,
        rr2_a_row_that_becomes_pending_starts_afresh,
        rr2_spread_leaves_what_was_given_up,
        rr2_a_change_waits_for_its_client,
        rr3_effects_are_fenced_and_ordered,
        rr3_settling_ends_what_was_counted,
        rr3_a_batch_answers_each_row,
        rr3_an_earlier_round_changes_nothing,
        rr4_spread_and_effects_lose_nothing,
        rr4_many_at_once_lose_nothing,
        rr5_pending_rows_come_by_due_time,
        rr5_lanes_share_the_rows_out,
        rr6_the_lag_is_exact,
        rr7_hands_out_what_is_pending_and_due,
        rr7_no_row_is_handed_out_twice,
        rr7_every_puller_gets_some_while_enough_waits,
        rr7_the_holder_settles,
        rr7_a_lapsed_claim_changes_nothing,
        rr7_a_newer_version_waits_for_the_claim,
        rr7_the_earliest_due_is_handed_out_first,
        rr7_an_earlier_round_settles_nothing,
        rr7_what_is_demanded_is_not_handed_out,
        rr8_lists_the_oldest_death_first,
        rr8_finds_them_by_id,
        rr8_a_settlement_removes_it,
        rr9_a_replay_starts_afresh_once,
        rr9_a_newer_pending_version_goes_on,
        rr9_one_of_many_replays_takes_place,
        rr10_retention_keeps_what_was_given_up,
        rr11_makes_later_rows_due_now,
        rr11_hurries_no_further_than_the_client_allows,
        rr12_removes_rows_bit_by_bit,
        rr12_removes_a_settled_row_alone,
        rr13_lane_states_are_fenced,
        rr13_a_lane_of_nobody_has_no_state,
        rr14_reads_one_answer_per_key,
        rr15_finds_the_rows_of_documents,
        rr16_what_is_refused_makes_no_row,
        rr17_a_resync_begins_a_round_once,
        rr17_a_round_waits_until_the_client_allows,
        rr17_a_backfill_leaves_what_is_held_or_dead,
        rr18_marks_what_waits,
        rr18_every_demand_marks_some_while_enough_waits,
        rr19_everyone_is_told_of_what_is_owed,
        rr19_takes_as_many_as_fit,
        rr20_several_partitions_are_left_apart,
        rr21_dispatches_what_it_spreads_if_asked_to,
        rr22_gives_what_was_written,
        rr23_counts_what_is_pending_of_each,
        rr24_gives_the_lanes_of_all_subscriptions,
        rr_history_agrees_with_the_model,
        rj1_one_job_per_kind_and_subject,
        rj2_due_jobs_come_earliest_first,
        rj3_work_on_a_job_is_fenced,
        rj4_a_finished_job_is_gone,
        rj5_finds_a_job_due_or_not,
        rj6_a_job_is_claimed_as_it_is_stored,
        rj7_lists_all_oldest_first,
        rc1_the_same_again_changes_nothing,
        rc1_one_of_many_inserts_is_stored,
        rc1_all_of_it_comes_back_exactly,
        rc2_replaces_at_the_generation_named,
        rc2_other_generations_learn_what_is_there,
        rc2_one_of_many_replacements_wins,
        rc2_what_is_stored_for_it_stays,
        rc3_lists_oldest_first,
        rc3_scans_everything_by_id,
        rc4_forgets_it_with_state_and_rejects,
        rc4_forgets_what_is_stored_afterwards,
        rc4_forgets_what_crosses_it,
        rc4_only_at_the_generation_named,
        rc4_one_of_removal_and_replacements_wins,
        rc5_states_are_fenced,
        rc5_the_greatest_epoch_stays,
        rc5_gives_what_was_stored_last,
        rc5_a_claim_gives_what_is_stored_and_fences,
        rc5_a_claim_misses_nothing,
        rc6_a_reject_takes_the_place_of_what_was_there,
        rc6_keeps_those_rejected_last,
        rc6_those_of_nobody_are_not_kept,
        rc7_lists_the_oldest_rejection_first,
        rc7_gives_those_named,
        rc7_rejects_come_back_exactly,
        rc8_removes_those_named_alone,
        rc8_expires_those_rejected_before,
        ra1_entries_come_back_exactly,
        ra1_an_entry_stays_as_it_was_first_stored,
        ra2_lists_the_newest_first,
        ra2_lists_those_of_one_subject,
        ra3_keeps_the_newest,
        ra3_forgets_what_is_old,
    ]
}
