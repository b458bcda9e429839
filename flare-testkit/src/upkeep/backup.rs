//! U8: a copy in a new file, or what to use instead.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use flare_core::ErrorKind;
use flare_core::port::{Purpose, Upkeep};

use super::progress::Heard;
use crate::Subject;

/// A path where nothing is; what is there in the end is removed.
struct NewPath(PathBuf);

impl NewPath {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("flare-backup-trial-{}-{count}", std::process::id());
        let path = Self(std::env::temp_dir().join(name));
        // What a process of the same number left that was killed.
        drop(fs::remove_file(&path.0));
        path
    }
}

impl Drop for NewPath {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// A store that can copy itself writes one new file, says how far it is, and never writes over anything;
/// one that cannot says what to use, and leaves nothing behind.
pub async fn u8_a_backup_is_a_new_file_or_what_to_use_instead(subject: Subject<dyn Upkeep>) {
    subject.finished(Purpose::Setup).await;
    let (new, heard) = (NewPath::new(), Heard::default());
    match subject.backup(&new.0, &heard).await {
        Ok(()) => {
            let heard = heard.all();
            assert!(heard.is_sorted_by_key(|(done, _)| *done), "{heard:?}");
            let ended = heard.last().is_some_and(|(done, total)| *total == Some(*done));
            assert!(ended, "a backup that is complete has said so: {heard:?}");
            let copy = fs::read(&new.0).expect("the copy is where it was wanted");
            let again = subject.backup(&new.0, &()).await.expect_err("something is there");
            assert_eq!(again.kind(), ErrorKind::Conflict, "{again}");
            assert_eq!(fs::read(&new.0).ok(), Some(copy), "it was written over");
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(!error.detail().is_empty(), "it says what to use instead: {error}");
            assert!(!new.0.exists(), "it left something behind");
        }
    }
}
