//! What the contract's suite cannot see: several processes on one store, and what is in it.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::collections::BTreeSet;
use std::time::Duration;

use flare_backend_mongo::MongoLease;
use flare_core::ErrorKind;
use flare_core::port::{Entry, Expect, KeyChange, Lease, StoreRevision, Write, Written};
use flare_testkit::Trials;
use futures::StreamExt;
use futures::future::join_all;
use mongodb::bson::{Document, doc};

use crate::support::Scratch;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("lease")
        .test("of_two_processes_one_gets_the_key", of_two_processes_one_gets_the_key)
        .test("a_watch_sees_what_another_process_does", a_watch_sees_what_another_process_does)
        .test("sixteen_writers_each_learn_their_own", sixteen_writers_each_learn_their_own)
        .test("calls_that_share_a_step_are_as_alone", calls_that_share_a_step_are_as_alone)
        .test("conflicts_over_a_large_value_share_steps", conflicts_over_a_large_value_share_steps)
        .test("keys_may_look_like_operators", keys_may_look_like_operators)
        .test("large_values_shorten_history", large_values_shorten_history)
        .test("what_has_no_room_is_refused", what_has_no_room_is_refused)
        .test("reads_write_nothing", reads_write_nothing)
        .test("reads_are_by_id", reads_are_by_id)
        .test("a_lost_record_is_not_made_anew", a_lost_record_is_not_made_anew)
        .test("a_rewound_store_ends_a_watch", a_rewound_store_ends_a_watch)
}

/// A connection of its own, as another process has.
async fn process(scratch: &Scratch) -> MongoLease {
    let config = scratch.config().poll_every(Duration::from_millis(20));
    MongoLease::connect(config).await.expect("the server is there")
}

async fn state(scratch: &Scratch) -> Document {
    let states = scratch.database().await.collection::<Document>("flare_lease");
    let found = states.find_one(doc! { "_id": "state" }).await.expect("the server answers");
    found.expect("there is a record")
}

fn made(written: Written) -> StoreRevision {
    match written {
        Written::At(revision) => revision,
        Written::Conflict(there) => panic!("the write met {there:?}"),
    }
}

async fn of_two_processes_one_gets_the_key(uri: String) {
    let scratch = Scratch::new(&uri);
    let (one, other) = (process(&scratch).await, process(&scratch).await);
    for round in 0..20 {
        let key = format!("leader/{round}");
        let write = |who: &'static str| Write::new(&key, who).expect(Expect::Absent);
        let (one, other) = tokio::join!(one.write(write("one")), other.write(write("other")));
        let (won, lost, winner) = match (one.expect("answered"), other.expect("answered")) {
            (Written::At(won), Written::Conflict(Some(lost))) => (won, lost, "one"),
            (Written::Conflict(Some(lost)), Written::At(won)) => (won, lost, "other"),
            both => panic!("one wins, the other learns of it: {both:?}"),
        };
        assert_eq!(lost, Entry::new(&key, winner, won, won, None));
    }
}

async fn a_watch_sees_what_another_process_does(uri: String) {
    let scratch = Scratch::new(&uri);
    let (here, there) = (process(&scratch).await, process(&scratch).await);
    let mut watch = here.watch("node/", StoreRevision::default());
    let lease = there.grant(Duration::from_millis(600)).await.expect("granted").id;
    let written = there.write(Write::new("node/1", "up").lease(lease)).await.expect("written");
    let event = watch.next().await.expect("it goes on").expect("it works");
    assert_eq!(event.revision, made(written));
    // Nobody keeps it alive, and nobody but the watch asks.
    let event = watch.next().await.expect("it goes on").expect("it works");
    assert_eq!((event.key.as_str(), event.kind), ("node/1", KeyChange::Deleted));
    let error = there.keep_alive(lease).await.expect_err("it has lapsed");
    assert_eq!(error.kind(), ErrorKind::Lost);
}

async fn sixteen_writers_each_learn_their_own(uri: String) {
    const WRITERS: usize = 16;
    const WRITES: usize = 10;
    let scratch = Scratch::new(&uri);
    let processes = [process(&scratch).await, process(&scratch).await];
    let mut watch = processes[0].watch("", StoreRevision::default());
    let writers = (0..WRITERS).map(|writer| {
        let process = &processes[writer % 2];
        async move {
            let mut revisions = Vec::new();
            for round in 0..WRITES {
                let (key, value) = (format!("of/{writer}"), format!("{writer} {round}"));
                revisions.push(made(process.write(Write::new(key, value)).await.expect("written")));
            }
            let entry = process.get(&format!("of/{writer}")).await.expect("read").expect("there");
            assert_eq!(entry.revision, revisions[WRITES - 1]);
            assert_eq!(entry.value, format!("{writer} {}", WRITES - 1));
            revisions
        }
    });
    let revisions: Vec<_> = join_all(writers).await;
    assert!(revisions.iter().all(|of_one| of_one.is_sorted()), "{revisions:?}");
    let all: BTreeSet<_> = revisions.into_iter().flatten().collect();
    assert_eq!(all.len(), WRITERS * WRITES, "every write has a revision of its own");
    for revision in all {
        let event = watch.next().await.expect("it goes on").expect("it works");
        assert_eq!(event.revision, revision);
    }
}

/// Of many calls at once, most wait for a step of several.
async fn calls_that_share_a_step_are_as_alone(uri: String) {
    let scratch = Scratch::new(&uri);
    let lease = process(&scratch).await;
    let ended = lease.grant(Duration::from_secs(60)).await.expect("granted").id;
    lease.revoke(ended).await.expect("revoked");
    let free = |index: usize| lease.write(Write::new(format!("free/{index}"), "mine"));
    let taken = |index: usize| {
        let write = Write::new(format!("taken/{}", index / 4), index.to_string());
        lease.write(write.expect(Expect::Absent))
    };
    let lost = |index: usize| lease.write(Write::new(format!("lost/{index}"), "").lease(ended));
    let gone = async |index: usize| {
        // Gives up before it is answered, and takes nobody with it.
        let write = lease.write(Write::new(format!("gone/{index}"), ""));
        tokio::select! { biased; _ = write => {}, () = tokio::task::yield_now() => {} }
    };
    let calls = (0..40)
        .map(async |index| tokio::join!(free(index), taken(index), lost(index), gone(index)));
    let mut revisions = BTreeSet::new();
    let mut winners = [0; 10];
    for (index, (free, taken, lost, ())) in join_all(calls).await.into_iter().enumerate() {
        assert!(revisions.insert(made(free.expect("written"))), "a revision of its own");
        assert_eq!(lost.expect_err("the lease has ended").kind(), ErrorKind::Lost);
        match taken.expect("answered") {
            Written::At(revision) => {
                assert!(revisions.insert(revision), "a revision of its own");
                winners[index / 4] += 1;
            }
            Written::Conflict(there) => {
                let there = there.expect("somebody was first");
                assert_eq!(there.key, format!("taken/{}", index / 4));
                assert_ne!(there.value, index.to_string());
            }
        }
    }
    assert_eq!(winners, [1; 10]);
    assert_eq!(lease.list("lost/").await.expect("read").entries, []);
}

async fn conflicts_over_a_large_value_share_steps(uri: String) {
    let scratch = Scratch::new(&uri);
    let lease = process(&scratch).await;
    let value = vec![3_u8; 900_000];
    made(lease.write(Write::new("plan", value.clone())).await.expect("written"));
    let writes = (0..24).map(|_| lease.write(Write::new("plan", "").expect(Expect::Absent)));
    for written in join_all(writes).await {
        match written.expect("answered") {
            Written::Conflict(Some(there)) => assert_eq!(there.value, value),
            other => panic!("it is there: {other:?}"),
        }
    }
}

async fn keys_may_look_like_operators(uri: String) {
    let scratch = Scratch::new(&uri);
    let lease = process(&scratch).await;
    let keys = ["", "$keys", "$$ROOT", "a.b", "$literal", "{\"$ne\":1}", "\0", "ä\u{10ffff}"];
    for key in keys {
        let revision = made(lease.write(Write::new(key, key.to_owned())).await.expect("written"));
        let entry = lease.get(key).await.expect("read").expect("it is there");
        assert_eq!(entry, Entry::new(key, key.to_owned(), revision, revision, None));
        let listed = lease.list(key).await.expect("read").entries;
        assert!(listed.contains(&entry), "{key:?} is under itself");
    }
    for key in keys {
        made(lease.delete(key, Expect::Anything).await.expect("deleted"));
        assert_eq!(lease.get(key).await.expect("read"), None);
    }
}

async fn large_values_shorten_history(uri: String) {
    let scratch = Scratch::new(&uri);
    let lease = process(&scratch).await;
    let start = lease.list("").await.expect("read").revision;
    let value = vec![7_u8; 900_000];
    let mut newest = start;
    for _ in 0..8 {
        newest = made(lease.write(Write::new("plan", value.clone())).await.expect("written"));
    }
    let error = lease.watch("", start).next().await.expect("it says so").expect_err("forgotten");
    assert_eq!(error.kind(), ErrorKind::Compacted);
    let before = StoreRevision::new(newest.get() - 1);
    let event = lease.watch("", before).next().await.expect("it goes on").expect("it works");
    assert_eq!(event.revision, newest);
}

async fn what_has_no_room_is_refused(uri: String) {
    let scratch = Scratch::new(&uri);
    let lease = process(&scratch).await;
    let error = lease.write(Write::new("k", vec![0_u8; 2 << 20])).await.expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let mut written = 0;
    let error = loop {
        match lease.write(Write::new(format!("k{written}"), vec![1_u8; 1_000_000])).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), written), (ErrorKind::Busy, 6), "{error}");
    // What is there can still be replaced, deleted, and lived with.
    made(lease.write(Write::new("k5", vec![2_u8; 1_000_000])).await.expect("written"));
    lease.grant(Duration::from_secs(1)).await.expect("granted");
    made(lease.delete("k0", Expect::Anything).await.expect("deleted"));
    made(lease.write(Write::new("k0", "small")).await.expect("written"));
}

async fn reads_write_nothing(uri: String) {
    let scratch = Scratch::new(&uri);
    let lease = process(&scratch).await;
    let id = lease.grant(Duration::from_secs(60)).await.expect("granted").id;
    made(lease.write(Write::new("a", "1").lease(id)).await.expect("written"));
    let before = state(&scratch).await;
    lease.get("a").await.expect("read");
    lease.list("").await.expect("read");
    let mut watch = lease.watch("", StoreRevision::default());
    watch.next().await.expect("it goes on").expect("it works");
    assert_eq!(state(&scratch).await, before);
    assert!(!before.contains_key("work"), "a step leaves nothing behind: {before}");
}

/// However many records of other parts a database has, there is one to look at.
async fn reads_are_by_id(uri: String) {
    let scratch = Scratch::new(&uri);
    process(&scratch).await;
    let read = doc! {
        "aggregate": "flare_lease",
        "pipeline": [{ "$match": { "_id": "state" } }, { "$project": { "revision": 1 } }],
        "cursor": {},
    };
    let explain = doc! { "explain": read, "verbosity": "executionStats" };
    let plan = scratch.database().await.run_command(explain).await.expect("explained").to_string();
    assert!(!plan.contains("COLLSCAN"), "{plan}");
    assert!(["IDHACK", "IXSCAN"].iter().any(|stage| plan.contains(stage)), "{plan}");
}

/// As after a restored backup, or a fail-over to a member that did not have all.
async fn a_rewound_store_ends_a_watch(uri: String) {
    let scratch = Scratch::new(&uri);
    let lease = process(&scratch).await;
    let mut watch = lease.watch("", StoreRevision::default());
    let backup = state(&scratch).await;
    made(lease.write(Write::new("a", "1")).await.expect("written"));
    watch.next().await.expect("it goes on").expect("it works");
    let states = scratch.database().await.collection::<Document>("flare_lease");
    states.replace_one(doc! { "_id": "state" }, backup).await.expect("restored");
    // One that waits already, and one that begins.
    for mut watch in [watch, lease.watch("", StoreRevision::new(1))] {
        let told = watch.next().await.expect("it says so").expect_err("history has gone back");
        assert_eq!(told.kind(), ErrorKind::Compacted, "{told}");
    }
}

async fn a_lost_record_is_not_made_anew(uri: String) {
    let scratch = Scratch::new(&uri);
    let lease = process(&scratch).await;
    let mut watch = lease.watch("", StoreRevision::default());
    made(lease.write(Write::new("a", "1")).await.expect("written"));
    watch.next().await.expect("it goes on").expect("it works");
    scratch.database().await.drop().await.expect("dropped");
    let error = lease.write(Write::new("a", "2")).await.expect_err("tokens would repeat");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let told = watch.next().await.expect("it says so").expect_err("there is nothing to watch");
    assert_eq!(told.kind(), ErrorKind::Corrupt, "{told}");
}
