//! Takes the jobs that wait; makes one transaction of them and answers each after its commit. A job that
//! fails does so alone: then, and only then, the transaction is made again with a savepoint around each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flare_core::model::Timestamp;
use rusqlite::Connection;

use super::job::{Failure, Job};
use super::names::Names;
use super::serials::Serials;
use super::tx::{AfterCommit, Tx};
use crate::error;
use crate::file::Place;
use crate::time::{Machine, NOTED_EVERY, StoreClock};

/// How many jobs in a row the disk may refuse before all others are taken to be refused too.
const REFUSED_IN_A_ROW: usize = 3;

/// Pages that are kept for what comes next, instead of being given back and taken again: a megabyte.
const KEPT_FREE: i64 = 256;

/// Frames of the log after which a commit moves them, where no thread does.
const FRAMES_BY_ITSELF: i64 = 1_000;

/// The one connection that writes, and what it remembers between two transactions.
pub(super) struct Commits {
    connection: Connection,
    place: Arc<Place>,
    machine: Machine,
    clock: StoreClock,
    /// A time that was noted in the file.
    noted: Timestamp,
    names: Names,
    serials: Serials,
    /// The state of the file when it was last looked at; changes with every commit of another connection.
    seen: Option<i64>,
    /// Whether commits wait for the disk now.
    durable: bool,
    /// How many bytes of the log are on the disk, for whoever wants to know.
    pub(super) synced: Option<Arc<AtomicU64>>,
}

type Jobs = Vec<Box<dyn Job>>;

impl Commits {
    pub(super) fn new(
        connection: Connection,
        place: Arc<Place>,
        machine: Machine,
        clock: StoreClock,
    ) -> Self {
        Self {
            connection,
            place,
            machine,
            clock,
            noted: Timestamp::EPOCH,
            names: Names::default(),
            serials: Serials::default(),
            seen: None,
            durable: true,
            synced: None,
        }
    }

    /// Has the log moved to its place by commits themselves, where no thread does it beside.
    pub(super) fn move_log_itself(&self) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "wal_autocheckpoint", FRAMES_BY_ITSELF)
    }

    /// Commits what jobs do and answers all of them; gives what is to be done then.
    pub(super) fn commit(&mut self, mut jobs: Jobs) -> AfterCommit {
        let error = match self.transact(&mut jobs, false) {
            Ok(after) => return self.answer(jobs, after),
            Err(error) => error,
        };
        if !error::is_of_one_record(&error) {
            return self.singly(jobs, error);
        }
        match self.transact(&mut jobs, true) {
            Ok(after) => self.answer(jobs, after),
            Err(error) => self.singly(jobs, error),
        }
    }

    /// One transaction for each job, after one for all of them failed: the disk may have room for some.
    fn singly(&mut self, jobs: Jobs, error: rusqlite::Error) -> AfterCommit {
        let hopeless = jobs.len() == 1 || !error::may_pass_alone(&error);
        let mut failure = Failure::of(error);
        let mut refused = if hopeless { REFUSED_IN_A_ROW } else { 0 };
        let mut all = AfterCommit::default();
        for job in jobs {
            let mut job = vec![job];
            if refused >= REFUSED_IN_A_ROW {
                job[0].fail(failure.clone());
                self.answer(job, AfterCommit::default());
                continue;
            }
            match self.transact(&mut job, true) {
                Ok(after) => {
                    refused = 0;
                    let after = self.answer(job, after);
                    all.rung.extend(after.rung);
                    all.keys |= after.keys;
                    all.freed |= after.freed;
                }
                Err(error) => {
                    refused += 1;
                    failure = Failure::of(error);
                    job[0].fail(failure.clone());
                    self.answer(job, AfterCommit::default());
                }
            }
        }
        all
    }

    fn answer(&self, mut jobs: Jobs, after: AfterCommit) -> AfterCommit {
        if let Err(detail) = self.place.check() {
            let moved = Failure { kind: flare_core::ErrorKind::Unavailable, detail };
            jobs.iter_mut().for_each(|job| job.fail(moved.clone()));
        }
        jobs.into_iter().for_each(Job::answer);
        after
    }

    fn transact(&mut self, jobs: &mut Jobs, careful: bool) -> rusqlite::Result<AfterCommit> {
        let durable = jobs.iter().any(|job| job.is_durable());
        self.sync_commits(durable)?;
        let logged = self.logged();
        let worked = self.work(jobs, careful);
        if worked.is_err() {
            // What was remembered may have been made by what is taken back now.
            self.names.distrust();
            self.serials.clear();
            self.seen = None;
            if !self.connection.is_autocommit() {
                self.connection.execute_batch("ROLLBACK")?;
            }
        }
        self.note_synced(logged)?;
        worked
    }

    /// How many bytes the log has, if anybody wants to know.
    fn logged(&self) -> Option<u64> {
        self.synced.as_ref()?;
        std::fs::metadata(self.place.beside("-wal")).ok().map(|log| log.len())
    }

    /// Notes that the log is on the disk, if a commit made it grow and waited for that.
    fn note_synced(&self, before: Option<u64>) -> rusqlite::Result<()> {
        /// What SQLite calls `FULL`.
        const FULL: i64 = 2;
        let (Some(synced), Some(logged)) = (&self.synced, self.logged()) else { return Ok(()) };
        let waits: i64 =
            self.connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
        if waits >= FULL && Some(logged) > before {
            synced.store(logged, Ordering::Release);
        }
        Ok(())
    }

    fn work(&mut self, jobs: &mut Jobs, careful: bool) -> rusqlite::Result<AfterCommit> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.refresh()?;
        let uptime = self.machine.uptime();
        let now = self.clock.at(uptime);
        let before = self.connection.total_changes();
        let mut after = AfterCommit::default();
        let mut tx = Tx {
            connection: &self.connection,
            now,
            uptime,
            names: &mut self.names,
            serials: &mut self.serials,
            after: &mut after,
            careful,
        };
        for job in jobs.iter_mut().filter(|job| job.is_wanted()) {
            if careful {
                run_apart(&mut tx, job)?;
            } else {
                job.run(&mut tx)?;
            }
        }
        let changed = self.connection.total_changes() != before;
        let notes = changed && now > self.noted + NOTED_EVERY;
        if notes {
            let mut note = self.connection.prepare_cached("UPDATE store SET told = ?1")?;
            note.execute([now.unix_nanos()])?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        if notes {
            self.noted = now;
        }
        Ok(after)
    }

    /// Looks whether another process has changed what is remembered here.
    fn refresh(&mut self) -> rusqlite::Result<()> {
        let mut look = self.connection.prepare_cached("PRAGMA data_version")?;
        let seen = Some(look.query_row([], |row| row.get(0))?);
        if seen == self.seen {
            return Ok(());
        }
        let mut read = self.connection.prepare_cached("SELECT ahead, forgotten FROM store")?;
        let (ahead, forgotten) = read.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.clock = StoreClock { ahead };
        if self.names.forgotten != forgotten {
            self.names.clear();
            self.names.forgotten = forgotten;
        }
        self.seen = seen;
        Ok(())
    }

    /// Has commits wait for the disk, or not: what is only a wake-up may be lost with the machine's power,
    /// and every commit that waits has what came before it written too.
    fn sync_commits(&mut self, durable: bool) -> rusqlite::Result<()> {
        if durable != self.durable {
            let how =
                if durable { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
            self.connection.prepare_cached(how)?.execute([])?;
            self.durable = durable;
        }
        Ok(())
    }

    /// How many records this connection has changed so far.
    pub(super) fn changes(&self) -> u64 {
        self.connection.total_changes()
    }

    /// Gives pages at the end of the file that are not used back, some at a time; tells whether there may
    /// be more.
    pub(super) fn return_space(&mut self, pages: u32) -> rusqlite::Result<bool> {
        self.sync_commits(false)?;
        let before = self.free_pages()?;
        if before <= KEPT_FREE {
            return Ok(false);
        }
        let mut vacuum = self.connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut steps = vacuum.query([])?;
        while steps.next()?.is_some() {}
        drop(steps);
        drop(vacuum);
        let after = self.free_pages()?;
        Ok(after > KEPT_FREE && after < before)
    }

    fn free_pages(&self) -> rusqlite::Result<i64> {
        self.connection.pragma_query_value(None, "freelist_count", |row| row.get(0))
    }
}

/// Runs a job so that its failure takes nothing but its own work back.
fn run_apart(tx: &mut Tx<'_>, job: &mut Box<dyn Job>) -> rusqlite::Result<()> {
    tx.connection.execute_batch("SAVEPOINT job")?;
    match job.run(tx) {
        Ok(()) => tx.connection.execute_batch("RELEASE job"),
        Err(error) if error::is_of_one_record(&error) => {
            tx.take_back("job")?;
            job.fail(Failure::of(error));
            Ok(())
        }
        Err(error) => Err(error),
    }
}
