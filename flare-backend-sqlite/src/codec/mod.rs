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
    DocumentUrl, Epoch, Generation, RECORD_FORMAT, RecordName, Revision, Timestamp, Unreadable,
    Version, WhyUnreadable,
};
use serde::Serialize;
use serde::de::{DeserializeOwned, IntoDeserializer, value};

use crate::fault::Fault;
use crate::{BACKEND, error};

/// A record that can be read, or why it cannot be.
pub(crate) type Decoded<T> = std::result::Result<T, WhyUnreadable>;

/// A column that means nothing.
pub(crate) fn damaged(column: &str) -> WhyUnreadable {
    WhyUnreadable::Damaged { detail: format!("{column} is not understood") }
}

/// Refuses what needs a newer format.
pub(crate) fn check_needs(needs: Option<i64>) -> Decoded<()> {
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

/// What a failure means that was met while one record was read by its key: a damaged page is that record's
/// misfortune, and says nothing about the next.
pub(crate) fn met_at(operation: &'static str, name: RecordName, error: rusqlite::Error) -> Fault {
    if !error::is_damage(&error) {
        return Fault::Sql(error);
    }
    let detail = error::from_sqlite(operation, error).detail().to_owned();
    Fault::Refused(unreadable_record(operation, name, WhyUnreadable::Damaged { detail }))
}

/// A number that counts, as the file has it. Numbers beyond what it can hold do not occur.
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
pub(crate) fn counted(row: &rusqlite::Row<'_>) -> rusqlite::Result<u64> {
    row.get::<_, i64>(0).map(i64::unsigned_abs)
}

/// A smaller number.
pub(crate) fn read_small<T: TryFrom<i64>>(number: i64, column: &str) -> Decoded<T> {
    T::try_from(number).map_err(|_| damaged(column))
}

pub(crate) fn version(revision: i64, gone: bool) -> Version {
    let revision = Revision::new(revision);
    if gone { Version::gone(revision) } else { Version::live(revision) }
}

pub(crate) fn read_flag(number: i64, column: &str) -> Decoded<bool> {
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

pub(crate) fn read_id(bytes: &[u8], column: &str) -> Decoded<[u8; 16]> {
    bytes.try_into().map_err(|_| damaged(column))
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

/// What an index finds a document by: stable for ever, as the file keeps it. FNV-1a over the URL, then
/// MurmurHash3's finaliser.
pub(crate) fn hash(url: &DocumentUrl) -> i64 {
    let fnv = url.as_str().bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    (mixed ^ (mixed >> 33)).cast_signed()
}

#[cfg(test)]
mod tests {
    use flare_core::model::{JobKind, SubscriptionStatus};

    use super::*;

    /// Files carry these numbers: a change here loses documents.
    #[test]
    fn hashes_never_change() {
        let hash = |url| hash(&DocumentUrl::parse(url).unwrap());
        assert_eq!(hash("http://a/b"), GOLDEN[0]);
        assert_eq!(hash("https://example.com/users/1"), GOLDEN[1]);
        assert_eq!(hash("https://example.com/users/2"), GOLDEN[2]);
    }

    const GOLDEN: [i64; 3] =
        [-5_545_623_342_716_352_184, 6_277_705_950_360_180_285, 9_130_836_418_351_358_794];

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
        assert_eq!(check_needs(Some(i64::from(RECORD_FORMAT))), Ok(()));
        let newer = RECORD_FORMAT + 1;
        assert_eq!(check_needs(Some(newer.into())), Err(WhyUnreadable::Newer { needs: newer }));
        assert_eq!(check_needs(Some(-1)), Err(damaged("needs")));
    }
}
