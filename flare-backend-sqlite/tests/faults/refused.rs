//! Files that are not opened: of a newer Flare, of something else, where machines share them or another has them
//! open.

use std::fs::File;

use flare_backend_sqlite::SqliteBackend;
use flare_core::{Error, ErrorKind};

use crate::support::Scratch;

fn refused(scratch: &Scratch) -> Error {
    let refused = SqliteBackend::with_config(&scratch.config()).unwrap_err();
    assert_eq!(refused.field(), Some("path"), "{refused}");
    refused
}

pub(crate) fn newer() {
    let scratch = Scratch::new();
    drop(scratch.open());
    scratch.connect().pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(scratch.path()).unwrap();
    let error = refused(&scratch);
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let said = error.to_string();
    assert!(said.contains("schema version 99") && said.contains("update this node"), "{said}");
    assert_eq!(std::fs::read(scratch.path()).unwrap(), before, "it was left alone");
}

pub(crate) fn foreign() {
    let scratch = Scratch::new();
    scratch.connect().execute_batch("CREATE TABLE orders (id INTEGER)").unwrap();
    let error = refused(&scratch);
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("a database of something else"), "{error}");
}

pub(crate) fn shared() {
    let scratch = Scratch::new();
    let config = scratch.config().on_shared_file_system("NFS");
    let error = SqliteBackend::with_config(&config).unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Unsupported, Some("path")));
    assert!(error.to_string().contains("machines share (NFS)"), "{error}");
    assert!(!scratch.path().exists(), "no file was made there");
}

/// Machines that share a directory see each other's locks, and the row says whose each is.
pub(crate) fn held_elsewhere() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let lock = format!("{}-holder-4711-a", scratch.path().display());
    let held = File::create_new(&lock).unwrap();
    held.lock().unwrap();
    let note =
        "INSERT INTO holders (name, boot, pid, since) VALUES ('4711-a', 'another boot', 4711, 1)";
    scratch.connect().execute_batch(note).unwrap();
    let holders = || -> String {
        let names = "SELECT group_concat(name ORDER BY n) FROM holders";
        scratch.connect().query_one(names, [], |row| row.get(0)).unwrap()
    };
    let before = holders();
    // However often it is tried: nobody takes the holder for dead meanwhile.
    for _ in 0..2 {
        let error = refused(&scratch);
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let said = error.to_string();
        let path = scratch.path().display().to_string();
        for words in [&path, "open on another machine (process 4711 there)", "would corrupt it"] {
            assert!(said.contains(words), "{words} in {said}");
        }
        assert_eq!(holders(), before, "nothing is changed in it");
    }
    // A lock that is free proves its holder dead, on whichever machine it was.
    drop(held);
    drop(scratch.open());
    assert!(!std::fs::exists(&lock).unwrap(), "what it left is gone");
    assert!(holders().split(',').all(|name| name != "4711-a"), "so is its name");
}
