//! Takes writes of keys that come at the same time; makes those that wait for each other one transaction, and
//! answers each. Keys are written one after the other, so a commit for each would be all that a schema does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flare_core::port::{Write, Written};
use flare_core::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use super::Shared;
use super::table::{self, AtOnce};
use crate::error;
use crate::fault::{Fault, Worked};

const OPERATION: &str = "write";
/// Most writes in one transaction.
const MOST: usize = 100;

/// The writes that wait while others are made.
#[derive(Debug, Default)]
pub(super) struct Writes(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    writes: Vec<(Write, oneshot::Sender<Result<Written>>)>,
    /// A task makes them.
    worked: bool,
}

impl Writes {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a key, with all that wait at the same time.
pub(super) async fn write(shared: &Arc<Shared>, write: Write) -> Result<Written> {
    let (answer, answered) = oneshot::channel();
    let begins = {
        let mut waiting = shared.writes.lock();
        waiting.writes.push((write, answer));
        !std::mem::replace(&mut waiting.worked, true)
    };
    if begins {
        // In a task of its own: a caller that goes away takes nobody else's write along.
        tokio::spawn(work(Worker { shared: Arc::clone(shared), done: false }));
    }
    answered.await.unwrap_or_else(|_| {
        let detail = "the runtime ended; whether the key was written is not known";
        Err(error::of(ErrorKind::Unavailable, OPERATION, detail))
    })
}

/// Whoever makes the writes that wait. One that is dropped with its runtime leaves the place to the next caller.
struct Worker {
    shared: Arc<Shared>,
    done: bool,
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.done {
            let mut waiting = self.shared.writes.lock();
            waiting.writes.clear();
            waiting.worked = false;
        }
    }
}

impl Worker {
    /// The writes that wait, the oldest first; if there are none, this worker has ended.
    fn next(&mut self) -> Vec<(Write, oneshot::Sender<Result<Written>>)> {
        let mut waiting = self.shared.writes.lock();
        if waiting.writes.is_empty() {
            (waiting.worked, self.done) = (false, true);
        }
        let some = waiting.writes.len().min(MOST);
        waiting.writes.drain(..some).collect()
    }
}

async fn work(mut worker: Worker) {
    loop {
        let (writes, callers): (Vec<_>, Vec<_>) = worker.next().into_iter().unzip();
        if writes.is_empty() {
            return;
        }
        let answers = worker.shared.write_group(&writes).await;
        for (caller, answer) in callers.into_iter().zip(answers) {
            // A caller that has gone away is told nothing.
            _ = caller.send(answer);
        }
    }
}

impl Shared {
    /// One answer each.
    async fn write_group(&self, writes: &[Write]) -> Vec<Result<Written>> {
        let made = self.database.attempts(OPERATION, || self.write_together(writes)).await;
        let mut answers = Vec::with_capacity(writes.len());
        match made {
            Ok(Together::Refused) => {
                for write in writes {
                    answers.push(self.write_alone(write).await);
                }
            }
            Ok(Together::Done(done)) => {
                for (write, done) in writes.iter().zip(done) {
                    answers.push(match done {
                        AtOnce::Written(revision) => Ok(Written::At(revision)),
                        AtOnce::Conflict(there) => Ok(Written::Conflict(there)),
                        AtOnce::Lapsed => self.write_alone(write).await,
                    });
                }
            }
            Err(error) => answers.resize_with(writes.len(), || Err(Error::clone(&error))),
        }
        answers
    }

    async fn write_alone(&self, write: &Write) -> Result<Written> {
        self.database.attempts(OPERATION, || self.write_once(write)).await
    }

    async fn write_together(&self, writes: &[Write]) -> Worked<Together> {
        // Mostly no lease has lapsed since somebody looked.
        let mut done = match self.try_together(writes).await {
            Err(Fault::Sql(error)) if writes.len() > 1 && error::is_wrong_value(&error) => {
                return Ok(Together::Refused);
            }
            done => done?,
        };
        if done.iter().all(|done| matches!(done, AtOnce::Lapsed)) {
            self.end_lapsed(OPERATION).await?;
            done = self.try_together(writes).await?;
        }
        let written =
            |done: &AtOnce| matches!(done, AtOnce::Written(at) if table::is_to_forget(*at));
        if done.iter().any(written) {
            let mut session = self.begin(OPERATION).await?;
            table::forget_old(&mut session).await?;
            session.commit().await?;
        }
        Ok(Together::Done(done))
    }

    async fn try_together(&self, writes: &[Write]) -> Worked<Vec<AtOnce>> {
        let mut session = self.database.session(OPERATION).await?;
        session.begin(table::TURN, super::NOTHING).await?;
        table::write_at_once(&mut session, writes).await
    }
}

/// What became of a group.
enum Together {
    Done(Vec<AtOnce>),
    /// The server takes one of the keys for no text, and so none of the group.
    Refused,
}
