//! Takes keys and values of Flare; gives them as they stand in etcd, and back.
//!
//! A key is the prefix and the key. A value is a line `1 <mark>` and the value: the format, and
//! which write it was. By its mark a writer knows its own write again when it was not told what
//! became of it.

use bytes::Bytes;
use etcd_client::KeyValue;
use flare_core::port::{Entry, LeaseId, StoreRevision};
use flare_core::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::BACKEND;

/// The format values are written in, and the only one there was so far.
const FORMAT: &str = "1 ";

/// The format, the mark in hexadecimal digits, and a line feed.
const HEADER: usize = FORMAT.len() + 32 + 1;

/// Names one write of one client, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    client: u64,
    count: u64,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.client, self.count)
    }
}

/// Gives every write of a client its mark.
#[derive(Debug)]
pub(crate) struct Marks {
    client: u64,
    next: AtomicU64,
}

impl Marks {
    /// Marks of the client with this number, which no other one has.
    pub(crate) fn of(client: u64) -> Self {
        Self { client, next: AtomicU64::new(1) }
    }

    pub(crate) fn next(&self) -> Mark {
        Mark { client: self.client, count: self.next.fetch_add(1, Ordering::Relaxed) }
    }
}

/// A value as it is stored.
pub(crate) fn value(mark: Mark, value: &[u8]) -> Vec<u8> {
    let mut stored = format!("{FORMAT}{mark}\n").into_bytes();
    stored.extend_from_slice(value);
    stored
}

/// Whether a stored value is the one that this write made.
pub(crate) fn is_of(mark: Mark, stored: &[u8]) -> bool {
    stored.starts_with(value(mark, b"").as_slice())
}

fn plain(stored: &[u8]) -> Option<&[u8]> {
    let (header, value) = stored.split_at_checked(HEADER)?;
    let mark = header.strip_prefix(FORMAT.as_bytes())?.strip_suffix(b"\n")?;
    mark.iter().all(u8::is_ascii_hexdigit).then_some(value)
}

/// What keys of ours begin with.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn under(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// A key as it is stored.
    pub(crate) fn stored(&self, key: &str) -> Vec<u8> {
        format!("{}{key}", self.prefix).into_bytes()
    }

    /// A stored key as it is called here.
    pub(crate) fn plain(&self, operation: &'static str, stored: &[u8]) -> Result<String> {
        let key = std::str::from_utf8(stored).ok().and_then(|key| key.strip_prefix(&self.prefix));
        key.map(str::to_owned).ok_or_else(|| corrupt(operation, stored, "is no key of Flare's"))
    }

    /// What a key holds. A value that is not written as ours are is given as it is: whoever reads it
    /// finds that it cannot, and that its key is there all the same.
    pub(crate) fn entry(&self, operation: &'static str, stored: &KeyValue) -> Result<Entry> {
        let value = plain(stored.value()).unwrap_or(stored.value());
        let lease = (stored.lease() != 0).then(|| LeaseId::new(stored.lease()));
        Ok(Entry::new(
            self.plain(operation, stored.key())?,
            Bytes::copy_from_slice(value),
            revision(stored.create_revision()),
            revision(stored.mod_revision()),
            lease,
        ))
    }
}

/// A revision of etcd's, which are never negative.
pub(crate) fn revision(number: i64) -> StoreRevision {
    StoreRevision::new(number.unsigned_abs())
}

fn corrupt(operation: &'static str, key: &[u8], what: &str) -> Error {
    let detail = format!("{} {what}", String::from_utf8_lossy(key));
    Error::new(ErrorKind::Corrupt, operation).with_backend(BACKEND).with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_as_it_was() {
        let marks = Marks::of(u64::MAX);
        for bytes in [&b""[..], b"x", b"1 line\nand another\n", &[0, 255, 10]] {
            assert_eq!(plain(&value(marks.next(), bytes)), Some(bytes));
        }
    }

    #[test]
    fn the_stored_form_stays_what_it_is() {
        let stored = value(Mark { client: 0xbeef, count: 7 }, b"{}");
        assert_eq!(stored, b"1 000000000000beef0000000000000007\n{}");
    }

    #[test]
    fn a_write_knows_itself_and_no_other() {
        let (marks, others) = (Marks::of(1), Marks::of(2));
        let (first, second) = (marks.next(), marks.next());
        let stored = value(first, b"same");
        assert!(is_of(first, &stored));
        assert!(!is_of(second, &stored));
        assert!(!is_of(others.next(), &stored));
        assert!(!is_of(first, b""));
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        let odd = [
            &b""[..],
            b"1 ",
            b"2 000000000000beef0000000000000007\n",
            b"1 000000000000beef0000000000000007",
            b"1 000000000000beefg000000000000007\n",
            b"by hand",
        ];
        for stored in odd {
            assert_eq!(plain(stored), None, "{stored:?}");
        }
    }

    #[test]
    fn keys_are_put_under_the_prefix_and_found_there() {
        let keys = Keys::under("flare/");
        assert_eq!(keys.stored("node/ä"), "flare/node/ä".as_bytes());
        assert_eq!(keys.plain("get", "flare/node/ä".as_bytes()).unwrap(), "node/ä");
        for odd in [&b"other/node"[..], b"flare/\xff"] {
            assert_eq!(keys.plain("get", odd).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}
