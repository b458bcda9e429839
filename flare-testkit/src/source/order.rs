//! S9: what is ordered comes in order, also after something went wrong.

use flare_core::port::SourceSettlement;

use super::TrialBroker;
use super::bench::{PATIENCE, said, settle};
use crate::Subject;

/// Messages of a group come in the order they were sent in.
pub async fn s9_a_group_is_in_order(subject: Subject<dyn TrialBroker>) {
    subject.put(0..10).await;
    let source = subject.opened().await;
    let mut received = Vec::new();
    while received.len() < 10 {
        let messages = subject.collect(&source, 2.min(10 - received.len()), PATIENCE).await;
        received.extend(said(&messages));
        settle(&source, messages, SourceSettlement::Done).await;
    }
    if source.facts().ordered {
        assert_eq!(received, (0..10).collect::<Vec<_>>());
    }
}

/// What is returned comes before what was behind it.
pub async fn s9_a_group_goes_on_with_the_first_that_is_open(subject: Subject<dyn TrialBroker>) {
    subject.put(0..6).await;
    let source = subject.opened().await;
    let mut messages = subject.collect(&source, 3, PATIENCE).await;
    messages.sort_by_key(|message| said(std::slice::from_ref(message)));
    let first = vec![messages.remove(0)];
    settle(&source, first, SourceSettlement::Done).await;
    // The last first: where it takes those after it along, all of them are still held.
    messages.reverse();
    settle(&source, messages, SourceSettlement::Return).await;
    let mut received = Vec::new();
    while received.len() < 5 {
        let messages = subject.collect(&source, 1, subject.held(&source) + PATIENCE).await;
        received.extend(said(&messages));
        settle(&source, messages, SourceSettlement::Done).await;
    }
    if source.facts().ordered {
        assert_eq!(received, [1, 2, 3, 4, 5]);
    }
}
