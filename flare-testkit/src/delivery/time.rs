//! D7, D8 and D9: no attempt takes longer than it may, or longer because of another, or waits for
//! more than an answer's head.

use flare_core::port::{Delivery, FailureKind};
use futures::future::{Either, join_all, select};
use std::pin::pin;

use super::bench::{excerpt, failure, request, status};
use crate::{Answer, HttpTarget, Subject};

/// Ticks an attempt may take.
const TIMEOUT: u32 = 5;
/// Ticks a busy machine may add.
const SLACK: u32 = 20;

async fn times_out(subject: Subject<dyn Delivery>, answer: Answer) {
    let target = HttpTarget::start(answer).await;
    let mut request = request(&subject, target.url("/"));
    request.timeout = subject.ticks(TIMEOUT);
    let outcome = subject.within(TIMEOUT + SLACK, subject.attempt(request)).await;
    let outcome = outcome.expect("the attempt ends within its time");
    assert_eq!(failure(&outcome), Some(FailureKind::Timeout), "{outcome:?}");
}

/// A client that takes the request and says nothing.
pub async fn d7_a_client_that_never_answers_times_out(subject: Subject<dyn Delivery>) {
    times_out(subject, Answer::hang()).await;
}

/// A client that goes on and on: every byte is in time, the whole is not.
pub async fn d7_a_client_that_drips_is_left_in_time(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::drip(subject.ticks(1))).await;
    let mut request = request(&subject, target.url("/"));
    request.timeout = subject.ticks(TIMEOUT);
    let outcome = subject.within(TIMEOUT + SLACK, subject.attempt(request)).await;
    outcome.expect("the attempt ends within its time");
}

/// A client that stops in the middle of its answer's body has answered.
pub async fn d9_a_body_that_stalls_changes_nothing(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::hang_after_head()).await;
    let mut request = request(&subject, target.url("/"));
    request.timeout = subject.ticks(TIMEOUT);
    let outcome = subject.within(TIMEOUT + SLACK, subject.attempt(request)).await;
    let outcome = outcome.expect("the attempt ends within its time");
    assert_eq!(status(&outcome), Some(200), "{outcome:?}");
    assert_eq!(excerpt(outcome), "half ");
}

/// Nor does it matter that the connection is closed before the whole of the body has come.
pub async fn d9_a_body_that_breaks_off_changes_nothing(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::cut()).await;
    let outcome = subject.post(target.url("/")).await;
    assert_eq!(status(&outcome), Some(200), "{outcome:?}");
    assert_eq!(excerpt(outcome), "half ");
}

/// While some calls hang, others to the same client and to another are answered.
pub async fn d8_a_hanging_call_delays_no_other(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::status(200)).await;
    let other = HttpTarget::start(Answer::status(200)).await;
    target.on("/hang", Answer::hang());
    let mut hanging = request(&subject, target.url("/hang"));
    hanging.timeout = subject.ticks(10 * SLACK);
    let hang = pin!(join_all((0..20).map(|_| subject.attempt(hanging.clone()))));
    let others = async {
        // They go first: what hangs has to be hanging.
        while target.requests().len() < 20 {
            subject.pass(subject.ticks(1) / 10).await;
        }
        let urls = (0..10).flat_map(|_| [target.url("/"), other.url("/")]);
        join_all(urls.map(|url| subject.attempt(request(&subject, url)))).await
    };
    let others = pin!(subject.within(2 * SLACK, others));
    match select(hang, others).await {
        Either::Left(_) => panic!("what hangs is not answered"),
        Either::Right((outcomes, _)) => {
            for outcome in outcomes.expect("others are not delayed") {
                assert_eq!(status(&outcome), Some(200), "{outcome:?}");
            }
        }
    }
}
