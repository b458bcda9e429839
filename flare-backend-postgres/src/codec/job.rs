//! Takes jobs' records; gives jobs.

use flare_core::Result;
use flare_core::model::{Job, JobId, RecordName};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Decoded, check_needs, read_epoch, read_time, read_word, unreadable_record};

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredJob {
    pub(crate) id: Uuid,
    kind: String,
    subject: String,
    cursor: Option<String>,
    epoch: i64,
    due: i64,
    created: i64,
    needs: Option<i32>,
}

impl StoredJob {
    /// Reads `id, kind, subject, cursor, epoch, due, created, needs`.
    pub(crate) fn of(row: &Row) -> std::result::Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get(0)?,
            kind: row.try_get(1)?,
            subject: row.try_get(2)?,
            cursor: row.try_get(3)?,
            epoch: row.try_get(4)?,
            due: row.try_get(5)?,
            created: row.try_get(6)?,
            needs: row.try_get(7)?,
        })
    }

    /// The job, or the error that names it.
    pub(crate) fn job(&self, operation: &'static str) -> Result<Job> {
        self.read().map_err(|why| unreadable_record(operation, self.name(), why))
    }

    fn read(&self) -> Decoded<Job> {
        check_needs(self.needs)?;
        let id = JobId::from_bytes(self.id.into_bytes());
        let kind = read_word(&self.kind, "kind")?;
        let mut job = Job::new(id, kind, self.subject.clone(), read_time(self.created));
        job.cursor.clone_from(&self.cursor);
        job.epoch = read_epoch(self.epoch)?;
        job.due = read_time(self.due);
        Ok(job)
    }

    fn name(&self) -> RecordName {
        RecordName::Job(JobId::from_bytes(self.id.into_bytes()))
    }

    /// Whether it is nothing that any version wrote: nobody would ever do it.
    pub(crate) fn is_damaged(&self) -> bool {
        self.read()
            .is_err_and(|why| matches!(why, flare_core::model::WhyUnreadable::Damaged { .. }))
    }

    /// When it is due, and its id: after which a scan goes on.
    pub(crate) fn place(&self) -> (i64, Uuid) {
        (self.due, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::damaged;

    fn stored() -> StoredJob {
        StoredJob {
            id: Uuid::from_bytes([7; 16]),
            kind: "expire".to_owned(),
            subject: "x".to_owned(),
            cursor: None,
            epoch: 3,
            due: 9,
            created: 1,
            needs: None,
        }
    }

    #[test]
    fn only_damage_makes_room_for_another() {
        assert!(!stored().is_damaged());
        assert!(StoredJob { epoch: -1, ..stored() }.is_damaged());
        assert!(StoredJob { kind: "sleep".to_owned(), ..stored() }.is_damaged());
        assert!(!StoredJob { needs: Some(99), ..stored() }.is_damaged(), "a newer version does it");
        let error = StoredJob { epoch: -1, ..stored() }.job("job").unwrap_err();
        let unreadable = error.unreadable().unwrap();
        assert_eq!(unreadable.record, RecordName::Job(JobId::from_bytes([7; 16])));
        assert_eq!(unreadable.why, damaged("epoch"));
    }
}
