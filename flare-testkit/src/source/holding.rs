//! S7 and S8: a message is its receiver's while it is held, and stays the same.

use flare_core::port::{CheckpointKeeper, Outgoing, SourceSettlement};

use super::TrialBroker;
use super::bench::{PATIENCE, SOON, said, settle};
use crate::Subject;

/// While a message is held it is given to no other source of its broker, and not again to its own.
pub async fn s7_what_is_held_is_not_given_out(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let _held = subject.next(&source, PATIENCE).await;
    subject.nothing_for(&source, 1).await;
    if source.facts().checkpoints == CheckpointKeeper::Broker {
        let other = subject.opened().await;
        subject.nothing_for(&other, 2).await;
    }
}

/// Keeping a message holds it for the whole time again; without such a time it is held anyway.
pub async fn s7_what_is_kept_is_held_on(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let message = subject.next(&source, PATIENCE).await;
    let held = subject.held(&source).max(4);
    subject.pass_ticks(held / 2).await;
    let kept = source.keep(vec![&message.receipt]).await;
    assert!(matches!(kept[..], [Ok(())]), "{kept:?}");
    // Past what it would have been held for, and not yet what it is.
    subject.pass_ticks(held - held / 2 - 1).await;
    subject.nothing_for(&source, 2).await;
}

/// What is neither kept nor settled comes again, where it is held for a time only.
pub async fn s7_what_is_not_kept_comes_again(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let message = subject.next(&source, PATIENCE).await;
    match source.facts().kept_for {
        Some(_) => {
            let again = subject.next(&source, subject.held(&source) + PATIENCE).await;
            assert_eq!(said(&[again]), [0]);
        }
        None => {
            subject.nothing_for(&source, SOON).await;
            settle(&source, vec![message], SourceSettlement::Done).await;
        }
    }
}

/// Space, the order of keys, the spelling of numbers and letters of all kinds survive.
pub async fn s8_bodies_come_byte_for_byte(subject: Subject<dyn TrialBroker>) {
    let body = "{ \"b\":1.0e3,\t\"a\" : \"\\u00e9é 漢 🜂\",\"big\":12345678901234567890123 }\n";
    subject.publish(vec![Outgoing::new(body).group("group")]).await;
    let source = subject.opened().await;
    assert_eq!(subject.next(&source, PATIENCE).await.body, body);
}

/// A message that is received again is known by the same id; another one is not.
pub async fn s8_a_message_keeps_its_id(subject: Subject<dyn TrialBroker>) {
    subject.put(0..1).await;
    let source = subject.opened().await;
    let message = subject.next(&source, PATIENCE).await;
    let id = message.id.clone();
    settle(&source, vec![message], SourceSettlement::Return).await;
    let again = subject.next(&source, subject.held(&source) + PATIENCE).await;
    assert_eq!(again.id, id);
    settle(&source, vec![again], SourceSettlement::Done).await;
    subject.put(1..2).await;
    assert_ne!(subject.next(&source, PATIENCE).await.id, id);
}
