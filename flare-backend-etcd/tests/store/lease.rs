//! What the contract's suite cannot see: what stands in etcd, members that say nothing, writes
//! whose answer is lost.

#![allow(clippy::disallowed_methods, reason = "how long a call takes is measured in real time")]
#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::time::{Duration, Instant};

use flare_backend_etcd::{EtcdConfig, EtcdLease};
use flare_core::ErrorKind;
use flare_core::port::{Expect, KeyChange, Lease, Write, Written};
use flare_testkit::Trials;
use futures::StreamExt;

use crate::support::proxy::{Mode, Proxy};
use crate::support::{Scratch, made};

/// The time of a call where one member says nothing: half of it is the other's, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(6);

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("lease")
        .test("keys_and_values_stand_as_documented", keys_and_values_stand_as_documented)
        .test("what_others_put_there_stops_nobody", what_others_put_there_stops_nobody)
        .test("prefixes_do_not_see_each_other", prefixes_do_not_see_each_other)
        .test("a_short_lease_is_told_as_granted", a_short_lease_is_told_as_granted)
        .test("what_is_too_large_is_refused", what_is_too_large_is_refused)
        .test("revision_nought_is_no_key_s", revision_nought_is_no_key_s)
        .test("a_member_that_never_answers_is_passed", a_member_that_never_answers_is_passed)
        .test("a_member_that_falls_silent_is_passed", a_member_that_falls_silent_is_passed)
        .test("a_keep_alive_waits_for_no_other_answer", a_keep_alive_waits_for_no_other_answer)
        .test("nobody_there_is_told_in_time", nobody_there_is_told_in_time)
        .test("a_lost_answer_is_no_conflict", a_lost_answer_is_no_conflict)
        .test("a_lost_answer_is_no_second_write", a_lost_answer_is_no_second_write)
        .test("a_lost_answer_to_a_delete_is_told", a_lost_answer_to_a_delete_is_told)
        .test("a_watch_leaves_a_silent_member", a_watch_leaves_a_silent_member)
}

async fn keys_and_values_stand_as_documented(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let lease = scratch.lease().await;
    let grant = lease.grant(Duration::from_secs(60)).await.expect("it is granted");
    let write = Write::new("node/1", "{}").lease(grant.id);
    let revision = made(lease.write(write).await.expect("it is written"));

    let stored = scratch.client().await.get(format!("{}node/1", scratch.prefix), None).await;
    let stored = stored.expect("the server answers");
    let stored = stored.kvs().first().expect("it is under the prefix");
    let value = stored.value_str().expect("it is text");
    let (line, rest) = value.split_once('\n').expect("there are two lines");
    let mark = line.strip_prefix("1 ").expect("the format is 1");
    assert!(mark.len() == 32 && mark.chars().all(|c| c.is_ascii_hexdigit()), "{mark}");
    assert_eq!(rest, "{}");
    assert_eq!((stored.lease(), stored.mod_revision() as u64), (grant.id.get(), revision.get()));
}

async fn what_others_put_there_stops_nobody(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let lease = scratch.lease().await;
    let from = lease.list("").await.expect("it is listed").revision;
    let key = format!("{}odd", scratch.prefix);
    scratch.client().await.put(key.clone(), "by hand", None).await.expect("it is written");
    let binary = [scratch.prefix.as_bytes(), &[0xff, 0xfe]].concat();
    scratch.client().await.put(binary, "by hand", None).await.expect("it is written");
    made(lease.write(Write::new("own", "ours")).await.expect("it is written"));
    let mut watch = lease.watch("", from);
    let mut watched = Vec::new();
    for _ in 0..2 {
        let event = watch.next().await.expect("there is a change").expect("it is given");
        watched.push(event.key);
    }
    assert_eq!(watched, ["odd", "own"], "what has no name of ours is left out");
    let odd = lease.get("odd").await.expect("it is given").expect("it is there");
    assert_eq!(&odd.value[..], b"by hand", "as it is: nobody takes it for something of ours");
    let listed = lease.list("").await.expect("the others are listed").entries;
    let listed: Vec<_> = listed.iter().map(|it| (it.key.as_str(), &it.value[..])).collect();
    assert_eq!(listed, [("odd", &b"by hand"[..]), ("own", b"ours")]);
}

async fn prefixes_do_not_see_each_other(endpoints: String) {
    let (one, other) = (Scratch::new(&endpoints), Scratch::new(&endpoints));
    let (here, there) = (one.lease().await, other.lease().await);
    let from = here.list("").await.expect("it is listed").revision;
    made(there.write(Write::new("key", "theirs")).await.expect("it is written"));
    made(here.write(Write::new("key", "ours")).await.expect("it is written"));
    let entry = here.get("key").await.expect("it is read").expect("it is there");
    assert_eq!((&*entry.key, &*entry.value), ("key", &b"ours"[..]));
    let event = here.watch("", from).next().await.expect("there is one").expect("it is told");
    assert_eq!(event.kind, KeyChange::Written(entry));
}

async fn a_short_lease_is_told_as_granted(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let lease = scratch.lease().await;
    let grant = lease.grant(Duration::from_millis(200)).await.expect("it is granted");
    let told = scratch.client().await.lease_time_to_live(grant.id.get(), None).await;
    let granted = told.expect("the server answers").granted_ttl();
    assert_eq!(grant.ttl, Duration::from_secs(granted.unsigned_abs()));
    assert!(grant.ttl >= Duration::from_secs(1), "etcd counts in seconds: {:?}", grant.ttl);
    let kept = lease.keep_alive(grant.id).await.expect("it is alive");
    assert_eq!(kept, grant);
}

async fn what_is_too_large_is_refused(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let lease = scratch.lease().await;
    let error = lease.write(Write::new("key", vec![b'x'; 2 << 20])).await;
    let error = error.expect_err("it is more than etcd takes");
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(!error.is_temporary());
    assert_eq!(lease.get("key").await.expect("it is read"), None);
}

async fn revision_nought_is_no_key_s(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let lease = scratch.lease().await;
    let write = Write::new("key", "x").expect(Expect::At(Default::default()));
    assert_eq!(lease.write(write).await.expect("it is answered"), Written::Conflict(None));
}

/// Somebody who takes connections, and says nothing.
async fn deaf() -> (tokio::net::TcpListener, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    (listener, format!("http://127.0.0.1:{port}"))
}

async fn a_member_that_never_answers_is_passed(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let (_listener, deaf) = deaf().await;
    let config = scratch.config_at([&*deaf, &*scratch.endpoints[0]]).timeout(TIMEOUT);
    let began = Instant::now();
    let lease = EtcdLease::connect(config).await.expect("one member is enough");
    assert!(began.elapsed() < TIMEOUT * 2, "{:?}", began.elapsed());
    for round in 0..20 {
        let began = Instant::now();
        made(lease.write(Write::new("key", round.to_string())).await.expect("it is written"));
        // The good one is asked first.
        assert!(began.elapsed() < TIMEOUT / 2, "{:?}", began.elapsed());
    }
}

async fn a_member_that_falls_silent_is_passed(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    for mode in [Mode::Silent, Mode::Mute] {
        let (proxy, lease) = two_ways(&scratch).await;
        let grant = lease.grant(Duration::from_secs(30)).await.expect("it is granted");
        proxy.set(mode);
        let began = Instant::now();
        lease.keep_alive(grant.id).await.expect("another member is asked");
        let noticed = began.elapsed();
        assert!(noticed >= TIMEOUT / 4, "{mode:?}: the silent one was asked: {noticed:?}");
        assert!(noticed < TIMEOUT, "{mode:?}: {noticed:?}");
        let began = Instant::now();
        lease.list("").await.expect("another member is asked");
        assert!(began.elapsed() < TIMEOUT / 4, "{mode:?}: it is not asked again");
    }
}

async fn a_keep_alive_waits_for_no_other_answer(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let proxy = Proxy::to(&scratch.endpoints[0]).await;
    let lease = EtcdLease::connect(scratch.config_at([&*proxy.url()]).timeout(TIMEOUT)).await;
    let lease = lease.expect("it is there");
    let grant = lease.grant(Duration::from_secs(30)).await.expect("it is granted");
    proxy.set(Mode::MuteFirst);
    let mut stuck = Box::pin(lease.list(""));
    assert!(futures::poll!(&mut stuck).is_pending());
    let kept = tokio::time::timeout(TIMEOUT / 2, lease.keep_alive(grant.id)).await;
    kept.expect("it has a connection of its own").expect("it is kept");
    assert!(futures::poll!(&mut stuck).is_pending(), "the answer to the list is swallowed");
}

async fn nobody_there_is_told_in_time(_: String) {
    let (_listener, deaf) = deaf().await;
    let timeout = Duration::from_millis(500);
    for (urls, kind) in [
        (vec!["http://127.0.0.1:1"], ErrorKind::Unavailable),
        (vec![&*deaf], ErrorKind::Timeout),
        (vec!["http://127.0.0.1:1", &*deaf], ErrorKind::Unavailable),
    ] {
        let began = Instant::now();
        let error = EtcdLease::connect(EtcdConfig::new(urls).timeout(timeout)).await;
        let error = error.expect_err("there is nobody");
        assert!(error.is_temporary(), "{error}");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

/// Two ways to one member, of which the first can swallow answers.
async fn two_ways(scratch: &Scratch) -> (Proxy, EtcdLease) {
    let proxy = Proxy::to(&scratch.endpoints[0]).await;
    let config = scratch.config_at([&*proxy.url(), &*scratch.endpoints[0]]).timeout(TIMEOUT);
    let lease = EtcdLease::connect(config.member_timeout(TIMEOUT / 4)).await;
    (proxy, lease.expect("both are there"))
}

async fn a_lost_answer_is_no_conflict(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let from = scratch.lease().await.list("").await.expect("it is listed").revision;

    let (proxy, lease) = two_ways(&scratch).await;
    proxy.set(Mode::Mute);
    let write = Write::new("key", "same").expect(Expect::Absent);
    let created = made(lease.write(write.clone()).await.expect("it is resolved"));
    let entry = lease.get("key").await.expect("it is read").expect("it is there");
    assert_eq!((entry.created, entry.revision), (created, created));

    // Somebody else who writes the very same is not taken for it.
    let other = scratch.lease().await.write(write).await.expect("it is answered");
    assert_eq!(other, Written::Conflict(Some(entry)));

    let (proxy, lease) = two_ways(&scratch).await;
    proxy.set(Mode::Mute);
    let write = Write::new("key", "same").expect(Expect::At(created));
    let written = made(lease.write(write).await.expect("it is resolved"));
    assert!(written > created);

    let mut watch = lease.watch("", from);
    for expected in [created, written] {
        let event = watch.next().await.expect("a watch goes on").expect("it is told");
        assert_eq!(event.revision, expected, "each write took place once");
    }
}

async fn a_lost_answer_is_no_second_write(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let (proxy, lease) = two_ways(&scratch).await;
    let from = lease.list("").await.expect("it is listed").revision;
    proxy.set(Mode::Mute);
    let first = made(lease.write(Write::new("key", "one")).await.expect("it is resolved"));
    let last = made(lease.write(Write::new("key", "last")).await.expect("it is written"));
    let mut watch = lease.watch("", from);
    for expected in [first, last] {
        let event = watch.next().await.expect("a watch goes on").expect("it is told");
        assert_eq!(event.revision, expected, "each write took place once");
    }
}

async fn a_lost_answer_to_a_delete_is_told(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let (proxy, lease) = two_ways(&scratch).await;
    let at = made(lease.write(Write::new("key", "x")).await.expect("it is written"));
    proxy.set(Mode::Mute);
    let error = lease.delete("key", Expect::At(at)).await.expect_err("nobody knows who did it");
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert_eq!(lease.get("key").await.expect("it is read"), None);

    let (proxy, lease) = two_ways(&scratch).await;
    made(lease.write(Write::new("key", "x")).await.expect("it is written"));
    proxy.set(Mode::Mute);
    made(lease.delete("key", Expect::Anything).await.expect("whoever did it, it is gone"));
    assert_eq!(lease.get("key").await.expect("it is read"), None);
}

async fn a_watch_leaves_a_silent_member(endpoints: String) {
    let scratch = Scratch::new(&endpoints);
    let proxy = Proxy::to(&scratch.endpoints[0]).await;
    let timeout = Duration::from_secs(2);
    let config = scratch.config_at([&*proxy.url(), &*scratch.endpoints[0]]).timeout(timeout);
    let lease = EtcdLease::connect(config).await.expect("both are there");
    let mut watch = lease.watch("", lease.list("").await.expect("it is listed").revision);
    let other = scratch.lease().await;
    for (round, mode) in [Mode::Open, Mode::Silent].into_iter().enumerate() {
        proxy.set(mode);
        let written = other.write(Write::new("key", round.to_string())).await;
        let written = made(written.expect("it is written"));
        // Before the connection itself is found dead, which takes longer.
        let event = tokio::time::timeout(timeout * 5, watch.next()).await;
        let event = event.expect("a silent member is left").expect("a watch goes on");
        assert_eq!(event.expect("it is told").revision, written, "{mode:?}");
    }
}
