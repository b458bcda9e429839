//! The writer's transaction as work sees it: statements, the store's time, numbers of ids, and what is to be
//! done once it is committed.

use std::collections::HashSet;
use std::time::Duration;

use flare_core::Result;
use flare_core::model::Timestamp;
use flare_core::port::QueueName;
use rusqlite::{CachedStatement, Connection};

use super::names::Names;
use super::serials::Serials;
use crate::error;
use crate::fault::{Fault, Worked};

/// A transaction that calls share.
pub(crate) struct Tx<'a> {
    pub(crate) connection: &'a Connection,
    /// The store's time: one for all that is written together.
    pub(crate) now: Timestamp,
    /// How long the machine has been running.
    pub(crate) uptime: Duration,
    /// Numbers of resources and subscriptions.
    pub(crate) names: &'a mut Names,
    pub(crate) serials: &'a mut Serials,
    pub(crate) after: &'a mut AfterCommit,
    /// Whether each item of a batch is kept apart from the others: one of them failed when they were not.
    pub(super) careful: bool,
}

/// What to do once a transaction is committed.
#[derive(Debug, Default)]
pub(crate) struct AfterCommit {
    /// Queues in which there may be something to receive, or that are gone.
    pub(crate) rung: HashSet<QueueName>,
    /// Keys of the coordination changed.
    pub(crate) keys: bool,
    /// Records were removed: there may be space to return.
    pub(crate) freed: bool,
}

impl<'a> Tx<'a> {
    /// A statement, prepared the first time.
    pub(crate) fn sql(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.connection.prepare_cached(sql)
    }

    /// Does something for each item of a batch; one that fails does so alone.
    pub(crate) fn each<I, T>(
        &mut self,
        operation: &'static str,
        items: &[I],
        mut work: impl FnMut(&mut Self, &I) -> Worked<T>,
    ) -> Worked<Vec<Result<T>>> {
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            answers.push(self.item(operation, |tx| work(tx, item))?);
        }
        Ok(answers)
    }

    /// Does something that may fail alone. Without care a failure of SQLite's ends the transaction, which
    /// is then made again with care.
    fn item<T>(
        &mut self,
        operation: &'static str,
        work: impl FnOnce(&mut Self) -> Worked<T>,
    ) -> Worked<Result<T>> {
        if !self.careful {
            return match work(self) {
                Ok(done) => Ok(Ok(done)),
                Err(Fault::Refused(error)) => Ok(Err(error)),
                Err(fault) => Err(fault),
            };
        }
        self.connection.execute_batch("SAVEPOINT item")?;
        let done = work(self);
        if let Err(Fault::Sql(error)) = done {
            if !error::is_of_one_record(&error) {
                return Err(Fault::Sql(error));
            }
            self.take_back("item")?;
            return Ok(Err(error::from_sqlite(operation, error)));
        }
        self.connection.execute_batch("RELEASE item")?;
        Ok(done.map_err(|fault| fault.into_error(operation)))
    }

    /// Takes back what was done since a savepoint, and what is remembered of it.
    pub(super) fn take_back(&mut self, savepoint: &str) -> rusqlite::Result<()> {
        self.names.distrust();
        self.serials.clear();
        self.connection.execute_batch(&format!("ROLLBACK TO {savepoint}; RELEASE {savepoint}"))
    }

    /// Has those woken who wait for a queue.
    pub(crate) fn ring(&mut self, queue: &QueueName) {
        if !self.after.rung.contains(queue) {
            self.after.rung.insert(queue.clone());
        }
    }
}
