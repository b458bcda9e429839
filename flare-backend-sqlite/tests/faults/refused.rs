//! Files that are not opened: of a newer Flare, of something else, where machines share them.

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
