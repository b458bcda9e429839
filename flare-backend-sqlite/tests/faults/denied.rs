//! Rights: whoever may not write is told whose the file is, and where to look.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use flare_backend_sqlite::SqliteBackend;

use crate::children::{answer, this_as_nobody};
use crate::support::Scratch;

/// In a process of its own: opens a file, and says what came of it.
pub(crate) fn open(path: &Path) -> ExitCode {
    match SqliteBackend::open(path) {
        Ok(_) => println!("opened"),
        Err(error) => println!("{}|{}|{error}", error.kind(), error.field().unwrap_or("")),
    }
    ExitCode::SUCCESS
}

fn assert_denied(scratch: &Scratch, says: &[&str]) {
    let path = scratch.path();
    let said = answer(&mut this_as_nobody(scratch.folder(), &["open", path.to_str().unwrap()]));
    assert!(said.starts_with("denied|path|"), "{said}");
    for word in says {
        assert!(said.contains(word), "{word} in {said}");
    }
}

pub(crate) fn file() {
    for mode in [0o444, 0o000] {
        let scratch = Scratch::new();
        drop(scratch.open());
        fs::set_permissions(scratch.folder(), Permissions::from_mode(0o777)).unwrap();
        fs::set_permissions(scratch.path(), Permissions::from_mode(mode)).unwrap();
        let shown = format!("mode {mode:o}");
        assert_denied(&scratch, &["flare.db cannot be opened", "it belongs to user", &shown]);
    }
}

/// A log cannot be kept beside a file there, however free the file itself is.
pub(crate) fn directory() {
    let scratch = Scratch::new();
    drop(scratch.open());
    // Whoever held it last has taken everything else away.
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o666)).unwrap();
    drop(fs::remove_file(format!("{}-lock", scratch.path().display())));
    fs::copy(std::env::current_exe().unwrap(), scratch.folder().join("program")).unwrap();
    fs::set_permissions(scratch.folder(), Permissions::from_mode(0o555)).unwrap();
    assert_denied(&scratch, &["its directory belongs to user", "mode 555"]);
    fs::set_permissions(scratch.folder(), Permissions::from_mode(0o755)).unwrap();
}
