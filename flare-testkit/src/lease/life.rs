//! L1, L4 and L5: how long a lease lives, what ends with it, and that it stays ended.

use flare_core::ErrorKind;
use flare_core::port::{KeyChange, Lease, Write};

use super::bench::PATIENCE;
use crate::Subject;

/// Ticks by which a lease may outlive its time.
const SLACK: u32 = 6;

/// What is asked for is granted at least, and what is granted is lived.
pub async fn l1_a_lease_lives_its_ttl(subject: Subject<dyn Lease>) {
    let grant = subject.lease_of(8).await;
    subject.bind("l1/key", "alive", grant.id).await;
    subject.pass(grant.ttl - subject.ticks(2)).await;
    assert!(subject.read("l1/key").await.is_some(), "the lease ended before its time");
}

/// A lease nobody keeps alive ends about when its time does.
pub async fn l1_a_lease_lives_not_much_longer(subject: Subject<dyn Lease>) {
    let grant = subject.lease_of(8).await;
    subject.bind("l1/key", "alive", grant.id).await;
    subject.pass(grant.ttl + subject.ticks(SLACK)).await;
    if subject.read("l1/key").await.is_some() {
        let kept = subject.keep_alive(grant.id).await;
        assert!(kept.is_err(), "the lease is alive long after its time");
    }
}

/// Keeping a lease alive gives it its whole time again, as often as it is done.
pub async fn l1_keeping_alive_starts_anew(subject: Subject<dyn Lease>) {
    let grant = subject.lease_of(8).await;
    subject.bind("l1/key", "alive", grant.id).await;
    for _ in 0..3 {
        subject.pass(grant.ttl - subject.ticks(3)).await;
        let kept = subject.keep_alive(grant.id).await.expect("a living lease is kept alive");
        assert_eq!(kept.id, grant.id);
        assert!(kept.ttl >= subject.ticks(8), "{:?} is less than was asked for", kept.ttl);
    }
    subject.pass(grant.ttl - subject.ticks(3)).await;
    assert!(subject.read("l1/key").await.is_some(), "the lease ended though it was kept alive");
}

/// A store that knows of its holders' deaths ends a lease that is abandoned; any other waits for its time.
pub async fn l12_the_dead_are_not_waited_for_where_that_is_known(subject: Subject<dyn Lease>) {
    let lease = subject.long_lease().await;
    subject.bind("l12/key", "alive", lease).await;
    subject.abandon(lease);
    let left = subject.read("l12/key").await;
    assert_eq!(left.is_none(), subject.facts().knows_deaths);
}

/// Once a revocation has returned, the lease's keys are gone, and no others.
pub async fn l4_revocation_ends_its_keys(subject: Subject<dyn Lease>) {
    let (lease, other) = (subject.long_lease().await, subject.long_lease().await);
    subject.bind("l4/a", "1", lease).await;
    subject.bind("l4/b", "2", lease).await;
    subject.bind("l4/c", "3", other).await;
    subject.put("l4/d", "4").await;
    subject.end(lease).await;
    let left = subject.list("l4/").await.expect("keys can be listed").entries;
    let mut keys: Vec<_> = left.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["l4/c", "l4/d"]);
    assert_eq!(subject.read("l4/a").await, None);
}

/// When a lease's time has ended, so have its keys.
pub async fn l4_expiry_ends_its_keys(subject: Subject<dyn Lease>) {
    let grant = subject.lease_of(3).await;
    subject.bind("l4/a", "1", grant.id).await;
    subject.bind("l4/b", "2", grant.id).await;
    subject.put("l4/c", "3").await;
    subject.gone("l4/a", 3 * grant.ttl).await;
    subject.gone("l4/b", subject.ticks(1)).await;
    assert!(subject.read("l4/c").await.is_some());
}

/// Watchers are told of every key that ends with a revoked lease.
pub async fn l4_watchers_are_told_of_a_revocation(subject: Subject<dyn Lease>) {
    let lease = subject.long_lease().await;
    subject.bind("l4/a", "1", lease).await;
    let from = subject.bind("l4/b", "2", lease).await;
    let mut watch = subject.watch("l4/", from);
    subject.end(lease).await;
    told(&subject, &mut watch, PATIENCE).await;
}

/// Watchers are told of every key that ends with an expired lease, without anybody asking.
pub async fn l4_watchers_are_told_of_an_expiry(subject: Subject<dyn Lease>) {
    let grant = subject.lease_of(3).await;
    subject.bind("l4/a", "1", grant.id).await;
    let from = subject.bind("l4/b", "2", grant.id).await;
    let mut watch = subject.watch("l4/", from);
    let ticks = grant.ttl.as_nanos().div_ceil(subject.ticks(1).as_nanos());
    let ticks = 3 * u32::try_from(ticks).expect("a short time") + PATIENCE;
    told(&subject, &mut watch, ticks).await;
}

/// Both keys' ends must be among what the watch gives.
async fn told(
    subject: &Subject<dyn Lease>,
    watch: &mut flare_core::port::Scan<'static, flare_core::port::KeyEvent>,
    ticks: u32,
) {
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let event = subject.event(watch, ticks).await;
        if event.kind == KeyChange::Deleted && !ended.contains(&event.key) {
            ended.push(event.key);
        }
    }
    ended.sort();
    assert_eq!(ended, ["l4/a", "l4/b"]);
}

/// Neither a revoked nor an expired lease can be brought back.
pub async fn l5_an_ended_lease_cannot_be_kept_alive(subject: Subject<dyn Lease>) {
    let revoked = subject.long_lease().await;
    subject.end(revoked).await;
    let expired = subject.lease_of(2).await;
    subject.bind("l5/expired", "1", expired.id).await;
    subject.gone("l5/expired", 3 * expired.ttl).await;
    for lease in [revoked, expired.id] {
        let error = subject.keep_alive(lease).await.expect_err("an ended lease stays ended");
        assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    }
}

/// Binding a key to an ended lease is refused, and the key stays as it was.
pub async fn l5_nothing_can_be_bound_to_an_ended_lease(subject: Subject<dyn Lease>) {
    let lease = subject.long_lease().await;
    subject.end(lease).await;
    subject.put("l5/old", "old").await;
    let before = subject.read("l5/old").await;
    for key in ["l5/old", "l5/new"] {
        let write = Write::new(key, "bound").lease(lease);
        let error = subject.write(write).await.expect_err("an ended lease holds nothing");
        assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    }
    assert_eq!(subject.read("l5/old").await, before);
    assert_eq!(subject.read("l5/new").await, None);
}

/// Ending a lease that has ended is no error.
pub async fn l5_ending_it_again_is_no_error(subject: Subject<dyn Lease>) {
    let lease = subject.long_lease().await;
    subject.end(lease).await;
    subject.revoke(lease).await.expect("ending it again is no error");
}
