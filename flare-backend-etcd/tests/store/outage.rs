//! Members that are killed, restarted, cut their history or lose their data, on clusters of the
//! trials' own: calls and watches go on, and nothing is lost, doubled or made up.

#![allow(clippy::disallowed_methods, reason = "a real server's time passes only by waiting")]
#![allow(clippy::print_stderr, reason = "what was measured is worth a line")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::made;
use crate::support::own_cluster::OwnCluster;
use async_trait::async_trait;
use etcd_client::Client;
use flare_backend_etcd::{EtcdConfig, EtcdLease};
use flare_core::ErrorKind;
use flare_core::port::{Expect, KeyChange, Lease, StoreRevision, Write, Written};
use flare_testkit::{Clause, Fixture, Subject, Trials, lease};
use futures::StreamExt;
use futures::future::join_all;
use tokio::time::sleep;

/// etcd gives leases their whole time again when the leader changes, so that nobody loses one for
/// want of somebody to ask. Then they live longer, and this clause is not about that.
const NOT_WHILE_LEADERS_CHANGE: &str = "l1_a_lease_lives_not_much_longer";

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("outage")
        .test("every_clause_holds_while_leaders_are_killed", |_| {
            clauses_while_leaders_are_killed(|clause| !clause.name.starts_with("l8"))
        })
        .test("no_history_has_a_gap_while_leaders_are_killed", |_| {
            clauses_while_leaders_are_killed(|clause| clause.name.starts_with("l8"))
        })
        .test("a_watch_misses_nothing_while_members_are_killed", watch_while_members_are_killed)
        .test("one_of_many_wins_while_leaders_are_killed", one_of_many_wins)
        .test("without_a_majority_calls_end_in_time_and_go_on_with_one", without_a_majority)
        .test("after_a_restart_the_same_client_goes_on", after_a_restart)
        .test("history_that_was_cut_ends_a_watch", history_that_was_cut)
        .test("a_store_that_lost_everything_ends_a_watch", a_store_that_lost_everything)
}

fn patient(cluster: &OwnCluster) -> EtcdConfig {
    EtcdConfig::new(&cluster.endpoints)
        .timeout(Duration::from_secs(30))
        .member_timeout(Duration::from_secs(3))
}

async fn connect(config: EtcdConfig) -> EtcdLease {
    EtcdLease::connect(config).await.expect("the cluster is there")
}

struct OnCluster {
    config: EtcdConfig,
}

#[async_trait]
impl Fixture for OnCluster {
    type Port = dyn Lease;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Lease>, ()) {
        (Arc::new(connect(self.config.clone()).await), ())
    }

    /// Long enough for an election.
    fn tick(&self) -> Duration {
        Duration::from_secs(2)
    }
}

async fn clauses_while_leaders_are_killed(wanted: fn(&Clause<dyn Lease>) -> bool) {
    let cluster = OwnCluster::start(3).await;
    let over = AtomicBool::new(false);
    let clauses = lease::CLAUSES.iter().filter(|clause| wanted(clause));
    let clauses: Vec<_> = clauses.filter(|it| it.name != NOT_WHILE_LEADERS_CHANGE).collect();
    let trying = async {
        let tasks = clauses.iter().map(|clause| {
            let config = patient(&cluster).prefix(format!("{}/", clause.name));
            let run = clause.run;
            tokio::spawn(async move {
                let (subject, ()) = Subject::open(OnCluster { config }).await;
                run(subject).await;
            })
        });
        let results = join_all(tasks).await;
        over.store(true, Ordering::Relaxed);
        results
    };
    let killing = async {
        let mut killed = 0;
        // Not more, as leases start anew each time, and some clauses wait for their end.
        while killed < 2 && !over.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(1500)).await;
            let leader = cluster.leader().await;
            cluster.kill(leader).await;
            killed += 1;
            sleep(Duration::from_secs(4)).await;
            cluster.revive(leader).await;
        }
        killed
    };
    let (results, killed) = tokio::join!(trying, killing);
    assert!(killed > 0);
    eprintln!("{} clauses, {killed} leaders killed", clauses.len());
    let broken: Vec<_> =
        clauses.iter().zip(results).filter(|(_, result)| result.is_err()).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

async fn watch_while_members_are_killed(_: String) {
    let cluster = OwnCluster::start(3).await;
    let config = EtcdConfig::new(&cluster.endpoints);
    let (here, there) = (connect(config.clone()).await, connect(config).await);
    let from = here.list("").await.expect("it is listed").revision;

    let over = AtomicBool::new(false);
    let writing = async {
        let (mut accepted, mut longest) = (BTreeMap::new(), Duration::ZERO);
        for round in 0.. {
            let is_over = over.load(Ordering::Relaxed);
            let (key, value) = (if is_over { "last" } else { "key" }, round.to_string());
            let began = Instant::now();
            let written = there.write(Write::new(key, value.clone())).await;
            longest = longest.max(began.elapsed());
            match written {
                Ok(Written::At(revision)) => {
                    accepted.insert(revision, value);
                    if is_over {
                        break;
                    }
                }
                Ok(met) => panic!("nothing was expected, and yet: {met:?}"),
                Err(error) => assert!(error.is_temporary(), "{error:?}"),
            }
            sleep(Duration::from_millis(10)).await;
        }
        (accepted, longest)
    };
    let watching = async {
        let mut watch = here.watch("", from);
        let mut given = Vec::new();
        loop {
            let event = watch.next().await.expect("a watch goes on").expect("an outage is no end");
            let KeyChange::Written(entry) = event.kind else { panic!("nothing was deleted") };
            given.push((event.revision, String::from_utf8_lossy(&entry.value).into_owned()));
            if event.key == "last" {
                return given;
            }
        }
    };
    let killing = async {
        for member in [0, 1, 2] {
            sleep(Duration::from_millis(500)).await;
            cluster.kill(member).await;
            sleep(Duration::from_secs(2)).await;
            cluster.revive(member).await;
        }
        sleep(Duration::from_millis(500)).await;
        over.store(true, Ordering::Relaxed);
    };
    let ((mut accepted, longest), given, ()) = tokio::join!(writing, watching, killing);

    let (count, all) = (accepted.len(), given.len());
    eprintln!("{count} writes accepted, {all} changes given, the longest call took {longest:?}");
    assert!(count > 50, "{count} writes were accepted");
    // Nobody else writes there, so revisions have no gaps.
    for (expected, (revision, value)) in (from.get() + 1..).zip(given) {
        assert_eq!(revision.get(), expected, "each change is given, and given once");
        if let Some(accepted) = accepted.remove(&revision) {
            assert_eq!(value, accepted);
        }
    }
    assert!(accepted.is_empty(), "accepted and never seen: {accepted:?}");
    assert!(longest < Duration::from_secs(10), "a call of 2 s took {longest:?}");
}

async fn one_of_many_wins(_: String) {
    let cluster = OwnCluster::start(3).await;
    let contenders = join_all((0..4).map(|_| connect(patient(&cluster)))).await;
    let over = AtomicBool::new(false);
    let contending = async {
        let mut rounds = 0;
        while !over.load(Ordering::Relaxed) {
            rounds += 1;
            let key = format!("round/{rounds}");
            // All write the same: whose it is only the revision says.
            let write = || Write::new(&*key, "mine").expect(Expect::Absent);
            let results = join_all(contenders.iter().map(|it| it.write(write()))).await;
            let there = contenders[0].get(&key).await.expect("it is read");
            let there = there.expect("somebody wrote it");
            let mut winners = 0;
            for result in results {
                match result.expect("an election takes less than a call may") {
                    Written::At(revision) => {
                        assert_eq!(revision, there.revision);
                        winners += 1;
                    }
                    Written::Conflict(found) => assert_eq!(found.as_ref(), Some(&there)),
                }
            }
            assert_eq!(winners, 1, "in round {rounds}");
        }
        rounds
    };
    let killing = async {
        for _ in 0..3 {
            sleep(Duration::from_secs(1)).await;
            let leader = cluster.leader().await;
            cluster.kill(leader).await;
            sleep(Duration::from_secs(2)).await;
            cluster.revive(leader).await;
        }
        over.store(true, Ordering::Relaxed);
    };
    let (rounds, ()) = tokio::join!(contending, killing);
    eprintln!("{rounds} rounds, 3 leaders killed");
    assert!(rounds > 20, "{rounds} rounds were made");
}

/// The one member that is left answers, but it cannot know what is true.
async fn without_a_majority(_: String) {
    let cluster = OwnCluster::start(3).await;
    let lease = connect(EtcdConfig::new(&cluster.endpoints)).await;
    let first = made(lease.write(Write::new("key", "1")).await.expect("it is written"));
    let mut watch = lease.watch("", first);
    for member in [0, 1] {
        cluster.kill(member).await;
    }
    for _ in 0..5 {
        let began = Instant::now();
        let errors = [
            lease.list("").await.expect_err("nobody knows"),
            lease.write(Write::new("key", "lost")).await.expect_err("nobody agrees"),
        ];
        for error in errors {
            assert!(error.is_temporary(), "{error}");
        }
        // Two calls of 2 s each, on a busy machine.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    for member in [0, 1] {
        cluster.revive(member).await;
    }
    let last = loop {
        match lease.write(Write::new("last", "2")).await {
            Ok(written) => break made(written),
            Err(error) => assert!(error.is_temporary(), "{error}"),
        }
    };
    // What was in doubt may have been made since, each once.
    let mut seen = first;
    while seen < last {
        let event = watch.next().await.expect("a watch goes on").expect("an outage is no end");
        assert_eq!(event.revision.get(), seen.get() + 1, "each change is given, and given once");
        seen = event.revision;
    }
}

async fn after_a_restart(_: String) {
    let cluster = OwnCluster::start(1).await;
    let lease = connect(EtcdConfig::new(&cluster.endpoints)).await;
    let grant = lease.grant(Duration::from_secs(120)).await.expect("it is granted");
    let first = made(lease.write(Write::new("key", "1").lease(grant.id)).await.expect("written"));
    let mut watch = lease.watch("", first);
    for round in 2..4 {
        cluster.kill(0).await;
        let error = lease.keep_alive(grant.id).await.expect_err("there is nobody");
        assert!(error.is_temporary(), "{error}");
        cluster.revive(0).await;
        assert_eq!(lease.keep_alive(grant.id).await.expect("it is kept"), grant);
        let write = Write::new("key", round.to_string()).lease(grant.id);
        let written = made(lease.write(write).await.expect("it is written"));
        let event = watch.next().await.expect("a watch goes on").expect("a restart is no end");
        assert_eq!(event.revision, written);
    }
}

async fn history_that_was_cut(_: String) {
    let cluster = OwnCluster::start(1).await;
    let lease = connect(EtcdConfig::new(&cluster.endpoints)).await;
    let mut raw = Client::connect(&cluster.endpoints, None).await.expect("it is there");
    let first = made(lease.write(Write::new("key", "1")).await.expect("it is written"));
    let mut watch = lease.watch("", first);
    let second = made(lease.write(Write::new("key", "2")).await.expect("it is written"));
    assert_eq!(watch.next().await.expect("it goes on").expect("it is told").revision, second);
    let deleted = made(lease.delete("key", Expect::Anything).await.expect("deleted"));
    let last = made(lease.write(Write::new("other", "3")).await.expect("it is written"));

    // One that has what was cut goes on.
    for expected in [deleted, last] {
        assert_eq!(watch.next().await.expect("it goes on").expect("it is told").revision, expected);
    }
    raw.compact(deleted.get() as i64, None).await.expect("it is cut");
    let next = made(lease.write(Write::new("other", "4")).await.expect("it is written"));
    assert_eq!(watch.next().await.expect("it goes on").expect("it is told").revision, next);

    // One that lacks some of it is told so, also if all it lacks is what history was cut at.
    for from in [first, second] {
        let mut late = lease.watch("", from);
        let error = late.next().await.expect("it is told").expect_err("there is a gap");
        assert_eq!(error.kind(), ErrorKind::Compacted, "{error}");
        assert!(late.next().await.is_none(), "it has ended");
    }
    let mut after = lease.watch("", deleted);
    assert_eq!(after.next().await.expect("it goes on").expect("it is told").revision, last);
}

async fn a_store_that_lost_everything(_: String) {
    let cluster = OwnCluster::start(1).await;
    let lease = connect(patient(&cluster)).await;
    for round in 0..20 {
        made(lease.write(Write::new("key", round.to_string())).await.expect("it is written"));
    }
    let mut watch = lease.watch("", StoreRevision::new(1));
    for _ in 0..20 {
        watch.next().await.expect("a watch goes on").expect("it is told");
    }
    cluster.lose_everything().await;
    let error = watch.next().await.expect("it is told").expect_err("what it saw never happened");
    assert_eq!(error.kind(), ErrorKind::Compacted, "{error}");
    assert!(watch.next().await.is_none(), "it has ended");
    // The client itself goes on.
    assert!(lease.list("").await.expect("it is listed").entries.is_empty());
}
