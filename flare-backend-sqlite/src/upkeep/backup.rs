//! Takes a file that may be in use and a path; gives a copy of it there, of one moment, checked.
//!
//! One read transaction holds the moment, so that whoever writes is never waited for, and never waits: what
//! is written meanwhile stays in the log until the copy is complete. The copy gets its name last: whatever
//! happens before, there is nothing of that name.

use std::ffi::{OsString, c_int};
use std::fs::{self, File as Created};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flare_core::{Error, ErrorKind, Result};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{File, Opened, damage};
use crate::blocking::Reporter;
use crate::error;

const OPERATION: &str = "backup";
/// Pages copied at a time: a megabyte.
const PAGES_AT_A_TIME: c_int = 256;
/// How long others have the disk to themselves in between.
const PAUSE: Duration = Duration::from_millis(1);
/// How often in a row a step may find the file locked, as by a process that opens it.
const MOST_TRIES: u32 = 10_000;

impl File {
    /// Copies the file to a path where nothing is.
    pub(super) fn copy_to(&self, to: &Path, said: &Reporter) -> Result<()> {
        if to.symlink_metadata().is_ok() {
            return Err(taken(to));
        }
        let Some(opened) = self.open(OPERATION)? else {
            let detail = format!("there is no {} to copy", self.config.path().display());
            return Err(error::of(ErrorKind::NotFound, OPERATION, detail));
        };
        let unnamed = Unnamed::create(to)?;
        opened.copy_into(&unnamed, said)?;
        unnamed.name(to)
    }
}

impl Opened<'_> {
    fn copy_into(&self, unnamed: &Unnamed, said: &Reporter) -> Result<()> {
        let failed = |error| error::from_sqlite(OPERATION, error);
        let mut copy = Connection::open(&unnamed.0).map_err(failed)?;
        copy.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        self.connection.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema").map_err(failed)?;
        let copied = copy_all(&self.connection, &mut copy, said);
        self.connection.execute_batch("COMMIT").map_err(failed)?;
        copied?;
        let findings = damage::findings(&copy).map_err(failed)?;
        if let Some(first) = findings.first() {
            let detail = format!(
                "the copy is damaged, as {} is ({first}): see `flare fixup`",
                self.place.path().display()
            );
            return Err(error::of(ErrorKind::Corrupt, OPERATION, detail));
        }
        copy.close().map_err(|(_, error)| failed(error))
    }
}

/// Copies page after page from the moment that `from` reads.
fn copy_all(from: &Connection, to: &mut Connection, said: &Reporter) -> Result<()> {
    let failed = |error| error::from_sqlite(OPERATION, error);
    let backup = Backup::new(from, to).map_err(failed)?;
    let mut tries = 0;
    loop {
        if !said.is_heard() {
            return Err(error::of(ErrorKind::Conflict, OPERATION, "nobody waits for it any more"));
        }
        let step = backup.step(PAGES_AT_A_TIME).map_err(failed)?;
        let progress = backup.progress();
        let pages = |pages: c_int| u64::try_from(pages).unwrap_or_default();
        let (left, all) = (pages(progress.remaining), pages(progress.pagecount));
        said.advanced(all.saturating_sub(left), all);
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => tries = 0,
            _ if tries >= MOST_TRIES => {
                let detail = "another process has had the file locked all the while";
                return Err(error::of(ErrorKind::Busy, OPERATION, detail));
            }
            _ => tries += 1,
        }
        std::thread::sleep(PAUSE);
    }
}

fn taken(to: &Path) -> Error {
    let detail = format!("{} is there already, and is not written over", to.display());
    error::of(ErrorKind::Conflict, OPERATION, detail).with_field("path")
}

/// A copy that does not have its name yet; removed unless it gets it.
struct Unnamed(PathBuf);

impl Unnamed {
    /// An empty file beside the name it is to have.
    fn create(to: &Path) -> Result<Self> {
        let path = with_ending(to, &format!(".part-{}", std::process::id()));
        match Created::create_new(&path) {
            Ok(_) => Ok(Self(path)),
            Err(error) => {
                let what = format!("{} cannot be made", path.display());
                Err(error::from_io(OPERATION, what, error).with_field("path"))
            }
        }
    }

    /// Gives it its name, unless something has that by now.
    fn name(self, to: &Path) -> Result<()> {
        let failed = |error: io::Error| {
            error::from_io(OPERATION, format!("{} cannot be named", to.display()), error)
        };
        match fs::hard_link(&self.0, to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(taken(to)),
            // Some file systems know one name a file.
            Err(_) if to.symlink_metadata().is_ok() => return Err(taken(to)),
            Err(_) => fs::rename(&self.0, to).map_err(failed)?,
        }
        drop(self);
        // The name is on the disk when the directory is.
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = Created::open(folder.unwrap_or(Path::new(".")));
        folder.and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        for ending in ["", "-journal", "-wal", "-shm"] {
            // Most of them are not there.
            _ = fs::remove_file(with_ending(&self.0, ending));
        }
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(ending);
    PathBuf::from(name)
}
