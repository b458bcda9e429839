//! Takes anybody's transport, which must be allowed to reach 127.0.0.1; gives one trial per clause
//! of the [`Delivery`] contract, against clients that answer as scripted. Real sockets, so real
//! time: a fixture's tick may be short (a tenth of a second).

mod bench;
mod outcome;
mod request;
mod time;

use flare_core::port::Delivery;

pub use outcome::*;
pub use request::*;
pub use time::*;

crate::suite::suite! {
    $
    /// Tries every clause of the `Delivery` contract on the ports of a fixture, a test each.
    ///
    /// Takes an expression that makes a [`Fixture`](crate::Fixture) whose port is `dyn Delivery`.
    delivery_suite for dyn Delivery, delivery, [
        d1_redirects_are_not_followed,
        d1_a_failure_is_not_retried,
        d1_a_broken_kept_connection_is_not_retried,
        d2_methods_are_sent_as_given,
        d2_urls_are_sent_as_given,
        d2_headers_are_sent_as_given,
        d2_bodies_are_sent_as_given,
        d3_every_status_is_an_answer,
        d3_an_interim_answer_is_not_the_answer,
        d4_what_the_client_saw_was_sent,
        d4_a_refused_connection_is_told_apart,
        d4_what_cannot_be_sent_is_told_apart,
        d5_seconds_are_reported,
        d5_dates_are_reported,
        d5_nonsense_is_left_out,
        d6_a_short_body_is_kept_whole,
        d6_a_long_body_is_cut,
        d6_an_endless_body_is_not_read_on,
        d7_a_client_that_never_answers_times_out,
        d7_a_client_that_drips_is_left_in_time,
        d8_a_hanging_call_delays_no_other,
        d9_a_body_that_stalls_changes_nothing,
        d9_a_body_that_breaks_off_changes_nothing,
        d10_a_whole_body_is_told_from_a_part,
        d10_a_body_that_does_not_end_is_not_whole,
    ]
}
