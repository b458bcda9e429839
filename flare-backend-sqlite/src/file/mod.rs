//! Takes a path; gives the place of a database on this machine's own disk, or the reason why there can be
//! none, and tells whether the files that were opened are still the ones that are there.

mod access;
mod network;

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flare_core::Result;

pub(crate) use access::refusal;
pub(crate) use network::FileSystem;

/// Where a database is: its file, and the files beside it.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    file: Identity,
    /// The log beside it, once it is there.
    log: OnceLock<Identity>,
}

/// What tells a file from another one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

impl Place {
    /// The place at `path`, on a file system that is found out or, in a test, said. Makes an empty file
    /// where there is none.
    pub(crate) fn at(path: &Path, on: Option<FileSystem>) -> Result<Self> {
        let path = access::absolute(path)?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let on = on.map_or_else(|| FileSystem::of(folder), Ok)?;
        if let Some(refusal) = on.refusal(&path) {
            return Err(refusal);
        }
        let metadata = access::find_or_make(&path)?;
        Ok(Self { file: Identity::of(&metadata), path, log: OnceLock::new() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file beside the database, named after it.
    pub(crate) fn beside(&self, ending: &str) -> PathBuf {
        let mut name = OsString::from(self.path.as_os_str());
        name.push(ending);
        PathBuf::from(name)
    }

    /// Whether what is written goes to the files that are there under their names. What goes to a file
    /// that was deleted is gone with the process, so nobody is told that it is stored.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        Self::is_there(&self.path, Some(&self.file))?;
        let log = self.beside("-wal");
        match self.log.get() {
            known @ Some(_) => Self::is_there(&log, known),
            None => {
                if let Ok(metadata) = fs::metadata(&log) {
                    self.log.get_or_init(|| Identity::of(&metadata));
                }
                Ok(())
            }
        }
    }

    fn is_there(path: &Path, known: Option<&Identity>) -> std::result::Result<(), String> {
        let found = fs::metadata(path).map(|metadata| Identity::of(&metadata));
        match found {
            Ok(found) if Some(&found) == known => Ok(()),
            Ok(_) => Err(format!(
                "{} is another file than the one that was opened: put it back, or restart",
                path.display()
            )),
            Err(error) => Err(format!(
                "{} was moved or deleted underneath ({error}): put it back, or restart",
                path.display()
            )),
        }
    }
}

impl Identity {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), number: metadata.ino() }
    }

    /// That it is there has to do.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self { device: 0, number: 0 }
    }
}
