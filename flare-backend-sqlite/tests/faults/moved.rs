//! Files that are taken away from underneath: nobody is told that something is stored that would be gone with
//! the process.

use std::fs;
use std::path::PathBuf;

use flare_core::{Error, ErrorKind};

use crate::children::{answer, this};
use crate::support::Scratch;
use crate::world::{World, block_on, put, stored};

fn log_of(scratch: &Scratch) -> PathBuf {
    PathBuf::from(format!("{}-wal", scratch.path().display()))
}

fn assert_gone(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let said = error.to_string();
    assert!(said.contains("moved or deleted underneath") && said.contains("restart"), "{said}");
}

pub(crate) fn deleted() {
    block_on(async {
        let scratch = Scratch::new();
        let flare = World::idle(&scratch.config()).await;
        put(&flare, "a", 1, 10).await.unwrap();
        fs::remove_file(scratch.path()).unwrap();
        for revision in 2..5 {
            assert_gone(&put(&flare, "a", revision, 10).await.unwrap_err());
        }
    });
}

pub(crate) fn put_back() {
    block_on(async {
        let scratch = Scratch::new();
        let flare = World::idle(&scratch.config()).await;
        put(&flare, "a", 1, 10).await.unwrap();
        let elsewhere = scratch.folder().join("elsewhere");
        fs::rename(scratch.path(), &elsewhere).unwrap();
        assert_gone(&put(&flare, "b", 1, 10).await.unwrap_err());
        fs::rename(&elsewhere, scratch.path()).unwrap();
        put(&flare, "c", 1, 10).await.unwrap();
        drop(flare);
        let next = World::idle(&scratch.config()).await;
        for name in ["a", "c"] {
            assert_eq!(stored(&next, name).await.unwrap(), 1, "{name}");
        }
    });
}

pub(crate) fn log_deleted() {
    block_on(async {
        let scratch = Scratch::new();
        let flare = World::idle(&scratch.config()).await;
        put(&flare, "a", 1, 10).await.unwrap();
        fs::remove_file(log_of(&scratch)).unwrap();
        assert_gone(&put(&flare, "a", 2, 10).await.unwrap_err());
    });
}

/// A handle that this process closes must not end the locks of its others: the next process that ends would
/// take the log for nobody's, and remove it.
pub(crate) fn others_end() {
    block_on(async {
        let scratch = Scratch::new();
        let flare = World::idle(&scratch.config()).await;
        put(&flare, "a", 1, 10).await.unwrap();
        drop(scratch.open());
        assert_eq!(answer(&mut this(&["open", scratch.path().to_str().unwrap()])), "opened\n");
        put(&flare, "a", 2, 10).await.unwrap();
        assert!(log_of(&scratch).exists());
        drop(flare);
        assert_eq!(stored(&World::idle(&scratch.config()).await, "a").await.unwrap(), 2);
    });
}
