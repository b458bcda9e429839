//! A copy is complete, of one moment, in nobody's way; and there is none if anything is wrong.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_backend_sqlite::{SqliteBackend, SqliteConfig};
use flare_core::model::NewResource;
use flare_core::port::StepProgress;
use flare_core::{ErrorKind, Flare};
use flare_testkit::RecordingDelivery;

use crate::support::Scratch;

const URL: &str = "http://api.example/docs/";
/// Enough for many steps.
const DOCUMENTS: usize = 400;
const CONTENT: usize = 60_000;

async fn flare(config: &SqliteConfig) -> Flare {
    let stores = SqliteBackend::with_config(config).unwrap();
    let delivery = Arc::new(RecordingDelivery::default());
    let (flare, runtime) = Flare::builder(stores).delivery(delivery).build().unwrap();
    runtime.unused();
    let docs = NewResource::new(format!("{URL}{{id}}")).change_field("rev");
    flare.ensure_resource(docs).await.unwrap();
    flare
}

async fn fill(flare: &Flare) {
    let content = format!("{{\"rev\":1,\"x\":\"{}\"}}", "x".repeat(CONTENT));
    for number in 0..DOCUMENTS {
        flare.put_json(&format!("{URL}{number}"), content.clone()).await.unwrap();
    }
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<(u64, Option<u64>)>>);

impl StepProgress for Heard {
    fn advanced(&self, done: u64, total: Option<u64>) {
        self.0.lock().unwrap().push((done, total));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_has_all_that_was_accepted_and_puts_go_on_meanwhile() {
    let scratch = Scratch::new();
    let flare = flare(&scratch.config()).await;
    fill(&flare).await;
    let (accepted, over) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = {
        let (flare, accepted, over) = (flare.clone(), Arc::clone(&accepted), Arc::clone(&over));
        tokio::spawn(async move {
            let mut revision = 0;
            while !over.load(Ordering::SeqCst) {
                revision += 1;
                let json = format!("{{\"rev\":{revision}}}");
                flare.put_json(&format!("{URL}hot"), json).await.unwrap();
                accepted.store(revision, Ordering::SeqCst);
            }
        })
    };
    while accepted.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let before = accepted.load(Ordering::SeqCst);
    let (copy, heard) = (scratch.folder().join("copy.db"), Heard::default());
    flare.backup_with(&copy, &heard).await.unwrap();
    let after = accepted.load(Ordering::SeqCst);
    over.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    assert!(after > before + 10, "puts went on: {before} to {after}");
    let heard = heard.0.into_inner().unwrap();
    assert!(heard.len() > 2 && heard.is_sorted(), "{heard:?}");
    assert_eq!(heard.last().map(|(done, total)| Some(*done) == *total), Some(true));

    let restored = self::flare(&SqliteConfig::new(&copy)).await;
    for number in 0..DOCUMENTS {
        let document = restored.document(&format!("{URL}{number}")).await.unwrap();
        assert!(
            document.content.is_some_and(|content| content.as_bytes().len() > CONTENT),
            "{number}"
        );
    }
    let hot = restored.document(&format!("{URL}hot")).await.unwrap();
    let hot = hot.version.revision().get();
    assert!((before..=after + 1).contains(&hot), "one moment of it: {before} {hot} {after}");
    // Nothing of the work is left beside it, but what its opening made.
    let names = std::fs::read_dir(scratch.folder()).unwrap();
    let names: Vec<_> = names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains(".part-")), "{names:?}");
}

#[tokio::test]
async fn nothing_is_written_over() {
    let scratch = Scratch::new();
    let flare = flare(&scratch.config()).await;
    let there = scratch.folder().join("mine");
    std::fs::write(&there, "precious").unwrap();
    for to in [&there, &scratch.path()] {
        let refused = flare.backup(to).await.unwrap_err();
        assert_eq!((refused.kind(), refused.field()), (ErrorKind::Conflict, Some("path")));
    }
    assert_eq!(std::fs::read(&there).unwrap(), b"precious");
    let nowhere = flare.backup(scratch.folder().join("deep/copy.db")).await.unwrap_err();
    assert_eq!((nowhere.kind(), nowhere.field()), (ErrorKind::NotFound, Some("path")), "{nowhere}");
}

#[tokio::test]
async fn whoever_goes_away_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let flare = flare(&scratch.config()).await;
    fill(&flare).await;
    let copy = scratch.folder().join("copy.db");
    {
        let backup = flare.backup(&copy);
        tokio::pin!(backup);
        let begun = || std::fs::read_dir(scratch.folder()).unwrap().any(|it| is_part(&it.unwrap()));
        while !begun() {
            let turn = tokio::time::timeout(Duration::from_millis(1), &mut backup).await;
            assert!(turn.is_err(), "it was complete too soon");
        }
    }
    while std::fs::read_dir(scratch.folder()).unwrap().any(|it| is_part(&it.unwrap())) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!copy.exists());
}

fn is_part(entry: &std::fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().contains(".part-")
}
