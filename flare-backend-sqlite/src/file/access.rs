//! Takes the path that somebody named; gives a file there that this process may read and write, or says
//! what is in the way: a directory that is missing, an owner, a mode.

use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use flare_core::{Error, ErrorKind, Result};

use crate::error;

const OPERATION: &str = "open";

/// The path from the root on, with links resolved, as SQLite names its files.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    let refused = |why: &str| {
        let detail = format!("{:?} {why}", path.display().to_string());
        Err(error::of(ErrorKind::Invalid, OPERATION, detail).with_field("path"))
    };
    let Some(name) = path.file_name() else { return refused("is no path to a file") };
    if path.as_os_str().to_string_lossy().starts_with(':') {
        return refused("is no path to a file (memory is another backend)");
    }
    if let Ok(resolved) = path.canonicalize() {
        return Ok(resolved);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match folder.canonicalize() {
        Ok(folder) => Ok(folder.join(name)),
        Err(error) => {
            let what = format!("the directory {} of {}", folder.display(), path.display());
            Err(error::from_io(OPERATION, what, error).with_field("path"))
        }
    }
}

/// Finds a file that this process may read and write, or makes an empty one.
///
/// One that is there is only looked at: to close it would end the locks that this process has on it by
/// another handle, and another process could take its log away from underneath.
pub(super) fn find_or_make(path: &Path) -> Result<Metadata> {
    let made = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let found = match made {
        Ok(file) => return file.metadata().map_err(|error| refusal(path, error)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::metadata(path),
        Err(error) => Err(error),
    };
    let metadata = found.map_err(|error| refusal(path, error))?;
    if !metadata.is_file() {
        let detail = format!("{} is no ordinary file", path.display());
        return Err(error::of(ErrorKind::Invalid, OPERATION, detail).with_field("path"));
    }
    may_write(path, &metadata).map_err(|error| refusal(path, error))?;
    Ok(metadata)
}

#[cfg(target_os = "linux")]
fn may_write(path: &Path, _: &Metadata) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD};
    let rights = Access::READ_OK | Access::WRITE_OK;
    Ok(rustix::fs::accessat(CWD, path, rights, AtFlags::EACCESS)?)
}

#[cfg(not(target_os = "linux"))]
fn may_write(_: &Path, metadata: &Metadata) -> io::Result<()> {
    match metadata.permissions().readonly() {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }
}

/// Why a file cannot be opened: whose it is says more than that it is somebody else's.
pub(crate) fn refusal(path: &Path, error: io::Error) -> Error {
    let mut what = format!("{} cannot be opened for reading and writing", path.display());
    if error.kind() == io::ErrorKind::PermissionDenied {
        let there = fs::metadata(path).or_else(|_| fs::metadata(path.parent().unwrap_or(path)));
        if let Ok(metadata) = there {
            what.push_str(&ownership(&metadata));
        }
    }
    error::from_io(OPERATION, what, error).with_field("path")
}

#[cfg(unix)]
fn ownership(metadata: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    let what = if metadata.is_dir() { "its directory" } else { "it" };
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    format!(" ({what} belongs to user {owner} with mode {mode:o}{})", process_user())
}

#[cfg(not(unix))]
fn ownership(_: &Metadata) -> String {
    String::new()
}

/// Who this process is, as the system shows it.
#[cfg(target_os = "linux")]
fn process_user() -> String {
    use std::os::unix::fs::MetadataExt;
    let user = fs::metadata("/proc/self").map(|metadata| metadata.uid());
    user.map_or_else(|_| String::new(), |user| format!(", this process is user {user}"))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn process_user() -> String {
    String::new()
}
