//! Takes documents' records; gives documents, and what a write stores of them.

use flare_core::model::{
    Document, DocumentKey, DocumentUrl, MovedFrom, PartitionId, ResourceId, Timestamp,
    TraceContext, Version,
};
use tokio_postgres::Row;

use super::{Decoded, check_needs, damaged, read_flag, read_time, version};

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredDocument {
    pub(crate) n: i64,
    pub(crate) url: String,
    revision: Option<i64>,
    gone: i16,
    updated: i64,
    dispatched: Option<i64>,
    dispatched_gone: i16,
    open: Option<String>,
    trace: Option<String>,
    moved: Option<Vec<u8>>,
    needs: Option<i32>,
}

/// What a record says of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) version: Version,
    pub(crate) updated_at: Timestamp,
    pub(crate) dispatched: Option<Version>,
    pub(crate) open: Option<Vec<PartitionId>>,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) moved_from: Option<MovedFrom>,
}

impl StoredDocument {
    /// Reads `n, url, revision, gone, updated, dispatched, dispatched_gone, open, trace, moved, needs`.
    pub(crate) fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            n: row.try_get(0)?,
            url: row.try_get(1)?,
            revision: row.try_get(2)?,
            gone: row.try_get(3)?,
            updated: row.try_get(4)?,
            dispatched: row.try_get(5)?,
            dispatched_gone: row.try_get(6)?,
            open: row.try_get(7)?,
            trace: row.try_get(8)?,
            moved: row.try_get(9)?,
            needs: row.try_get(10)?,
        })
    }

    /// The URL, which names it.
    pub(crate) fn url(&self) -> Decoded<DocumentUrl> {
        DocumentUrl::parse(&self.url).map_err(|_| damaged("url"))
    }

    /// What it says, if it stands for a document.
    pub(crate) fn head(&self) -> Option<Decoded<Head>> {
        self.revision.map(|revision| self.read(revision))
    }

    fn read(&self, revision: i64) -> Decoded<Head> {
        check_needs(self.needs)?;
        let dispatched_gone = read_flag(self.dispatched_gone, "dispatched_gone")?;
        let trace = self.trace.as_deref().map(str::parse).transpose();
        Ok(Head {
            version: version(revision, read_flag(self.gone, "gone")?),
            updated_at: read_time(self.updated),
            dispatched: self.dispatched.map(|revision| version(revision, dispatched_gone)),
            open: self.open.as_deref().map(read_open).transpose()?,
            trace: trace.map_err(|_| damaged("trace"))?,
            moved_from: self.moved.as_deref().map(read_moved).transpose()?,
        })
    }
}

impl Head {
    /// Whether some of its rows may be missing.
    pub(crate) fn is_undispatched(&self) -> bool {
        self.dispatched < Some(self.version)
    }

    /// The document, without its content.
    pub(crate) fn document(self, key: DocumentKey) -> Document {
        let mut document = Document::new(key, self.version, self.updated_at);
        document.dispatched = self.dispatched;
        document.open = self.open;
        document.trace = self.trace;
        document.moved_from = self.moved_from;
        document
    }
}

/// The partitions of an open set, as a JSON list.
pub(crate) fn open(partitions: &[PartitionId]) -> String {
    let numbers: Vec<String> = partitions.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

fn read_open(text: &str) -> Decoded<Vec<PartitionId>> {
    serde_json::from_str(text).map_err(|_| damaged("open"))
}

/// Where a document moved from: the resource's id, the revision, and whether it was gone.
pub(crate) fn moved(from: MovedFrom) -> Vec<u8> {
    let mut bytes = from.resource.as_bytes().to_vec();
    bytes.extend(from.version.revision().get().to_be_bytes());
    bytes.push(u8::from(from.version.is_gone()));
    bytes
}

fn read_moved(bytes: &[u8]) -> Decoded<MovedFrom> {
    let read = || {
        let (id, rest) = bytes.split_first_chunk::<16>()?;
        let (revision, gone) = rest.split_first_chunk::<8>()?;
        let gone = match gone {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let version = version(i64::from_be_bytes(*revision), gone);
        Some(MovedFrom::new(ResourceId::from_bytes(*id), version))
    };
    read().ok_or_else(|| damaged("moved"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_read_as_they_are_written() {
        for version in [version(i64::MIN, false), version(-1, true), version(i64::MAX, true)] {
            let from = MovedFrom::new(ResourceId::from_bytes([7; 16]), version);
            assert_eq!(read_moved(&moved(from)), Ok(from));
        }
        for wrong in [&[0; 24][..], &[2; 25], &[0; 26], &[]] {
            assert_eq!(read_moved(wrong), Err(damaged("moved")));
        }
    }

    #[test]
    fn open_sets_are_read_as_they_are_written() {
        for numbers in [vec![], vec![0], vec![3, 1, u32::MAX]] {
            let partitions: Vec<_> = numbers.into_iter().map(PartitionId::new).collect();
            assert_eq!(read_open(&open(&partitions)), Ok(partitions));
        }
        assert_eq!(read_open("[-1]"), Err(damaged("open")));
    }
}
