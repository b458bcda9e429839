//! Takes what SQLite and the file system say; gives Flare's errors. Which code means what is one table here.

use std::io;

use flare_core::{Error, ErrorKind};
use rusqlite::ffi;

use crate::BACKEND;

/// SQLite's result codes, what each means to whoever called, and what to do about it.
const TABLE: &[(i32, ErrorKind, &str)] = &[
    (ffi::SQLITE_PERM, ErrorKind::Denied, ""),
    (ffi::SQLITE_AUTH, ErrorKind::Denied, ""),
    (ffi::SQLITE_READONLY, ErrorKind::Denied, "this process may not write to it"),
    (ffi::SQLITE_BUSY, ErrorKind::Busy, "another process has been writing to it all the while"),
    (ffi::SQLITE_LOCKED, ErrorKind::Busy, ""),
    (ffi::SQLITE_PROTOCOL, ErrorKind::Busy, ""),
    (ffi::SQLITE_SCHEMA, ErrorKind::Busy, ""),
    (ffi::SQLITE_NOMEM, ErrorKind::Busy, "there is no memory left"),
    (ffi::SQLITE_FULL, ErrorKind::Busy, "the disk is full: work goes on once there is room"),
    (ffi::SQLITE_INTERRUPT, ErrorKind::Timeout, ""),
    (ffi::SQLITE_IOERR, ErrorKind::Unavailable, "the disk could not be read or written"),
    (ffi::SQLITE_CANTOPEN, ErrorKind::Unavailable, ""),
    (ffi::SQLITE_TOOBIG, ErrorKind::TooLarge, ""),
    (
        ffi::SQLITE_CORRUPT,
        ErrorKind::Corrupt,
        "a part of the file is damaged: see `flare fixup`, or restore a backup",
    ),
    (ffi::SQLITE_NOTADB, ErrorKind::Corrupt, "it is no SQLite file"),
    (ffi::SQLITE_FORMAT, ErrorKind::Corrupt, ""),
    (ffi::SQLITE_NOLFS, ErrorKind::Unsupported, ""),
];

/// A failure of SQLite, met in `operation`.
pub(crate) fn from_sqlite(operation: &'static str, error: rusqlite::Error) -> Error {
    let (kind, meaning) = match code(&error) {
        Some(code) => meaning(code),
        // A value of another type than it is written with.
        None if is_misread(&error) => {
            (ErrorKind::Corrupt, "a record is not laid out as it should be")
        }
        None => (ErrorKind::Internal, ""),
    };
    let shown = error.to_string();
    let detail = if meaning.is_empty() { shown } else { format!("{meaning} ({shown})") };
    Error::new(kind, operation).with_backend(BACKEND).with_detail(detail).with_source(error)
}

/// The result code, with its details in the upper bits.
pub(crate) fn code(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

/// Whether it is about one record alone: others in the same transaction may well be stored.
pub(crate) fn is_of_one_record(error: &rusqlite::Error) -> bool {
    let of_all = [
        ffi::SQLITE_FULL,
        ffi::SQLITE_IOERR,
        ffi::SQLITE_NOMEM,
        ffi::SQLITE_BUSY,
        ffi::SQLITE_READONLY,
        ffi::SQLITE_CANTOPEN,
        ffi::SQLITE_INTERRUPT,
    ];
    code(error).is_none_or(|code| !of_all.contains(&(code & 0xff)))
}

/// Whether a page of the file is damaged.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    code(error).is_some_and(|code| code & 0xff == ffi::SQLITE_CORRUPT)
}

/// Whether a transaction that failed with it may pass in parts: the disk has room for some of it.
pub(crate) fn may_pass_alone(error: &rusqlite::Error) -> bool {
    let of_size = [ffi::SQLITE_FULL, ffi::SQLITE_IOERR, ffi::SQLITE_NOMEM];
    is_of_one_record(error) || code(error).is_some_and(|code| of_size.contains(&(code & 0xff)))
}

fn is_misread(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
    )
}

fn meaning(code: i32) -> (ErrorKind, &'static str) {
    if code == ffi::SQLITE_READONLY_DBMOVED {
        return (ErrorKind::Unavailable, "the file was moved or deleted");
    }
    let known = TABLE.iter().find(|(primary, ..)| *primary == code & 0xff);
    known.map_or((ErrorKind::Internal, ""), |(_, kind, meaning)| (*kind, meaning))
}

/// A failure of the file system, met in `operation` while it did something to a file.
pub(crate) fn from_io(operation: &'static str, what: String, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => ErrorKind::Conflict,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Busy,
        io::ErrorKind::IsADirectory => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    let detail = format!("{what}: {error}");
    Error::new(kind, operation).with_backend(BACKEND).with_detail(detail).with_source(error)
}

/// An error of ours, met in `operation`.
pub(crate) fn of(kind: ErrorKind, operation: &'static str, detail: impl Into<String>) -> Error {
    Error::new(kind, operation).with_backend(BACKEND).with_detail(detail.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn every_code_means_what_it_should() {
        let meant = [
            (ErrorKind::Denied, vec![3, 8, 23, 264, 520, 776, 1288, 1544]),
            (ErrorKind::Busy, vec![5, 6, 7, 13, 15, 17, 261, 262, 517, 773]),
            (ErrorKind::Timeout, vec![9]),
            (ErrorKind::Unavailable, vec![10, 14, 266, 778, 1034, 1032, 5642, 526]),
            (ErrorKind::TooLarge, vec![18]),
            (ErrorKind::Corrupt, vec![11, 24, 26, 267, 523, 779]),
            (ErrorKind::Unsupported, vec![22]),
            (ErrorKind::Internal, vec![1, 2, 19, 20, 21, 25, 2067, 1555, 99]),
        ];
        for (kind, codes) in meant {
            for code in codes {
                assert_eq!(from_sqlite("write", failure(code)).kind(), kind, "code {code}");
            }
        }
    }

    #[test]
    fn no_code_is_listed_twice() {
        let mut codes: Vec<i32> = TABLE.iter().map(|(code, ..)| *code).collect();
        codes.sort_unstable();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    }

    #[test]
    fn a_full_disk_is_temporary_and_says_so() {
        let error = from_sqlite("write_documents", failure(ffi::SQLITE_FULL));
        assert!(error.is_temporary());
        assert!(error.to_string().contains("work goes on once there is room"), "{error}");
    }

    #[test]
    fn what_concerns_one_record_is_told_from_what_concerns_all() {
        for code in [11, 19, 18, 2067, 779] {
            assert!(is_of_one_record(&failure(code)), "{code}");
        }
        for code in [5, 7, 8, 9, 10, 13, 14, 778, 1034, 261] {
            assert!(!is_of_one_record(&failure(code)), "{code}");
        }
        assert!(is_of_one_record(&rusqlite::Error::QueryReturnedNoRows));
    }

    #[test]
    fn the_file_system_s_faults_are_told_apart() {
        let kind = |kind: io::ErrorKind| from_io("open", "x".to_owned(), kind.into()).kind();
        assert_eq!(kind(io::ErrorKind::PermissionDenied), ErrorKind::Denied);
        assert_eq!(kind(io::ErrorKind::ReadOnlyFilesystem), ErrorKind::Denied);
        assert_eq!(kind(io::ErrorKind::NotFound), ErrorKind::NotFound);
        assert_eq!(kind(io::ErrorKind::StorageFull), ErrorKind::Busy);
        assert_eq!(kind(io::ErrorKind::Interrupted), ErrorKind::Unavailable);
    }
}
