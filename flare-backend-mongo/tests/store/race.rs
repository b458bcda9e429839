//! Two processes on one database put the same revisions of the same documents: each revision is a
//! change once, whoever comes first.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "it is a test, and says what it found"
)]

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::support::Scratch;
use crate::support::world::{body, items, put, url};
use flare_backend_memory::MemoryBackend;
use flare_backend_mongo::{MongoConfig, MongoRepository};
use flare_core::Flare;
use flare_core::Settings;
use flare_core::model::DocumentChange;
use flare_core::port::SystemClock;
use flare_testkit::{RecordingDelivery, Service, Trials};

const DOCUMENTS: usize = 20;
const REVISIONS: u64 = 25;
const RACERS: usize = 2;

/// Says to a copy of this program that it is a racer, and on which database.
const RACER: &str = "FLARE_TEST_RACER_DATABASE";

/// Whether this process is one of those that race; then it has.
pub(crate) fn is_racer() -> bool {
    let database = std::env::var(RACER).ok();
    database.inspect(|database| race_on(database)).is_some()
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("race")
        .test("single_puts_change_each_revision_once", |uri| race(uri, "single"))
        .test("batches_change_each_revision_once", |uri| race(uri, "batch"))
}

async fn race(uri: String, how: &'static str) {
    let scratch = Scratch::new(&uri);
    let flare = flare(scratch.config()).await;
    items(&flare).await;
    let program = std::env::current_exe().unwrap();
    let racers: Vec<_> = (0..RACERS)
        .map(|_| {
            Command::new(&program)
                .env(RACER, &scratch.name)
                .env("FLARE_TEST_RACER_HOW", how)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut changes: BTreeMap<String, usize> = BTreeMap::new();
    let mut winners = Vec::new();
    for racer in racers {
        let output = racer.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        winners.push(text.lines().count());
        for line in text.lines() {
            *changes.entry(line.to_owned()).or_default() += 1;
        }
    }
    assert_eq!(changes.len(), DOCUMENTS * REVISIONS as usize, "every revision is a change");
    let doubled: Vec<_> = changes.iter().filter(|(_, count)| **count != 1).collect();
    assert!(doubled.is_empty(), "changed more than once: {doubled:?}");
    println!("changes per process: {winners:?}");
}

async fn flare(config: MongoConfig) -> Flare {
    let repository = Arc::new(MongoRepository::connect(config).await.unwrap());
    let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
    let mut settings = Settings::default();
    // What is tried is who comes first, not how busy the machine is.
    settings.ingest_wait = Duration::from_secs(60);
    let builder = Flare::builder(MemoryBackend::new()).repository(repository).exclusive();
    builder.settings(settings).delivery(delivery).build().unwrap().0
}

#[tokio::main]
async fn race_on(database: &str) {
    let uri = std::env::var(Service::MONGODB.variable()).unwrap();
    let single = std::env::var("FLARE_TEST_RACER_HOW").is_ok_and(|how| how == "single");
    let flare = flare(MongoConfig::new(uri).database(database)).await;
    for rev in 1..=REVISIONS {
        let answers = if single {
            let puts = (0..DOCUMENTS).map(|id| put(&flare, id, rev));
            futures::future::join_all(puts).await
        } else {
            let documents = (0..DOCUMENTS).map(|id| (url(id), body(rev)));
            flare.put_documents(documents).await
        };
        for (id, answer) in answers.into_iter().enumerate() {
            match answer.unwrap() {
                DocumentChange::Created | DocumentChange::Updated => println!("{id}@{rev}"),
                DocumentChange::Unchanged | DocumentChange::Stale => {}
                other => panic!("a put cannot be {other:?}"),
            }
        }
    }
}
