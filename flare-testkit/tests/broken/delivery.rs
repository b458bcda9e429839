//! A transport with one fault fails exactly the clause it breaks; an honest one fails none.

use std::sync::Arc;
use std::time::Duration;

use crate::http::{Fault, HttpOverTcp};
use async_trait::async_trait;
use flare_core::port::Delivery;
use flare_testkit::Fixture;
use flare_testkit::delivery::CLAUSES;
use tokio::sync::Mutex;

struct Fixed(Fault);

#[async_trait]
impl Fixture for Fixed {
    type Port = dyn Delivery;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Delivery>, ()) {
        (Arc::new(HttpOverTcp { fault: self.0, turn: Mutex::new(()) }), ())
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(50)
    }
}

fn noticed(fault: Fault) -> Vec<&'static str> {
    crate::support::failing(CLAUSES, || Fixed(fault)).into_iter().collect()
}

crate::support::faults! {
    an_honest_transport_fails_nothing: None => [];
    d1_following_redirects: FollowsRedirects => ["d1"];
    d1_retrying_what_is_unavailable: RetriesUnavailable => ["d1"];
    d1_retrying_on_a_closed_connection: RetriesClosed => ["d1"];
    d2_normalising_urls: NormalisesUrls => ["d2"];
    d2_adding_its_own_agent: AddsItsOwnAgent => ["d2"];
    d2_sending_chunks: SendsChunks => ["d2"];
    d2_posting_only: OnlyPosts => ["d2"];
    d3_failing_on_redirects: FailsOnRedirects => ["d3"];
    d3_failing_on_status: FailsOnStatus => ["d3"];
    d3_taking_the_interim_answer: TakesTheInterim => ["d3"];
    d4_unsent_on_timeout: UnsentOnTimeout => ["d4"];
    d4_smuggling_headers: Smuggles => ["d4"];
    d5_ignoring_dates: IgnoresDates => ["d5"];
    d5_understanding_nonsense: UnderstandsNonsense => ["d5"];
    d6_reading_on: ReadsOn => ["d6"];
    d6_keeping_it_all: KeepsItAll => ["d6"];
    d7_being_late: IsLate => ["d7"];
    d7_timing_each_read: TimesEachRead => ["d7"];
    d7_calling_it_broken: CallsItBroken => ["d7"];
    d8_one_at_a_time: OneAtATime => ["d8"];
    d9_failing_on_a_body_that_stalls: FailsOnStall => ["d9"];
    d9_failing_on_a_body_that_breaks_off: FailsOnCut => ["d9"];
    d10_taking_a_part_for_the_whole: CallsItWhole => ["d10"];
    d10_taking_the_whole_for_a_part: NeverWhole => ["d10"];
}
