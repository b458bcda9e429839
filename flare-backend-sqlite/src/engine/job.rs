//! Takes a call's work and who waits for it; gives a job that a thread runs, again if its transaction has to
//! be made again, and that answers once the transaction has ended.

use flare_core::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use super::Effort;
use super::tx::Tx;
use crate::error;
use crate::fault::{Fault, Worked};

/// Work within the writer's transaction, of which other calls' work is a part too.
pub(crate) trait Job: Send {
    /// Does the work and keeps its outcome. May be called again after a rollback.
    fn run(&mut self, tx: &mut Tx<'_>) -> rusqlite::Result<()>;

    /// The work's part was taken back, and all others' stays: this is its outcome.
    fn fail(&mut self, failure: Failure);

    /// Whether it is still to be done: of some work nobody has anything once its caller is gone.
    fn is_wanted(&self) -> bool;

    /// Whether its commit has to be on disk before it is answered.
    fn is_durable(&self) -> bool;

    /// Tells the outcome: the transaction is committed.
    fn answer(self: Box<Self>);
}

/// Why work was not stored, for each of those whom it concerns.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) detail: String,
}

impl Failure {
    /// A failure of SQLite.
    pub(crate) fn of(error: rusqlite::Error) -> Self {
        let error = error::from_sqlite("", error);
        Self { kind: error.kind(), detail: error.detail().to_owned() }
    }

    fn during(self, operation: &'static str) -> Error {
        error::of(self.kind, operation, self.detail)
    }
}

/// A call that waits for its work.
pub(super) struct Call<T, W> {
    pub(super) effort: Effort,
    pub(super) work: W,
    pub(super) outcome: Option<Result<T>>,
    pub(super) waiting: oneshot::Sender<Result<T>>,
}

impl<T, W> Job for Call<T, W>
where
    T: Send,
    W: FnMut(&mut Tx<'_>) -> Worked<T> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> rusqlite::Result<()> {
        match (self.work)(tx) {
            Ok(done) => self.outcome = Some(Ok(done)),
            Err(Fault::Refused(error)) => self.outcome = Some(Err(error)),
            Err(Fault::Sql(error)) => return Err(error),
        }
        Ok(())
    }

    fn fail(&mut self, failure: Failure) {
        self.outcome = Some(Err(failure.during(self.effort.operation)));
    }

    fn is_wanted(&self) -> bool {
        !(self.effort.for_caller && self.waiting.is_closed())
    }

    fn is_durable(&self) -> bool {
        self.effort.durable
    }

    fn answer(self: Box<Self>) {
        let Self { outcome, waiting, .. } = *self;
        if let Some(outcome) = outcome {
            // Whoever went away meanwhile does not want to know.
            _ = waiting.send(outcome);
        }
    }
}
