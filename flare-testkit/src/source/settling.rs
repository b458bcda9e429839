//! S1 to S4 and S6: a message comes until it is settled, and then as it was settled.

use flare_core::ErrorKind;
use flare_core::port::{CheckpointKeeper, SourceSettlement};

use super::TrialBroker;
use super::bench::{PATIENCE, SOON, refused, said, settle, sorted};
use crate::Subject;

/// Everything that was there before is received.
pub async fn s1_what_is_there_is_received(subject: Subject<dyn TrialBroker>) {
    subject.put(0..25).await;
    let source = subject.opened().await;
    let mut received = Vec::new();
    // A broker may hold back the rest of a group until its first ones are settled.
    while received.len() < 25 {
        let messages = subject.collect(&source, 1, PATIENCE).await;
        received.extend(said(&messages));
        settle(&source, messages, SourceSettlement::Done).await;
    }
    received.sort_unstable();
    assert_eq!(received, (0..25).collect::<Vec<_>>());
}

/// What is published while a source is open is received.
pub async fn s1_what_arrives_later_is_received(subject: Subject<dyn TrialBroker>) {
    let source = subject.opened().await;
    subject.nothing_for(&source, 1).await;
    subject.put(0..1).await;
    assert_eq!(said(&[subject.next(&source, PATIENCE).await]), [0]);
}

/// What a source that is gone had not settled is received by the one that is opened next.
pub async fn s1_what_is_not_settled_is_the_next_one_s(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let message = subject.next(&source, PATIENCE).await;
    let held = subject.held(&source);
    let next = subject.after(&source).await;
    drop((source, message));
    assert_eq!(said(&[subject.next(&next, held + PATIENCE).await]), [0]);
}

/// A message that is done does not come back, also not to the next source.
pub async fn s2_done_is_not_received_again(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let message = subject.next(&source, PATIENCE).await;
    settle(&source, vec![message], SourceSettlement::Done).await;
    subject.nothing_for(&source, subject.held(&source) + SOON).await;
    let next = subject.after(&source).await;
    source.close().await;
    subject.nothing_for(&next, SOON).await;
}

/// Of a batch, exactly what is settled as done is done.
pub async fn s2_each_of_a_batch_is_done_by_itself(subject: Subject<dyn TrialBroker>) {
    subject.put(0..4).await;
    let source = subject.opened().await;
    let messages = subject.collect(&source, 4, PATIENCE).await;
    let stream = source.facts().checkpoints == CheckpointKeeper::Flare;
    let settlements = messages.into_iter().map(|message| {
        let done = said(std::slice::from_ref(&message))[0].is_multiple_of(2);
        (message.receipt, if done { SourceSettlement::Done } else { SourceSettlement::Return })
    });
    // The last first: what is returned takes those after it along.
    let mut settlements: Vec<_> = settlements.collect();
    settlements.reverse();
    for result in source.settle(settlements).await {
        result.expect("a good receipt can be settled");
    }
    if stream {
        let back = sorted(&subject.collect(&source, 3, PATIENCE).await);
        assert_eq!(back, [1, 2, 3], "those after one that is returned come with it");
        return;
    }
    let back = subject.collect(&source, 2, subject.held(&source) + PATIENCE).await;
    assert_eq!(sorted(&back), [1, 3]);
    settle(&source, back, SourceSettlement::Done).await;
    subject.nothing_for(&source, subject.held(&source) + SOON).await;
}

/// What is returned is there again, long before it would have been by itself.
pub async fn s3_what_is_returned_comes_at_once(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let message = subject.next(&source, PATIENCE).await;
    settle(&source, vec![message], SourceSettlement::Return).await;
    assert_eq!(said(&[subject.next(&source, SOON).await]), [0]);
}

/// What is left is still with the broker; where nothing can be, the receipt stays good.
pub async fn s4_what_is_left_is_the_broker_s(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let message = subject.next(&source, PATIENCE).await;
    if source.facts().leaves {
        settle(&source, vec![message], SourceSettlement::Leave).await;
        source.close().await;
        for _ in 0..subject.held(&source) + PATIENCE {
            if subject.left().await == ["0"] {
                return;
            }
            subject.pass_ticks(1).await;
        }
        panic!("what was left is nowhere");
    }
    let mut results = source.settle(vec![(message.receipt, SourceSettlement::Leave)]).await;
    let unsettled = results.remove(0).expect_err("nothing can be left there");
    assert_eq!(unsettled.error.kind(), ErrorKind::Unsupported, "{}", unsettled.error);
    let mut results = source.settle(vec![(unsettled.receipt, SourceSettlement::Done)]).await;
    results.remove(0).expect("the receipt is still good");
}

/// Others come, whatever is left.
pub async fn s4_nothing_waits_for_what_is_left(subject: Subject<dyn TrialBroker>) {
    subject.put(0..2).await;
    let source = subject.opened().await;
    if !source.facts().leaves {
        // There it is refused, as the trial before shows, and nothing can wait for it.
        assert_eq!(subject.collect(&source, 2, PATIENCE).await.len(), 2);
        return;
    }
    let mut seen = Vec::new();
    while !seen.contains(&1) {
        let message = subject.next(&source, subject.held(&source) + PATIENCE).await;
        seen.extend(said(std::slice::from_ref(&message)));
        let left = seen.last() == Some(&0);
        let to = if left { SourceSettlement::Leave } else { SourceSettlement::Done };
        settle(&source, vec![message], to).await;
        assert!(seen.len() < 20, "only what was left comes: {seen:?}");
    }
}

/// A receipt is worth nothing once its source is closed, and what it was for is the next one's.
pub async fn s6_a_receipt_of_a_closed_source_is_lost(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let message = subject.next(&source, PATIENCE).await;
    let next = subject.after(&source).await;
    let held = subject.held(&source);
    source.close().await;
    refused(&source, message.receipt, SourceSettlement::Done).await;
    assert_eq!(said(&[subject.next(&next, held + PATIENCE).await]), [0]);
}

/// A receipt whose message was given out again settles nothing of it.
pub async fn s6_a_receipt_that_came_late_is_lost(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let late = subject.next(&source, PATIENCE).await;
    let token = late.receipt.token().to_owned();
    if source.facts().kept_for.is_some() {
        subject.pass_ticks(subject.held(&source) + 1).await;
    } else {
        settle(&source, vec![late], SourceSettlement::Return).await;
    }
    let newer = subject.next(&source, PATIENCE).await;
    refused(&source, flare_core::port::Receipt::new(token), SourceSettlement::Done).await;
    settle(&source, vec![newer], SourceSettlement::Return).await;
    assert_eq!(said(&[subject.next(&source, subject.held(&source) + PATIENCE).await]), [0]);
}
