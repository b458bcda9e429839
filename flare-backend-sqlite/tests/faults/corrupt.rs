//! Damage: one page of garbage, and a file that is none of ours any more.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use flare_backend_sqlite::{SqliteBackend, SqliteUpkeep};
use flare_core::model::DocumentChange;
use flare_core::port::{Part, Purpose, Upkeep};
use flare_core::{ErrorKind, Flare};

use crate::support::Scratch;
use crate::world::{World, block_on, put, stored};

const DOCUMENTS: usize = 300;
const CONTENT: usize = 1_500;

/// Writes garbage over a part of the file.
fn spoil(scratch: &Scratch, at: u64, bytes: usize) {
    let file = OpenOptions::new().write(true).open(scratch.path()).unwrap();
    let garbage: Vec<u8> = (0..bytes).map(|byte| (byte * 37 + 11) as u8).collect();
    file.write_all_at(&garbage, at).unwrap();
    file.sync_all().unwrap();
}

async fn fill(scratch: &Scratch) {
    let flare = World::idle(&scratch.config()).await;
    for number in 0..DOCUMENTS {
        put(&flare, &number.to_string(), 1, CONTENT).await.unwrap();
    }
}

async fn put_owned(flare: Flare, number: usize) -> flare_core::Result<DocumentChange> {
    put(&flare, &number.to_string(), 2, CONTENT).await
}

/// Moves what is in the log to its place: Flare may still be closing the file, and what is read from the log is
/// sound whatever became of the file.
fn with_an_empty_log(scratch: &Scratch) -> rusqlite::Connection {
    let connection = scratch.connect();
    let left: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(1)).unwrap();
    assert_eq!(left, 0, "frames are left in the log");
    connection
}

/// A page in the middle of the contents.
fn page_of_contents(scratch: &Scratch) -> (u64, u64) {
    let connection = with_an_empty_log(scratch);
    let size: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let find = "SELECT pageno FROM dbstat WHERE name = 'contents' AND pagetype = 'leaf' \
                ORDER BY path LIMIT 1 OFFSET 40";
    let page: i64 = connection.query_row(find, [], |row| row.get(0)).unwrap();
    (page.unsigned_abs() - 1, size.unsigned_abs())
}

pub(crate) fn one_page() {
    block_on(async {
        let scratch = Scratch::new();
        fill(&scratch).await;
        let (page, size) = page_of_contents(&scratch);
        spoil(&scratch, page * size, usize::try_from(size).unwrap());

        let World { flare, runtime, client } = World::open(&scratch.config()).await;
        let mut damaged = Vec::new();
        for number in 0..DOCUMENTS {
            match stored(&flare, &number.to_string()).await {
                Ok(revision) => assert_eq!(revision, 1),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    assert!(error.unreadable().is_some(), "it names the document: {error:?}");
                    for word in ["is damaged", "`flare fixup`", "a backup"] {
                        assert!(error.to_string().contains(word), "{word} in {error}");
                    }
                    damaged.push(number);
                }
            }
        }
        assert!((1..20).contains(&damaged.len()), "{damaged:?}");
        // Others can be written too, alone and beside one that cannot.
        let sound: Vec<usize> = (0..DOCUMENTS).filter(|it| !damaged.contains(it)).collect();
        let (some, many) = sound.split_at(3);
        for number in some {
            put(&flare, &number.to_string(), 2, CONTENT).await.unwrap();
        }
        let together = |numbers: &[usize]| {
            let each = |it: &usize| put_owned(flare.clone(), *it);
            futures::future::join_all(numbers.iter().map(each).collect::<Vec<_>>())
        };
        for sound in many.chunks(20) {
            let numbers: Vec<usize> = sound.iter().chain(&damaged).copied().collect();
            for (number, answer) in numbers.iter().zip(together(&numbers).await) {
                match answer {
                    Ok(_) => assert_eq!(stored(&flare, &number.to_string()).await.ok(), Some(2)),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                        assert!(damaged.contains(number), "{number}: {error}");
                    }
                }
            }
        }
        // Clients are told of those that can be read.
        let running = runtime.spawn();
        let not_told = || {
            let requests = client.requests();
            let told: BTreeSet<_> =
                requests.iter().map(|it| it.request.document.as_str()).collect();
            let urls = sound.iter().map(|number| crate::world::url(&number.to_string()));
            urls.filter(|url| !told.contains(url.as_str())).count()
        };
        let began = std::time::Instant::now();
        while not_told() > 0 {
            assert!(began.elapsed().as_secs() < 60, "{} of {} not told", not_told(), sound.len());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        drop(running);

        let upkeep = SqliteUpkeep::new(&scratch.config(), Part::Repository);
        let found = upkeep.plan(Purpose::Fixup).await.unwrap_err();
        assert_eq!(found.kind(), ErrorKind::Corrupt);
        assert!(found.to_string().contains("restore a backup"), "{found}");
        let copy = scratch.folder().join("copy.db");
        let refused = flare.backup(&copy).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
        assert!(!copy.exists(), "no copy rather than a damaged one");
    });
}

pub(crate) fn header() {
    block_on(async {
        let scratch = Scratch::new();
        fill(&scratch).await;
        drop(with_an_empty_log(&scratch));
        spoil(&scratch, 0, 100);
        let refused = SqliteBackend::with_config(&scratch.config()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
        assert!(refused.to_string().contains("flare.db"), "{refused}");
        assert!(refused.to_string().contains("no SQLite file"), "{refused}");
    });
}
