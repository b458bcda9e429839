//! S12 and S13: how a source begins, is cut off and ends.

use flare_core::ErrorKind;
use flare_core::port::SourceSettlement;

use super::TrialBroker;
use super::bench::{PATIENCE, SOON, said, settle};
use crate::Subject;

/// While the broker is away calls fail for now; once it is back the same source goes on.
pub async fn s12_an_absence_is_survived(subject: Subject<dyn TrialBroker>) {
    subject.put(0..2).await;
    let source = subject.opened().await;
    let first = subject.next(&source, PATIENCE).await;
    assert_eq!(said(std::slice::from_ref(&first)), [0]);
    subject.set_away(true).await;
    let receive = subject.within(PATIENCE, source.receive(1, subject.ticks(1))).await;
    let error = receive.expect("it says so in time").expect_err("nothing can be received");
    assert!(error.is_temporary(), "{error}");
    subject.set_away(false).await;
    // The first one's receipt may have ended with the connection; then it comes again.
    let done = source.settle(vec![(first.receipt, SourceSettlement::Done)]).await.remove(0);
    let mut missing = vec![1];
    match done {
        Ok(()) => {}
        Err(unsettled) if unsettled.error.kind() == ErrorKind::Lost => missing.push(0),
        // Its client notices late that it is back.
        Err(unsettled) if unsettled.error.is_temporary() => missing.push(0),
        Err(unsettled) => panic!("{}", unsettled.error),
    }
    let mut tries = 0;
    while !missing.is_empty() {
        tries += 1;
        assert!(tries <= subject.held(&source) + PATIENCE, "{missing:?} never came");
        let receive = subject.within(PATIENCE, source.receive(1, subject.ticks(1))).await;
        match receive.expect("a receive ends") {
            Ok(messages) => {
                for number in said(&messages) {
                    missing.retain(|other| *other != number);
                }
                settle(&source, messages, SourceSettlement::Done).await;
            }
            Err(error) => {
                assert!(error.is_temporary(), "{error}");
                subject.pass_ticks(1).await;
            }
        }
    }
}

/// There is no source on what is not there.
pub async fn s13_what_is_not_there_is_not_found(subject: Subject<dyn TrialBroker>) {
    let opened = subject.open_missing().await;
    assert_eq!(opened.expect_err("there is nothing to open").kind(), ErrorKind::NotFound);
}

/// What a closed source had not settled is the next one's at once; closing twice is no harm.
pub async fn s13_closing_gives_back(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let _message = subject.next(&source, PATIENCE).await;
    source.close().await;
    source.close().await;
    let next = subject.after(&source).await;
    assert_eq!(said(&[subject.next(&next, SOON).await]), [0]);
}
