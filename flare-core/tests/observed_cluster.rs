//! What is counted and said of a cluster. Alone in its process: whether anything is logged at all is
//! decided for the whole of it.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "it is a test")]

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Settings;
use flare_core::cluster::ClusterSettings;
use flare_core::observe;
use flare_core::port::Lease;
use flare_testkit::World;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

const SLOTS: u32 = 8;

/// What is logged, all of it.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_happens_in_a_cluster_is_counted_and_said_under_the_documented_names() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _counted = metrics::set_default_local_recorder(&recorder);
    let log = Log::default();
    let writer = log.clone();
    let said = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let _said = tracing::subscriber::set_default(said.finish());

    let (mut settings, mut cluster) = (Settings::default(), ClusterSettings::default());
    settings.slots = Some(SLOTS);
    cluster.move_percent = 25;
    let mut world = World::on(MemoryBackend::with_clock, settings).leased(cluster);
    world.clock.give_turns(60);
    world.cluster.name = "a".to_owned();
    let a = world.start();
    world.pass(Duration::from_secs(30)).await;
    // A second node is given slots, and dies with them.
    world.cluster.name = "b".to_owned();
    world.start();
    world.pass(Duration::from_secs(60)).await;
    world.crash().await;
    world.pass(Duration::from_secs(60)).await;
    // And the first one loses its registration, and comes back.
    let before = a.member().node().unwrap();
    let key = format!("cluster/nodes/{before}");
    let lease = world.stores.lease().get(&key).await.unwrap().unwrap().lease.unwrap();
    world.stores.lease().revoke(lease).await.unwrap();
    world.pass(Duration::from_secs(30)).await;
    assert!(a.member().node().is_some_and(|now| now != before));

    let mut counted: BTreeMap<String, DebugValue> = BTreeMap::new();
    for (key, _, _, value) in snapshots.snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(|label| label.value()).collect();
        counted.insert([&[key.key().name()], &*labels].concat().join(" "), value);
    }
    let count = |name: &str| match counted.get(name) {
        Some(DebugValue::Counter(count)) => *count,
        Some(DebugValue::Gauge(gauge)) => gauge.into_inner() as u64,
        Some(DebugValue::Histogram(all)) => {
            assert!(all.iter().all(|one| (0.0..30.0).contains(&one.into_inner())), "{all:?}");
            all.len() as u64
        }
        None => panic!("{name} is not among {:?}", counted.keys()),
    };
    let of = |name: &str, label: &str| count(&format!("{name} {label}"));
    let slots = u64::from(SLOTS);
    assert_eq!((count(observe::CLUSTER_NODES), count(observe::CLUSTER_OWN_SLOTS)), (1, slots));
    assert_eq!((count(observe::CLUSTER_MEMBER), count(observe::CLUSTER_LEADER)), (1, 1));
    let states = ["owned", "moving", "unassigned"].map(|it| of(observe::CLUSTER_SLOTS, it));
    assert_eq!(states, [slots, 0, 0]);
    assert_eq!((count(observe::CLUSTER_WEIGHT), count(observe::CLUSTER_BUSY)), (100, 0));
    // The one that died did not lose its registration: it was not there to know.
    assert_eq!((count(observe::CLUSTER_JOINED), count(observe::CLUSTER_LOST)), (3, 1));
    let moves =
        ["free", "orphaned", "handed-over", "forced"].map(|it| of(observe::CLUSTER_MOVES, it));
    // All at first; then b's share, given up by a; then that again, left by b, and all, left by a.
    let share = moves[2];
    assert!((3..=4).contains(&share), "{moves:?}");
    assert_eq!(moves, [slots, share + slots, share, 0]);
    let changes = ["granted", "released", "lost"].map(|it| of(observe::CLUSTER_SLOT_CHANGES, it));
    assert_eq!(changes, [2 * slots + 2 * share, share, slots]);
    let rounds = count(observe::CLUSTER_HAND_OVER);
    assert!(rounds >= 1, "{rounds}");
    assert!(count(observe::CLUSTER_EPOCHS) >= 3 + rounds);
    assert!(count(observe::CLUSTER_PLANS) >= count(observe::CLUSTER_EPOCHS));

    let logged = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    for said in [
        "joined the cluster",
        "leads the cluster",
        "made a plan",
        "was granted slots",
        "is to give slots up",
        "has given slots up",
        "lost its place in the cluster",
        "all slots are lost with the registration",
    ] {
        assert!(logged.contains(said), "{said}\n{logged}");
    }
    let made = logged.lines().find(|line| line.contains("made a plan")).unwrap();
    assert!(made.contains(observe::MEMBER) && made.contains(observe::LEAD), "{made}");
}
