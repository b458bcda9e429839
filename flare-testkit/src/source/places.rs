//! S10 and S11: up to where everything is done, and how much is not.

use flare_core::port::{CheckpointKeeper, SourceLag, SourceSettlement};

use super::TrialBroker;
use super::bench::{PATIENCE, SOON, said, settle};
use crate::Subject;

/// Where Flare keeps the place, it is never behind a message that is not settled; elsewhere there is none.
pub async fn s10_checkpoints_stop_before_what_is_open(subject: Subject<dyn TrialBroker>) {
    subject.put(0..5).await;
    let source = subject.opened().await;
    let mut messages = subject.collect(&source, 5, PATIENCE).await;
    if source.facts().checkpoints == CheckpointKeeper::Broker {
        settle(&source, messages, SourceSettlement::Done).await;
        assert_eq!(source.checkpoints(), []);
        return;
    }
    messages.sort_by_key(|message| said(std::slice::from_ref(message)));
    let _open = messages.remove(2);
    settle(&source, messages, SourceSettlement::Done).await;
    let next = subject.after(&source).await;
    let first = subject.next(&next, PATIENCE).await;
    assert_eq!(said(&[first]), [2], "the first that was not settled");
}

/// A source that is opened with the checkpoints of one that has settled everything gets what is new.
pub async fn s10_checkpoints_go_on_behind_what_is_done(subject: Subject<dyn TrialBroker>) {
    subject.put(0..3).await;
    let source = subject.opened().await;
    let messages = subject.collect(&source, 3, PATIENCE).await;
    settle(&source, messages, SourceSettlement::Done).await;
    let next = subject.after(&source).await;
    source.close().await;
    subject.put(3..4).await;
    assert_eq!(said(&[subject.next(&next, PATIENCE).await]), [3]);
}

/// There is a lag while something is not settled, and none once everything is.
pub async fn s11_lag_ends_with_the_last_message(subject: Subject<dyn TrialBroker>) {
    subject.put(0..3).await;
    let source = subject.opened().await;
    let messages = subject.collect(&source, 3, PATIENCE).await;
    settle(&source, messages, SourceSettlement::Done).await;
    for _ in 0..PATIENCE {
        match source.lag().await.expect("a lag can be asked for") {
            None | Some(SourceLag::Messages(0)) => return,
            Some(SourceLag::Behind(time)) if time.is_zero() => return,
            Some(_) => subject.pass_ticks(SOON).await,
        }
    }
    panic!("everything is settled, and it lags: {:?}", source.lag().await);
}
