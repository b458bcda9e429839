//! Takes what the server and the driver say; gives Flare's errors. Which code means what is one table here.

use flare_core::{Error, ErrorKind};
use tokio_postgres::error::SqlState;

use crate::BACKEND;

/// Beginnings of SQLSTATE codes, what each means to whoever called, and what to do about it. The longest that
/// fits counts.
const TABLE: &[(&str, ErrorKind, &str)] = &[
    ("08", ErrorKind::Unavailable, ""),
    ("0A", ErrorKind::Unsupported, ""),
    ("22", ErrorKind::Internal, ""),
    ("25006", ErrorKind::Unavailable, "the server is a standby, or set to read only"),
    ("25P02", ErrorKind::Unavailable, ""),
    ("25P03", ErrorKind::Unavailable, "the transaction was idle for too long"),
    ("28", ErrorKind::Denied, ""),
    ("3D", ErrorKind::NotFound, "there is no such database"),
    ("3F", ErrorKind::NotFound, "it is not set up: see `flare setup`"),
    ("40", ErrorKind::Busy, ""),
    ("42501", ErrorKind::Denied, ""),
    ("42883", ErrorKind::NotFound, "it is not set up: see `flare setup`"),
    ("42P01", ErrorKind::NotFound, "it is not set up: see `flare setup`"),
    ("53", ErrorKind::Busy, "the server has no room for it now"),
    ("53100", ErrorKind::Busy, "the server's disk is full: work goes on once there is room"),
    ("54", ErrorKind::TooLarge, ""),
    ("55P03", ErrorKind::Busy, "somebody's open transaction has locked it"),
    ("57", ErrorKind::Unavailable, ""),
    ("57014", ErrorKind::Timeout, "the server gave up on it"),
    ("58", ErrorKind::Unavailable, ""),
    ("XX001", ErrorKind::Corrupt, "a part of the database is damaged"),
    ("XX002", ErrorKind::Corrupt, "an index is damaged: REINDEX makes it again"),
];

/// A failure of the server or the driver, met in `operation`.
pub(crate) fn from_driver(operation: &'static str, error: tokio_postgres::Error) -> Error {
    let (kind, meaning) = match error.code() {
        Some(code) => meaning(code.code()),
        None if error.is_closed() => (ErrorKind::Unavailable, "the connection is closed"),
        None => without_code(&error),
    };
    let shown = shown(&error);
    let detail = if meaning.is_empty() { shown } else { format!("{meaning} ({shown})") };
    Error::new(kind, operation).with_backend(BACKEND).with_detail(detail).with_source(error)
}

/// The same, met by a driver of the host's own.
#[cfg(feature = "sqlx")]
pub(crate) fn from_sqlx(operation: &'static str, error: sqlx::Error) -> Error {
    let told = error.as_database_error();
    let code = told.and_then(|told| told.code());
    let (kind, meaning) = match code.as_deref() {
        Some(code) => meaning(code),
        None => (ErrorKind::Unavailable, ""),
    };
    let shown = match (told, code) {
        (Some(told), Some(code)) => format!("{code}: {}", told.message()),
        _ => error.to_string(),
    };
    let detail = if meaning.is_empty() { shown } else { format!("{meaning} ({shown})") };
    Error::new(kind, operation).with_backend(BACKEND).with_detail(detail).with_source(error)
}

/// What the server says, or what is behind the driver's own words.
fn shown(error: &tokio_postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return format!("{}: {}", told.code().code(), told.message());
    }
    let mut shown = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        shown.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    shown
}

/// Failures that never reached the server, or never came back whole.
fn without_code(error: &tokio_postgres::Error) -> (ErrorKind, &'static str) {
    let text = error.to_string();
    if text.starts_with("error deserializing") {
        return (ErrorKind::Corrupt, "a record is not laid out as it should be");
    }
    if text.starts_with("error serializing") {
        return (ErrorKind::Internal, "");
    }
    if text.starts_with("invalid configuration") {
        return (ErrorKind::Invalid, "");
    }
    (ErrorKind::Unavailable, "")
}

fn meaning(code: &str) -> (ErrorKind, &'static str) {
    let fitting = TABLE.iter().filter(|(start, ..)| code.starts_with(start));
    let longest = fitting.max_by_key(|(start, ..)| start.len());
    longest.map_or((ErrorKind::Internal, ""), |(_, kind, meaning)| (*kind, meaning))
}

/// Whether the same work may well succeed when it is done again at once: it lost to others that did theirs.
pub(crate) fn is_lost_race(error: &tokio_postgres::Error) -> bool {
    let races = [
        &SqlState::T_R_SERIALIZATION_FAILURE,
        &SqlState::T_R_DEADLOCK_DETECTED,
        &SqlState::UNIQUE_VIOLATION,
    ];
    error.code().is_some_and(|code| races.contains(&code))
}

/// Whether the server knows nothing of a statement that was prepared there: a pooler has given this client
/// another connection.
pub(crate) fn is_lost_statement(error: &tokio_postgres::Error) -> bool {
    let codes = [&SqlState::INVALID_SQL_STATEMENT_NAME, &SqlState::DUPLICATE_PSTATEMENT];
    error.code().is_some_and(|code| codes.contains(&code))
}

/// Whether the server refused a value for what it is, as it does text with a zero in it.
pub(crate) fn is_wrong_value(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| code.code().starts_with("22"))
}

/// Whether it says that a lock was not to be had in time.
pub(crate) fn is_locked(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    let driver = source.and_then(|source| source.downcast_ref::<tokio_postgres::Error>());
    driver.is_some_and(|error| error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
}

/// An error of ours, met in `operation`.
pub(crate) fn of(kind: ErrorKind, operation: &'static str, detail: impl Into<String>) -> Error {
    Error::new(kind, operation).with_backend(BACKEND).with_detail(detail.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_means_what_it_should() {
        let meant = [
            (ErrorKind::Unavailable, vec!["08006", "57P01", "57P03", "25006", "58030"]),
            (ErrorKind::Busy, vec!["40001", "40P01", "53300", "53100", "55P03"]),
            (ErrorKind::Denied, vec!["28P01", "42501"]),
            (ErrorKind::NotFound, vec!["3D000", "3F000", "42P01"]),
            (ErrorKind::Timeout, vec!["57014"]),
            (ErrorKind::TooLarge, vec!["54000"]),
            (ErrorKind::Corrupt, vec!["XX001", "XX002"]),
            (ErrorKind::Internal, vec!["XX000", "42601", "23505", "22003"]),
        ];
        for (kind, codes) in meant {
            for code in codes {
                assert_eq!(meaning(code).0, kind, "{code}");
            }
        }
    }

    #[test]
    fn no_code_is_listed_twice() {
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0));
    }
}
