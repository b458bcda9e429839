//! L7: a watch gives every later change, once, in order.

use flare_core::port::Lease;

use crate::Subject;

/// Changes between the revision and the call are given.
pub async fn l7_a_watch_gives_what_happened_before_it(subject: Subject<dyn Lease>) {
    let from = subject.revision().await;
    subject.put("l7/a", "1").await;
    subject.put("l7/b", "1").await;
    subject.put("l7/a", "2").await;
    subject.remove("l7/b").await;
    let mut watch = subject.watch("l7/", from);
    let events = subject.events(&mut watch, 4).await;
    assert_eq!(events, ["l7/a=1", "l7/b=1", "l7/a=2", "-l7/b"]);
    subject.quiet(&mut watch).await;
}

/// Changes after the call are given, for as long as it is held.
pub async fn l7_a_watch_gives_what_happens_after_it(subject: Subject<dyn Lease>) {
    let mut watch = subject.watch("l7/", subject.revision().await);
    subject.quiet(&mut watch).await;
    for round in 0..5 {
        let revision = subject.put("l7/a", &round.to_string()).await;
        subject.remove("l7/a").await;
        let event = subject.event(&mut watch, super::bench::PATIENCE).await;
        assert_eq!(event.revision, revision);
        assert_eq!(super::bench::short(&event), format!("l7/a={round}"));
        assert_eq!(subject.events(&mut watch, 1).await, ["-l7/a"]);
        subject.quiet(&mut watch).await;
    }
}

/// The change made at the revision itself is not given again.
pub async fn l7_a_watch_begins_after_its_revision(subject: Subject<dyn Lease>) {
    subject.put("l7/a", "1").await;
    let from = subject.put("l7/b", "2").await;
    let mut watch = subject.watch("l7/", from);
    subject.quiet(&mut watch).await;
    subject.put("l7/c", "3").await;
    assert_eq!(subject.events(&mut watch, 1).await, ["l7/c=3"]);
}

/// Every watch gives everything, however many there are and wherever they begin.
pub async fn l7_watches_do_not_take_from_each_other(subject: Subject<dyn Lease>) {
    let from = subject.revision().await;
    let mut one = subject.watch("l7/", from);
    subject.quiet(&mut one).await;
    subject.put("l7/a", "1").await;
    let mut other = subject.watch("l7/", from);
    subject.put("l7/b", "2").await;
    assert_eq!(subject.events(&mut one, 2).await, ["l7/a=1", "l7/b=2"]);
    drop(one);
    assert_eq!(subject.events(&mut other, 2).await, ["l7/a=1", "l7/b=2"]);
}
