//! How large the record may become, and what is refused for it. A record of MongoDB's has 16 MiB
//! at most; with these limits it stays below 13.
//!
//! A step writes 1 MiB at most, into the keys and once more into the history, and its answers have
//! 2 MiB at most. One that meets a record below `LARGE` adds that much to 5 MiB. One that meets a
//! larger record shortens its history to 2 MiB first, and refuses what would make the keys more
//! than 6 MiB. Leases have less than 1 MiB. (One that ends moves bytes from the keys to the
//! history, never more than it frees.)

use std::time::Duration;

use flare_core::{Error, ErrorKind, Result};

use crate::BACKEND;

/// A key with its value, or all that one step writes.
pub(super) const MAX_ENTRY: usize = 1 << 20;
/// What a step's answers may have for another to be added, which may be as large as an entry.
pub(super) const MAX_ANSWERS: i64 = 1 << 20;
/// From here on the record's parts are measured.
pub(super) const LARGE: i64 = 5 << 20;
/// All keys with their values.
pub(super) const MAX_KEYS: i64 = 6 << 20;
/// All leases: less than 1 MiB.
pub(super) const MAX_LEASES: i64 = 10_000;

/// How many events there are when history is shortened …
pub(super) const MAX_EVENTS: i64 = 256;
/// … to at most these, and to at most so many bytes. Not with every event: an event appended is a
/// small change to the record, one dropped at the front a large one.
pub(super) const KEPT_EVENTS: i64 = 128;
pub(super) const KEPT_EVENT_BYTES: i64 = 2 << 20;

/// Longer than any lease: its end must still be a time.
pub(super) const MAX_TTL: Duration = Duration::from_hours(24 * 365 * 100);

/// Refuses a key and value that no retry would get in.
pub(super) fn check(key: &str, value: &[u8]) -> Result<()> {
    let size = key.len() + value.len();
    if size <= MAX_ENTRY {
        return Ok(());
    }
    let detail = format!("key and value have {size} bytes, {MAX_ENTRY} are possible");
    Err(Error::new(ErrorKind::TooLarge, "write").with_backend(BACKEND).with_detail(detail))
}

/// Refuses what would have room if there were less.
pub(super) fn full(operation: &'static str) -> Error {
    let detail = format!(
        "there is room for {MAX_KEYS} bytes of keys and {MAX_LEASES} leases, and it is taken"
    );
    Error::new(ErrorKind::Busy, operation).with_backend(BACKEND).with_detail(detail)
}
