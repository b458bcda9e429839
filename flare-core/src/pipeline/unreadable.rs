//! Takes records that could not be read; gives each a line in the log, once, and a place in the
//! status for as long as a loop meets it. Never fails for one of them: all others go on.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures::{Stream, StreamExt};
use tracing::{debug, warn};

use super::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{RecordName, Row, RowKey, Timestamp, Unreadable};
use crate::port::Listing;
use crate::tools::lock;

/// Records that are remembered by name; of more than that only their number is.
const REMEMBERED: usize = 1_000;
/// The least time for which one stays in the status after it was last met.
const LEAST_MEMORY: Duration = Duration::from_secs(600);

/// The records that this process met and could not read.
#[derive(Debug, Default)]
pub(crate) struct UnreadableRecords {
    met: Mutex<BTreeMap<RecordName, Met>>,
}

#[derive(Debug)]
struct Met {
    record: Unreadable,
    last: Timestamp,
}

impl UnreadableRecords {
    /// Notes a record that was met; tells whether it is new.
    fn note(&self, record: &Unreadable, now: Timestamp, memory: Duration) -> bool {
        let mut met = self.lock();
        if let Some(known) = met.get_mut(&record.record) {
            let forgotten = now - known.last > memory;
            *known = Met { record: record.clone(), last: now };
            return forgotten;
        }
        if met.len() >= REMEMBERED {
            met.retain(|_, known| now - known.last <= memory);
        }
        if met.len() >= REMEMBERED {
            return false;
        }
        met.insert(record.record.clone(), Met { record: record.clone(), last: now });
        true
    }

    /// Forgets a record that is not there any more.
    pub(crate) fn forget(&self, record: &RecordName) {
        self.lock().remove(record);
    }

    /// Those that were met of late.
    fn known(&self, now: Timestamp, memory: Duration) -> Vec<Unreadable> {
        let met = self.lock();
        let late = met.values().filter(|known| now - known.last <= memory);
        late.map(|known| known.record.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RecordName, Met>> {
        lock(&self.met)
    }
}

impl Context {
    /// The records that could not be read of late, by kind and name.
    pub(crate) fn unreadable_records(&self) -> Vec<Unreadable> {
        self.unreadable.known(self.now(), self.unreadable_memory())
    }

    /// Notes a record that could not be read.
    pub(crate) fn note_unreadable(&self, record: &Unreadable) {
        let (kind, name, why) = (record.record.kind(), &record.record, &record.why);
        if self.unreadable.note(record, self.now(), self.unreadable_memory()) {
            warn!(%kind, record = %name, %why, "cannot read a stored record; it is left out");
        } else {
            debug!(%kind, record = %name, %why, "still cannot read a stored record");
        }
    }

    /// The last of some rows of documents, in their order, whether it can be read or not; notes those that cannot.
    pub(crate) fn last_row_of(&self, rows: &Listing<Row>) -> Option<RowKey> {
        rows.unreadable.iter().for_each(|row| self.note_unreadable(row));
        let unreadable = rows.unreadable.iter().filter_map(|row| match &row.record {
            RecordName::Row(key) => Some(key),
            _ => None,
        });
        let all = rows.items.iter().map(|row| &row.key).chain(unreadable);
        all.max_by_key(|key| (&key.url, key.subscription)).cloned()
    }

    /// Every sweep meets it again before it is forgotten.
    fn unreadable_memory(&self) -> Duration {
        let settings = &self.settings;
        let longest = settings.sweep_every.max(settings.rederive_every).max(settings.expire_every);
        longest.saturating_mul(2).max(LEAST_MEMORY)
    }

    /// What was read; `None` for one record that cannot be, which is noted. Other failures pass.
    pub(crate) fn if_readable<T>(&self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) => match error.unreadable() {
                Some(record) => {
                    self.note_unreadable(record);
                    Ok(None)
                }
                None => Err(error),
            },
        }
    }

    /// Everything that can be read of a scan that ends by itself.
    pub(crate) async fn all_readable<T>(
        &self,
        scan: impl Stream<Item = Result<T>>,
    ) -> Result<Vec<T>> {
        let mut scan = std::pin::pin!(scan);
        let mut all = Vec::new();
        while let Some(read) = scan.next().await {
            all.extend(self.if_readable(read)?);
        }
        Ok(all)
    }

    /// Reads items by their keys, one answer per key. A batch that one of them fails is halved until
    /// that one is alone; it is noted, and answers with its own error.
    pub(crate) async fn each_readable<K: Clone, T, F>(
        &self,
        keys: Vec<K>,
        read: impl Fn(Vec<K>) -> F,
    ) -> Result<Vec<Result<T>>>
    where
        F: Future<Output = Result<Vec<T>>>,
    {
        let mut answers = Vec::with_capacity(keys.len());
        // Last first, so that what comes off the end is next.
        let mut left = vec![keys];
        while let Some(mut keys) = left.pop() {
            let asked = keys.len();
            match read(keys.clone()).await {
                Ok(found) if found.len() == asked => answers.extend(found.into_iter().map(Ok)),
                Ok(_) => {
                    return Err(
                        Error::new(ErrorKind::Internal, "read").with_detail("no answer came")
                    );
                }
                Err(error) if error.unreadable().is_none() => return Err(error),
                Err(error) if asked <= 1 => {
                    error.unreadable().into_iter().for_each(|record| self.note_unreadable(record));
                    answers.push(Err(error));
                }
                Err(_) => {
                    let second = keys.split_off(asked / 2);
                    left.push(second);
                    left.push(keys);
                }
            }
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JobId;

    const MEMORY: Duration = Duration::from_secs(60);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn record(number: u16) -> Unreadable {
        let [a, b] = number.to_be_bytes();
        let mut id = [0; 16];
        (id[0], id[1]) = (a, b);
        Unreadable::damaged(RecordName::Job(JobId::from_bytes(id)), "odd")
    }

    #[test]
    fn a_record_is_new_once_for_as_long_as_it_is_met() {
        let records = UnreadableRecords::default();
        assert!(records.note(&record(1), at(0), MEMORY));
        for second in 1..200 {
            assert!(!records.note(&record(1), at(second), MEMORY));
        }
        assert_eq!(records.known(at(259), MEMORY), [record(1)]);
        assert_eq!(records.known(at(260), MEMORY), []);
        assert!(records.note(&record(1), at(300), MEMORY), "it had been mended meanwhile");
        records.forget(&record(1).record);
        assert_eq!(records.known(at(300), MEMORY), []);
    }

    #[test]
    fn any_number_of_them_takes_bounded_memory() {
        let records = UnreadableRecords::default();
        for number in 0..u16::MAX {
            records.note(&record(number), at(0), MEMORY);
        }
        assert_eq!(records.known(at(0), MEMORY).len(), REMEMBERED);
        assert!(records.note(&record(u16::MAX), at(100), MEMORY), "the others are forgotten");
    }
}
