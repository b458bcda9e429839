//! Takes work for the file; gives what came of it. Everything that writes goes through one thread, which
//! merges what waits into one transaction; reads have threads and connections of their own.

mod bells;
mod commits;
mod inbox;
mod job;
pub(crate) mod names;
mod opening;
mod reader;
mod serials;
mod threads;
mod tx;
mod watch;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use flare_core::{ErrorKind, Result};
use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use crate::error;
use crate::fault::Worked;
use crate::file::Place;
use crate::holders::HolderLock;
use crate::time::Machine;
pub(crate) use bells::Bells;
use commits::Commits;
use inbox::NotTaken;
use job::Call;
pub(crate) use job::Job;
pub(crate) use opening::Options;
pub(crate) use reader::Reader;
use threads::{Log, ReadInbox, WriteInbox};
pub(crate) use tx::{AfterCommit, Tx};
use watch::Watch;

/// An open file, and the threads that work on it.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Proves to others that this handle lives; given up after the threads have ended.
    lock: HolderLock,
}

/// What callers and threads share.
pub(crate) struct Shared {
    place: Arc<Place>,
    machine: Machine,
    timeout: Duration,
    holder: i64,
    writes: Writes,
    reads: Reads,
    log: Log,
    watch: Watch,
    signals: Signals,
}

/// What is told within the process, right after a commit.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) bells: Bells,
    /// Keys of the coordination changed.
    pub(crate) keys: Notify,
}

/// How work gets to the one who writes.
enum Writes {
    Thread(WriteInbox),
    /// Whoever calls writes, at once: for tests in which nothing may happen beside.
    Caller(Box<Mutex<Commits>>),
}

/// How work gets to those who read.
enum Reads {
    Threads(ReadInbox),
    Caller(Mutex<Connection>),
}

/// What a write is like for the writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    operation: &'static str,
    weight: usize,
    urgent: bool,
    durable: bool,
    for_caller: bool,
}

impl Effort {
    /// One that is on disk when it is answered.
    pub(crate) const fn durable(operation: &'static str) -> Self {
        Self { operation, weight: 1, urgent: false, durable: true, for_caller: false }
    }

    /// One that may be lost with the machine's power, but not with the process.
    pub(crate) const fn fleeting(operation: &'static str) -> Self {
        Self { operation, weight: 1, urgent: false, durable: false, for_caller: false }
    }

    /// One that Flare makes again if it goes with the machine's power: what says that a document is spread, or
    /// most of what came of a request, which is made again with the same id. What is written later goes first, so
    /// that nothing is left that rests on it. A row itself is no such thing: it is on disk before its client is
    /// told, or the client would hold what nothing stored says it may hold, and would not hear of a deletion.
    pub(crate) const fn repeated(operation: &'static str) -> Self {
        Self::fleeting(operation)
    }

    /// The same, about so many things.
    pub(crate) fn of(mut self, items: usize) -> Self {
        self.weight = items.max(1);
        self
    }

    /// The same, with so many bytes beside.
    pub(crate) fn bytes(mut self, bytes: usize) -> Self {
        self.weight += bytes / BYTES_PER_WEIGHT;
        self
    }

    /// The same, for the caller alone: should it be gone when its turn comes, nothing is done.
    pub(crate) const fn for_caller(mut self) -> Self {
        self.for_caller = true;
        self
    }

    /// The same, before all others.
    pub(crate) const fn urgent(mut self) -> Self {
        self.urgent = true;
        self
    }
}

/// Bytes that count as much as one thing more.
const BYTES_PER_WEIGHT: usize = 2_048;
/// What may wait for the writer: a hundred MiB at most, or so many things.
const MOST_WAITING: usize = 50_000;
/// Reads that may wait.
const MOST_READS: usize = 10_000;

impl Engine {
    /// Does `work` in the writer's next transaction; answers once that is committed. The work may be done
    /// again, after what it did was taken back.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        effort: Effort,
        work: impl FnMut(&mut Tx<'_>) -> Worked<T> + Send + 'static,
    ) -> Result<T> {
        let (waiting, answer) = oneshot::channel();
        let call = Call { effort, work, outcome: None, waiting };
        self.shared.submit(effort, Box::new(call))?;
        self.answered(effort.operation, answer).await
    }

    /// The same for somebody who cannot wait and does not want to know.
    pub(crate) fn write_unheard(
        &self,
        effort: Effort,
        work: impl FnMut(&mut Tx<'_>) -> Worked<()> + Send + 'static,
    ) -> Result<()> {
        self.shared.write_unheard(effort, work)
    }

    /// Reads with `work` from one state of the file, which has all that was answered before the call.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Reader<'_>) -> Worked<T> + Send + 'static,
    ) -> Result<T> {
        let inbox = match &self.shared.reads {
            Reads::Threads(inbox) => inbox,
            Reads::Caller(connection) => {
                let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                let read = Reader::read(&connection, &self.shared.machine, work);
                return read.map_err(|fault| fault.into_error(operation));
            }
        };
        let (waiting, answer) = oneshot::channel();
        let read = move |connection: &Connection, machine: &Machine| {
            // Whoever went away does not want to know.
            if !waiting.is_closed() {
                let read = Reader::read(connection, machine, work);
                _ = waiting.send(read.map_err(|fault| fault.into_error(operation)));
            }
        };
        inbox.put(Box::new(read), 1, false).map_err(|why| not_taken(operation, why))?;
        self.answered(operation, answer).await
    }

    /// Awaits an answer for as long as a call may take.
    async fn answered<T>(
        &self,
        operation: &'static str,
        answer: oneshot::Receiver<Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(|_| Err(not_taken(operation, NotTaken::Closed))),
            () = self.shared.machine.clock().sleep(self.shared.timeout) => {
                let detail = format!("no answer within {:?}", self.shared.timeout);
                Err(error::of(ErrorKind::Timeout, operation, detail))
            }
        }
    }

    pub(crate) fn signals(&self) -> &Signals {
        &self.shared.signals
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.shared.machine
    }

    /// The number by which others know this handle.
    pub(crate) fn holder(&self) -> i64 {
        self.shared.holder
    }
}

impl Shared {
    fn submit(&self, effort: Effort, job: Box<dyn Job>) -> Result<()> {
        match &self.writes {
            Writes::Thread(inbox) => inbox
                .put(job, effort.weight, effort.urgent)
                .map_err(|why| not_taken(effort.operation, why)),
            Writes::Caller(commits) => {
                let mut commits = commits.lock().unwrap_or_else(PoisonError::into_inner);
                let after = commits.commit(vec![job]);
                if after.freed {
                    threads::return_all(&mut commits);
                }
                drop(commits);
                self.signals.tell(&after);
                Ok(())
            }
        }
    }

    fn write_unheard(
        &self,
        effort: Effort,
        work: impl FnMut(&mut Tx<'_>) -> Worked<()> + Send + 'static,
    ) -> Result<()> {
        let (waiting, _) = oneshot::channel();
        self.submit(effort, Box::new(Call { effort, work, outcome: None, waiting }))
    }
}

impl Signals {
    fn tell(&self, after: &AfterCommit) {
        after.rung.iter().for_each(|queue| self.bells.ring(queue));
        if after.keys {
            self.keys.notify_waiters();
        }
    }
}

fn not_taken(operation: &'static str, why: NotTaken) -> flare_core::Error {
    match why {
        NotTaken::Full => {
            error::of(ErrorKind::Busy, operation, "more waits for the disk than may wait")
        }
        NotTaken::Closed => {
            error::of(ErrorKind::Unavailable, operation, "the file is being closed")
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Writes::Thread(inbox) = &self.shared.writes {
            inbox.close();
        }
        if let Reads::Threads(inbox) = &self.shared.reads {
            inbox.close();
        }
        self.shared.watch.stop();
        self.shared.log.stop();
        let own = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // The last handle may go with an answer that one of them gives: it ends by itself.
            if thread.thread().id() == own {
                continue;
            }
            // One that panicked has said so; the others still close what they have.
            _ = thread.join();
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("path", &self.shared.place.path())
            .field("holder", &self.lock.name())
            .finish_non_exhaustive()
    }
}
