//! S5: how long a receive waits, how much it gives, and what one that is dropped costs.

use flare_core::port::SourceSettlement;
use futures::FutureExt;

use super::TrialBroker;
use super::bench::{PATIENCE, said, settle};
use crate::Subject;

/// With nothing there, a receive waits as long as it was asked to, and returns empty-handed.
pub async fn s5_an_empty_source_makes_it_wait(subject: Subject<dyn TrialBroker>) {
    let source = subject.opened().await;
    let received = subject.timed(4 + PATIENCE, source.receive(1, subject.ticks(4))).await;
    let (messages, ticks) = received.expect("the wait ends");
    assert!(messages.expect("an empty source can be read").is_empty());
    assert!(ticks >= 2, "returned after {ticks} of 4 ticks");
}

/// A message that is published during the wait ends it.
pub async fn s5_an_arrival_ends_the_wait(subject: Subject<dyn TrialBroker>) {
    let source = subject.opened().await;
    let receive = subject.timed(14, source.receive(1, subject.ticks(18)));
    let send = async {
        // In the middle of the wait: the time that passes is the receive's.
        subject.pass_ticks(2).await;
        subject.put(0..1).await;
    };
    let (received, ()) = tokio::join!(receive, send);
    let (messages, _) = received.expect("an arrival ends the wait");
    assert_eq!(said(&messages.expect("the source can be read")), [0]);
}

/// A receive gives no more than was asked for, and no more than the source's batch.
pub async fn s5_no_more_than_asked_for(subject: Subject<dyn TrialBroker>) {
    let source = subject.opened().await;
    let batch = source.facts().max_batch;
    subject.put(0..u32::try_from(batch.min(500)).unwrap() + 3).await;
    let one = subject.poll(&source, 1).await;
    assert!(one.len() <= 1, "{} messages for max 1", one.len());
    let many = subject.poll(&source, batch.saturating_add(1)).await;
    assert!(many.len() <= batch, "{} messages, a batch is {batch}", many.len());
}

/// However often a receive is dropped, at whichever await, every message comes in the end.
pub async fn s5_a_dropped_receive_loses_nothing(subject: Subject<dyn TrialBroker>) {
    let source = subject.opened().await;
    for number in 0..5 {
        let given = {
            let mut receive = Box::pin(source.receive(1, subject.ticks(2)));
            let waiting = receive.as_mut().now_or_never();
            assert!(waiting.is_none(), "there is nothing yet: {waiting:?}");
            subject.put(number..number + 1).await;
            // If it does not give the message at once it may have it all the same, and is dropped.
            receive.as_mut().now_or_never()
        };
        let mut messages = given.map_or_else(Vec::new, |given| given.expect("it can be read"));
        while !said(&messages).contains(&number) {
            settle(&source, messages, SourceSettlement::Done).await;
            messages = vec![subject.next(&source, subject.held(&source) + PATIENCE).await];
        }
        settle(&source, messages, SourceSettlement::Done).await;
    }
}
