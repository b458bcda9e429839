//! What a change costs in the file: puts, makes a row, dispatches and settles documents of 1 KiB, and prints
//! how many a second and how much of a processor each takes.
//!
//! `cargo run --release -p flare-backend-sqlite --example journey -- [CHANGES] [BATCH] [TASKS] [SUBSCRIPTIONS]`

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "it measures"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flare_backend_sqlite::{SqliteBackend, SqliteRepository};
use flare_core::model::{
    Content, DocumentKey, DocumentUrl, Epoch, Generation, IdSource, Present, ResourceId, Revision,
    Round, RowEffect, RowKey, Spread, SubscriptionId, Timestamp, Version,
};
use flare_core::port::{DocumentStore, DocumentWrite, RowStore, RowUpdate};

struct Work {
    repository: Arc<SqliteRepository>,
    resource: ResourceId,
    subscriptions: Vec<SubscriptionId>,
    epoch: Epoch,
    content: Content,
    batch: usize,
}

impl Work {
    /// Takes a batch of documents from the put to the stored outcome.
    async fn change(&self, first: usize, revision: i64) {
        let key = |number| {
            let url = format!("http://api.example.com/tenants/acme/orders/{number:08}");
            DocumentKey::new(self.resource, DocumentUrl::parse(&url).unwrap())
        };
        let keys: Vec<DocumentKey> = (first..first + self.batch).map(key).collect();
        let (revision, version) = (Revision::new(revision), Version::live(Revision::new(revision)));
        let put =
            |key: &DocumentKey| DocumentWrite::put(key.clone(), revision, self.content.clone());
        let written = self.repository.write_documents(keys.iter().map(put).collect()).await;
        assert!(written.iter().all(Result::is_ok), "{written:?}");
        let spread = |key: &DocumentKey| {
            let document = key.clone();
            self.subscriptions.iter().map(move |subscription| {
                Spread::new(*subscription, Generation::new(1), document.clone(), version)
            })
        };
        let spreads = keys.iter().flat_map(spread).collect();
        self.repository.spread_rows(spreads).await.unwrap();
        let versions = keys.iter().map(|key| (key.clone(), version)).collect();
        let marked = self.repository.mark_dispatched(versions).await;
        assert!(marked.iter().all(Result::is_ok), "{marked:?}");
        let settle = |key: &DocumentKey| {
            let url = key.url.clone();
            self.subscriptions.iter().map(move |subscription| RowUpdate {
                key: RowKey::new(*subscription, url.clone()),
                round: Round::ZERO,
                effect: RowEffect::Settle { version, present: Present::Yes, not_before: None },
            })
        };
        let settled =
            self.repository.apply_rows(self.epoch, keys.iter().flat_map(settle).collect());
        let settled = settled.await;
        assert!(settled.iter().all(Result::is_ok), "{settled:?}");
    }
}

fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|it| it.parse().unwrap()).collect();
    let argument = |place: usize, usual: usize| arguments.get(place).copied().unwrap_or(usual);
    let (changes, batch) = (argument(0, 100_000), argument(1, 10));
    let (tasks, subscriptions) = (argument(2, 50), argument(3, 1));
    let folder = std::env::var("FLARE_BENCH_DIR").unwrap_or_else(|_| ".".to_owned());
    let path = format!("{folder}/journey-{}.db", std::process::id());
    let backend = SqliteBackend::open(&path).unwrap();
    let ids = IdSource::seeded(1);
    let now = Timestamp::from_unix_seconds(1_700_000_000);
    let repository = backend.repository();
    let epoch = repository.next_epoch().await.unwrap().epoch;
    let content = format!(r#"{{"rev":1,"text":"{}"}}"#, "x".repeat(1_000));
    let work = Arc::new(Work {
        repository,
        resource: ids.next(now).into(),
        subscriptions: (0..subscriptions).map(|_| ids.next(now).into()).collect(),
        epoch,
        content: Content::from_stored(Bytes::from(content)),
        batch,
    });
    for (round, revision) in [("created", 1_i64), ("updated", 2), ("updated", 3)] {
        let (began, used) = (Instant::now(), cpu());
        let each = changes / tasks / batch;
        let running: Vec<_> = (0..tasks)
            .map(|task| {
                let work = Arc::clone(&work);
                tokio::spawn(async move {
                    for turn in 0..each {
                        work.change((task * each + turn) * work.batch, revision).await;
                    }
                })
            })
            .collect();
        for task in running {
            task.await.unwrap();
        }
        let (took, used) = (began.elapsed(), cpu() - used);
        let done = (each * tasks * batch) as f64;
        println!(
            "{round}: {:.0} changes/s, {:.1} us CPU each, {done:.0} in {:.2} s",
            done / took.as_secs_f64(),
            used.as_secs_f64() * 1e6 / done,
            took.as_secs_f64()
        );
    }
    // One alone: what a commit takes.
    let began = Instant::now();
    for _ in 0..200 {
        work.repository.next_epoch().await.unwrap();
    }
    println!("a commit: {:?}", began.elapsed() / 200);
    let bytes = std::fs::metadata(&path).unwrap().len();
    println!("file: {:.0} bytes per document", bytes as f64 / changes as f64);
    drop((work, backend));
    for ending in ["", "-wal", "-shm", "-lock"] {
        _ = std::fs::remove_file(format!("{path}{ending}"));
    }
}
