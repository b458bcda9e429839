//! How far a backfill or resync has come, as it is stored with its job.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::model::{BackfillProgress, DocumentUrl, Job, Round};

/// The cursor of a backfill or resync.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BackfillCursor {
    /// The round its rows are told in; the first one until it has begun.
    #[serde(default)]
    pub(super) round: Round,
    /// Only documents whose URL begins so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prefix: Option<String>,
    /// The last document that was looked at, in the store's own order.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub(super) after: Option<DocumentUrl>,
    #[serde(default)]
    pub(super) scanned: u64,
    #[serde(default)]
    pub(super) total: u64,
    /// All documents have been looked at.
    #[serde(default)]
    pub(super) walked: bool,
    /// The client has been told of all of them, or they were given up.
    #[serde(default)]
    pub(super) done: bool,
}

impl BackfillCursor {
    /// One that has not begun.
    pub(super) fn new(prefix: Option<String>) -> Self {
        let (round, after, scanned, total) = (Round::ZERO, None, 0, 0);
        Self { round, prefix, after, scanned, total, walked: false, done: false }
    }

    pub(super) fn decode(job: &Job) -> Result<Self> {
        let Some(text) = &job.cursor else { return Ok(Self::new(None)) };
        serde_json::from_str(text).map_err(|error| {
            let corrupt = Error::new(ErrorKind::Corrupt, "job").with_source(error);
            corrupt.with_detail(format!("the cursor of job {} cannot be read", job.id))
        })
    }

    pub(super) fn encode(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::new(ErrorKind::Internal, "job").with_source(error))
    }

    /// Whether a document is one of those asked for.
    pub(super) fn wants(&self, url: &DocumentUrl) -> bool {
        self.prefix.as_ref().is_none_or(|prefix| url.as_str().starts_with(prefix))
    }

    /// What people are shown of it.
    pub(super) fn progress(&self) -> BackfillProgress {
        // Documents may have come since they were counted.
        let total = if self.walked { self.scanned } else { self.total.max(self.scanned) };
        BackfillProgress { scanned: self.scanned, total, done: self.done }
    }
}

fn as_text<S: serde::Serializer>(
    url: &Option<DocumentUrl>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    url.as_ref().map(DocumentUrl::as_str).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{JobId, JobKind, Timestamp};

    fn job(cursor: Option<&str>) -> Job {
        let id = JobId::from_bytes([1; 16]);
        let mut job = Job::new(id, JobKind::Backfill, "x", Timestamp::EPOCH);
        job.cursor = cursor.map(str::to_owned);
        job
    }

    #[test]
    fn comes_back_as_it_was_stored() {
        let mut cursor = BackfillCursor::new(Some("http://a.example/u".to_owned()));
        cursor.after = Some(DocumentUrl::parse("http://a.example/u/%C3%A9").unwrap());
        (cursor.round, cursor.scanned, cursor.total) = (Round::new(7), 3, 9);
        let stored = cursor.encode().unwrap();
        assert_eq!(BackfillCursor::decode(&job(Some(&stored))).unwrap(), cursor);
        assert_eq!(BackfillCursor::decode(&job(None)).unwrap(), BackfillCursor::new(None));
    }

    #[test]
    fn what_is_damaged_is_said_to_be() {
        let error = BackfillCursor::decode(&job(Some("{"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn the_total_is_never_below_what_was_seen() {
        let mut cursor = BackfillCursor::new(None);
        (cursor.scanned, cursor.total) = (5, 3);
        assert_eq!(cursor.progress(), BackfillProgress { scanned: 5, total: 5, done: false });
        (cursor.scanned, cursor.total, cursor.walked) = (5, 9, true);
        assert_eq!(cursor.progress().total, 5, "some were deleted meanwhile");
    }
}
