//! Takes values of the model; gives them as columns, and back. What a column cannot mean makes its record
//! unreadable, and no other.

pub(crate) mod audit;
pub(crate) mod consumer;
pub(crate) mod document;
pub(crate) mod job;
pub(crate) mod reject;
pub(crate) mod resource;
pub(crate) mod row;
pub(crate) mod subscription;

use flare_core::Error;
use flare_core::model::{
    Epoch, Generation, RECORD_FORMAT, RecordName, Revision, Timestamp, Unreadable, Version,
    WhyUnreadable,
};
use serde::Serialize;
use serde::de::{DeserializeOwned, IntoDeserializer, value};
use uuid::Uuid;

use crate::BACKEND;
use crate::fault::Worked;

/// A record that can be read, or why it cannot be.
pub(crate) type Decoded<T> = std::result::Result<T, WhyUnreadable>;

/// A column that means nothing.
pub(crate) fn damaged(column: &str) -> WhyUnreadable {
    WhyUnreadable::Damaged { detail: format!("{column} is not understood") }
}

/// Refuses what needs a newer format.
pub(crate) fn check_needs(needs: Option<i32>) -> Decoded<()> {
    match needs.map(u32::try_from) {
        None => Ok(()),
        Some(Ok(needs)) if needs <= RECORD_FORMAT => Ok(()),
        Some(Ok(needs)) => Err(WhyUnreadable::Newer { needs }),
        Some(Err(_)) => Err(damaged("needs")),
    }
}

/// The error that names the one record it is about.
pub(crate) fn unreadable(operation: &'static str, record: Unreadable) -> Error {
    Error::of_record(operation, record).with_backend(BACKEND)
}

/// The same, of a record about which nothing else is known.
pub(crate) fn unreadable_record(
    operation: &'static str,
    name: RecordName,
    why: WhyUnreadable,
) -> Error {
    unreadable(operation, Unreadable::new(name, why))
}

/// A number that counts, as a column has it. Numbers beyond what it can hold do not occur.
pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn read_count(number: i64, column: &str) -> Decoded<u64> {
    u64::try_from(number).map_err(|_| damaged(column))
}

pub(crate) fn read_epoch(number: i64) -> Decoded<Epoch> {
    read_count(number, "epoch").map(Epoch::new)
}

pub(crate) fn read_generation(number: i64) -> Decoded<Generation> {
    read_count(number, "generation").map(Generation::new)
}

/// What a statement that counts found.
pub(crate) fn counted(row: Option<&tokio_postgres::Row>) -> Worked<u64> {
    Ok(row.map_or(Ok(0), |row| row.try_get::<_, i64>(0))?.unsigned_abs())
}

/// A smaller number.
pub(crate) fn read_small<T: TryFrom<i64>>(number: i64, column: &str) -> Decoded<T> {
    T::try_from(number).map_err(|_| damaged(column))
}

pub(crate) fn version(revision: i64, gone: bool) -> Version {
    let revision = Revision::new(revision);
    if gone { Version::gone(revision) } else { Version::live(revision) }
}

pub(crate) fn read_flag(number: i16, column: &str) -> Decoded<bool> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(damaged(column)),
    }
}

pub(crate) const fn time(time: Timestamp) -> i64 {
    time.unix_nanos()
}

pub(crate) const fn read_time(nanos: i64) -> Timestamp {
    Timestamp::from_unix_nanos(nanos)
}

/// An id of ours, as a column has it.
pub(crate) fn id(bytes: &[u8; 16]) -> Uuid {
    Uuid::from_bytes(*bytes)
}

/// Items of a page, as a statement is given it.
pub(crate) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Items before a page, as a statement is given it.
pub(crate) fn offset(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

/// A word of the model's, as it is spelled everywhere.
pub(crate) fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

pub(crate) fn read_word<T: DeserializeOwned>(word: &str, column: &str) -> Decoded<T> {
    let word: value::StrDeserializer<'_, value::Error> = word.into_deserializer();
    T::deserialize(word).map_err(|_| damaged(column))
}

#[cfg(test)]
mod tests {
    use flare_core::model::{JobKind, SubscriptionStatus};

    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        assert_eq!(word(JobKind::RemoveSubscription), "remove-subscription");
        assert_eq!(read_word(&word(JobKind::Expire), "kind"), Ok(JobKind::Expire));
        assert_eq!(read_word("paused", "status"), Ok(SubscriptionStatus::Paused));
        assert_eq!(read_word::<JobKind>("sleep", "kind"), Err(damaged("kind")));
    }

    #[test]
    fn only_a_format_beyond_this_one_is_newer() {
        assert_eq!(check_needs(None), Ok(()));
        assert_eq!(check_needs(Some(RECORD_FORMAT.cast_signed())), Ok(()));
        let newer = RECORD_FORMAT + 1;
        assert_eq!(
            check_needs(Some(newer.cast_signed())),
            Err(WhyUnreadable::Newer { needs: newer })
        );
        assert_eq!(check_needs(Some(-1)), Err(damaged("needs")));
    }
}
