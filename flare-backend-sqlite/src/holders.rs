//! Takes a place; gives this handle a file there that the system locks for as long as its process lives, and
//! tells of others whether theirs is still locked. A lock that is free is a proof: its holder is dead.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use flare_core::{ErrorKind, Result};

use crate::error;
use crate::file::Place;

const OPERATION: &str = "open";
/// How long somebody else may take to open the file, and how often that is looked at.
const OPENING: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The lock that this handle holds. It ends with the process, whatever ends that.
#[derive(Debug)]
pub(crate) struct HolderLock {
    name: String,
    path: PathBuf,
    _locked: File,
}

impl HolderLock {
    /// Makes and locks a file of a name that nobody else has.
    pub(crate) fn take(place: &Place, uptime: Duration) -> Result<Self> {
        let mut number = uptime.as_nanos();
        loop {
            let name = format!("{}-{number:x}", std::process::id());
            let path = path_of(place, &name);
            let made = OpenOptions::new().write(true).create_new(true).open(&path);
            let failed = |error| error::from_io(OPERATION, format!("{}", path.display()), error);
            match made {
                Ok(file) => {
                    file.try_lock().map_err(|error| failed(error.into()))?;
                    return Ok(Self { name, path, _locked: file });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for HolderLock {
    fn drop(&mut self) {
        // Whoever finds it first removes it; that it is not locked is what counts.
        _ = fs::remove_file(&self.path);
    }
}

/// Whether the holder of that name lives. Where that cannot be found out it is taken to.
pub(crate) fn lives(place: &Place, name: &str) -> bool {
    match File::open(path_of(place, name)) {
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes what a dead holder left.
pub(crate) fn bury(place: &Place, name: &str) {
    // It may be gone already; and if it stays it says nothing, for it is not locked.
    _ = fs::remove_file(path_of(place, name));
}

fn path_of(place: &Place, name: &str) -> PathBuf {
    place.beside(&format!("-holder-{name}"))
}

/// The right to open, make or change the file's shape, one process at a time.
#[derive(Debug)]
pub(crate) struct OpeningLock {
    _locked: File,
}

impl OpeningLock {
    /// Waits for it.
    pub(crate) fn take(place: &Place) -> Result<Self> {
        let path = place.beside("-lock");
        let made = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = made.map_err(|error| crate::file::refusal(&path, error))?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _locked: file }),
                Err(TryLockError::Error(error)) => {
                    return Err(error::from_io(OPERATION, format!("{}", path.display()), error));
                }
                Err(TryLockError::WouldBlock) if waited >= OPENING => {
                    let detail = format!(
                        "another process has been opening {} for {waited:?}",
                        path.display()
                    );
                    return Err(error::of(ErrorKind::Busy, OPERATION, detail));
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(LOOK_EVERY);
                    waited += LOOK_EVERY;
                }
            }
        }
    }
}
