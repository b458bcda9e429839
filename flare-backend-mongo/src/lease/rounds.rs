//! Takes calls; gives each its answer. A few steps are under way at a time, since the server makes
//! one after the other; calls that come meanwhile wait, and share the next.
//!
//! Steps are made by tasks of their own: a caller that goes away takes nobody's answer with it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::{Bson, Document, doc};
use tokio::sync::oneshot;

use super::call::Call;
use super::size::MAX_ENTRY;
use super::step;
use super::store::Store;
use crate::BACKEND;
use crate::record::Record;

/// Steps under way at a time. More would get in each other's way; with one, an answer that does
/// not come would hold up everybody.
const RUNNERS: usize = 4;
/// Calls in one step.
const MAX_CALLS: usize = 32;

/// Calls that wait, and how many work on them.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    runners: usize,
}

#[derive(Debug)]
struct Waiting {
    operation: &'static str,
    call: Call,
    answer: oneshot::Sender<Result<Document>>,
}

impl Store {
    /// Makes one call; gives its answer.
    pub(super) async fn make(
        self: &Arc<Self>,
        operation: &'static str,
        call: Call,
    ) -> Result<Document> {
        let (answer, answered) = oneshot::channel();
        if self.rounds.add(Waiting { operation, call, answer }) {
            tokio::spawn(Runner { store: Arc::clone(self), counted: true }.run());
        }
        // Waiting for others takes of the call's time.
        let answered = async { answered.await.unwrap_or_else(|_| Err(unanswered(operation))) };
        self.connection.within(operation, answered).await
    }
}

impl Rounds {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody has to be found who works on it.
    fn add(&self, waiting: Waiting) -> bool {
        let mut queue = self.queue();
        match waiting.call.is_urgent {
            true => queue.waiting.push_front(waiting),
            false => queue.waiting.push_back(waiting),
        }
        let starts = queue.runners < RUNNERS;
        queue.runners += usize::from(starts);
        starts
    }
}

impl Queue {
    /// The calls of the next step: of one kind, so that an error is everybody's, and together no
    /// larger than one may be.
    fn next(&mut self) -> Vec<Waiting> {
        let mut round: Vec<Waiting> = Vec::new();
        let mut bytes = 0;
        while let Some(next) = self.waiting.pop_front() {
            if next.answer.is_closed() {
                continue;
            }
            bytes += next.call.bytes;
            let fits = round.first().is_none_or(|first| {
                first.operation == next.operation && bytes <= MAX_ENTRY && round.len() < MAX_CALLS
            });
            if !fits {
                self.waiting.push_front(next);
                break;
            }
            round.push(next);
        }
        round
    }
}

/// Makes steps while there are calls.
#[derive(Debug)]
struct Runner {
    store: Arc<Store>,
    /// Whether the queue counts on it.
    counted: bool,
}

impl Runner {
    async fn run(mut self) {
        while let Some((operation, round)) = self.next() {
            let (calls, answers): (Vec<_>, Vec<_>) =
                round.into_iter().map(|it| (it.call, it.answer)).unzip();
            let view = doc! { "last": 1, "revision": 1 };
            let after = self.store.step(operation, step::make(calls), view).await;
            for (index, answer) in answers.into_iter().enumerate() {
                let after = after.as_ref().map_err(Error::clone);
                // Whoever does not wait any more needs no answer.
                let _ = answer.send(after.and_then(|after| nth(operation, after, index)));
            }
        }
    }

    /// The next step's calls. Without any it is not counted on any more, from that moment.
    fn next(&mut self) -> Option<(&'static str, Vec<Waiting>)> {
        let mut queue = self.store.rounds.queue();
        let round = queue.next();
        let operation = round.first().map(|first| first.operation);
        if operation.is_none() {
            queue.runners -= 1;
            self.counted = false;
        }
        Some((operation?, round))
    }
}

impl Drop for Runner {
    /// Its runtime may end before it does.
    fn drop(&mut self) {
        if self.counted {
            self.store.rounds.queue().runners -= 1;
        }
    }
}

/// The answer to one of a step's calls.
fn nth(operation: &'static str, after: &Document, index: usize) -> Result<Document> {
    let after = Record::new(operation, after);
    match after.array_if_any("last")?.unwrap_or_default().get(index) {
        Some(Bson::Document(answer)) => Ok(answer.clone()),
        _ => Err(after.corrupt("last")),
    }
}

fn unanswered(operation: &'static str) -> Error {
    let detail = "whoever made the call has ended";
    Error::new(ErrorKind::Timeout, operation).with_backend(BACKEND).with_detail(detail)
}

#[cfg(test)]
mod tests {
    use flare_core::port::LeaseId;

    use super::super::call::{grant, keep_alive};
    use super::*;

    /// Calls that wait, and those who wait for them.
    fn queue(calls: &[(&'static str, usize)]) -> (Queue, Vec<oneshot::Receiver<Result<Document>>>) {
        let mut queue = Queue::default();
        let callers = calls.iter().map(|(operation, bytes)| {
            let (answer, answered) = oneshot::channel();
            let mut call = grant(1);
            call.bytes = *bytes;
            queue.waiting.push_back(Waiting { operation, call, answer });
            answered
        });
        let callers = callers.collect();
        (queue, callers)
    }

    /// How many calls each step has, until none is left.
    fn rounds(mut queue: Queue) -> Vec<usize> {
        std::iter::repeat_with(|| queue.next().len()).take_while(|count| *count > 0).collect()
    }

    #[test]
    fn calls_of_a_kind_share_a_step() {
        let (queue, _callers) =
            queue(&[("write", 1), ("write", 1), ("delete", 1), ("write", 1), ("write", 1)]);
        assert_eq!(rounds(queue), [2, 1, 2]);
    }

    #[test]
    fn a_step_is_limited() {
        let (many, _callers) = queue(&[("grant", 0); MAX_CALLS + 1]);
        assert_eq!(rounds(many), [MAX_CALLS, 1]);
        let (large, _callers) = queue(&[("write", MAX_ENTRY), ("write", 1), ("write", MAX_ENTRY)]);
        assert_eq!(rounds(large), [1, 1, 1]);
    }

    #[test]
    fn a_keep_alive_goes_before_all_that_wait() {
        let (queue, _callers) = queue(&[("write", 1), ("delete", 1)]);
        let rounds = Rounds { queue: Mutex::new(queue) };
        let (answer, _answered) = oneshot::channel();
        let call = keep_alive(LeaseId::new(1));
        rounds.add(Waiting { operation: "keep_alive", call, answer });
        let next = rounds.queue().next();
        assert_eq!(next.first().map(|first| first.operation), Some("keep_alive"));
    }

    #[test]
    fn who_went_away_is_left_out() {
        let (queue, mut callers) = queue(&[("write", 1), ("write", 1), ("write", 1)]);
        callers.remove(1);
        assert_eq!(rounds(queue), [2]);
    }
}
