//! Takes long work; gives it to the node that goes on with it.

use std::fmt;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::{Applied, Epoch, Job, JobId, JobKind, Timestamp};
use crate::port::{Listing, Page, Scan};

/// Keeps stored jobs.
///
/// # Contract
/// - **RJ1** There is at most one job per kind and subject: inserting another tells that it was
///   not stored, and changes nothing.
/// - **RJ2** `due_jobs` gives jobs due at or before the time named, earliest first, at most
///   `limit`.
/// - **RJ3** `advance_job` and `finish_job` take place only if no greater epoch has written the
///   job; advancing stores cursor, due time and epoch together.
/// - **RJ4** A finished job is gone, and its kind and subject are free again.
/// - **RJ5** `job` gives the job of a kind and subject as it is stored, due or not.
/// - **RJ6** `claim_job` takes place only if the job is due by the time named and no greater epoch has
///   written it; it stores epoch and due time, leaves the cursor, and gives the job as it is then. Of
///   several that claim a job at once, until a later time, one has it.
/// - **RJ7** `list_jobs` gives all, due or not, oldest first (by id), with their total.
#[async_trait]
pub trait JobStore: fmt::Debug + Send + Sync + 'static {
    /// Stores a job, unless there is one for its kind and subject; tells whether it did.
    async fn insert_job(&self, job: Job) -> Result<bool>;

    /// Reads jobs that are due.
    fn due_jobs(&self, due_by: Timestamp, limit: usize) -> Scan<'_, Job>;

    /// Reads the job of a kind and subject.
    async fn job(&self, kind: JobKind, subject: &str) -> Result<Option<Job>>;

    /// Lists the jobs there are.
    async fn list_jobs(&self, page: Page) -> Result<Listing<Job>>;

    /// Takes a job that is due by `due_by`, so that it is not due before `until`; gives it as it is
    /// stored, or nothing if it is not to be had.
    async fn claim_job(
        &self,
        epoch: Epoch,
        id: JobId,
        due_by: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Job>>;

    /// Notes how far a job has come and when to go on.
    async fn advance_job(
        &self,
        epoch: Epoch,
        id: JobId,
        cursor: Option<String>,
        due: Timestamp,
    ) -> Result<Applied>;

    /// Forgets a job that is done.
    async fn finish_job(&self, epoch: Epoch, id: JobId) -> Result<Applied>;
}
