//! Takes a path; opens the file there, makes or moves its shape, says who else lives, and starts the threads.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_core::model::Timestamp;
use flare_core::{Error, ErrorKind, Result};
use rusqlite::Connection;

use super::commits::Commits;
use super::inbox::Inbox;
use super::threads::{self, Log};
use super::watch::{self, Watch};
use super::{Engine, MOST_READS, MOST_WAITING, Reads, Shared, Signals, Writes};
use crate::connection::{self, Role};
use crate::error;
use crate::file::{FileSystem, Place};
use crate::holders::{self, HolderLock, OpeningLock};
use crate::lease;
use crate::queue;
use crate::schema::{self, Migration};
use crate::time::{Machine, StoreClock, StoredClock, nanos};

const OPERATION: &str = "open";

/// How to open a file.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) machine: Machine,
    pub(crate) timeout: Duration,
    pub(crate) readers: usize,
    /// Whoever calls works, instead of threads.
    pub(crate) inline: bool,
    pub(crate) file_system: Option<FileSystem>,
    pub(crate) migrations: &'static [Migration],
    /// Where to note how many bytes of the log are on the disk, if anybody wants to know.
    pub(crate) synced: Option<Arc<AtomicU64>>,
}

impl Engine {
    /// Opens the file at `path`.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self> {
        connection::check_library()?;
        let place = Arc::new(Place::at(path, options.file_system.clone())?);
        let failed = |error| opening_failed(&place, error);
        let opening = OpeningLock::take(&place)?;
        let mut writer = connection::open(&place, Role::Writer).map_err(failed)?;
        schema::prepare(&mut writer, &place, options.migrations)?;
        let machine = options.machine.clone();
        let lock = HolderLock::take(&place, machine.uptime())?;
        let (holder, clock) = register(&mut writer, &place, &machine, &lock)?;
        drop(opening);
        let mut commits = Commits::new(writer, Arc::clone(&place), machine, clock);
        commits.synced.clone_from(&options.synced);
        Self::start(place, commits, lock, holder, options)
    }

    fn start(
        place: Arc<Place>,
        commits: Commits,
        lock: HolderLock,
        holder: i64,
        options: &Options,
    ) -> Result<Self> {
        let open =
            |role| connection::open(&place, role).map_err(|error| opening_failed(&place, error));
        let mut threads = Vec::new();
        let (writes, reads, commits) = if options.inline {
            let reader = open(Role::Reader)?;
            commits.move_log_itself().map_err(|error| opening_failed(&place, error))?;
            (Writes::Caller(Box::new(Mutex::new(commits))), Reads::Caller(Mutex::new(reader)), None)
        } else {
            let (writes, reads) = (Inbox::new(MOST_WAITING), Inbox::new(MOST_READS));
            (Writes::Thread(writes), Reads::Threads(reads), Some(commits))
        };
        let shared = Arc::new(Shared {
            place: Arc::clone(&place),
            machine: options.machine.clone(),
            timeout: options.timeout,
            holder,
            writes,
            reads,
            log: Log::default(),
            watch: Watch::default(),
            signals: Signals::default(),
        });
        let mut spawn = |name: &str, work: Box<dyn FnOnce(&Shared) + Send>| {
            let shared = Arc::clone(&shared);
            let thread = threads::spawn(name, move || work(&shared));
            thread.map(|thread| threads.push(thread)).map_err(|error| {
                error::from_io(OPERATION, "a thread could not be started".to_owned(), error)
            })
        };
        if let Some(commits) = commits {
            spawn(
                "writer",
                Box::new(|shared| {
                    if let Writes::Thread(inbox) = &shared.writes {
                        threads::write(inbox, commits, &shared.log, |after| {
                            shared.signals.tell(&after)
                        });
                    }
                }),
            )?;
            for _ in 0..options.readers.max(1) {
                let connection = open(Role::Reader)?;
                spawn(
                    "reader",
                    Box::new(move |shared| {
                        if let Reads::Threads(inbox) = &shared.reads {
                            threads::read(inbox, &connection, &shared.machine);
                        }
                    }),
                )?;
            }
            let connection = open(Role::Keeper)?;
            spawn("log", Box::new(move |shared| threads::checkpoint(&shared.log, &connection)))?;
            let connection = open(Role::Keeper)?;
            spawn("watch", Box::new(move |shared| watch::run(shared, &connection)))?;
        }
        Ok(Self { shared, threads, lock })
    }
}

fn opening_failed(place: &Place, error: rusqlite::Error) -> Error {
    let error = error::from_sqlite(OPERATION, error);
    let detail = format!("{}: {}", place.path().display(), error.detail());
    error.with_detail(detail)
}

/// Notes this handle among the holders of the file, forgets those that are dead with all they held, and sets
/// the store's clock.
fn register(
    connection: &mut Connection,
    place: &Place,
    machine: &Machine,
    lock: &HolderLock,
) -> Result<(i64, StoreClock)> {
    let failed = |error| opening_failed(place, error);
    let boot = machine.boot();
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(failed)?;
    let (mut alone, mut dead) = (true, Vec::new());
    for other in holders_of(&transaction).map_err(failed)? {
        if !holders::lives(place, &other.name) {
            lease::end_holder(&transaction, other.n).map_err(failed)?;
            holders::bury(place, &other.name);
            dead.push(other.n);
        } else if other.boot != boot {
            return Err(of_another_machine(place, other.pid));
        } else {
            alone = false;
        }
    }
    let stored = read_clock(&transaction).map_err(failed)?;
    let uptime = machine.uptime();
    if alone && !stored.goes_on(&boot, uptime) {
        // They end by the uptime of a boot that is over.
        lease::end_all(&transaction).map_err(failed)?;
    }
    let clock = stored.resumed(&boot, uptime, machine.wall());
    let set = "UPDATE store SET boot = ?1, ahead = ?2, told = max(told, ?3)";
    let now = clock.at(uptime);
    let values = rusqlite::params![boot, clock.ahead, now.unix_nanos()];
    transaction.execute(set, values).map_err(failed)?;
    for holder in dead {
        queue::give_back(&transaction, holder, now).map_err(failed)?;
    }
    let note = "INSERT INTO holders (name, boot, pid, since) VALUES (?1, ?2, ?3, ?4)";
    let values = rusqlite::params![lock.name(), boot, std::process::id(), nanos(uptime)];
    transaction.execute(note, values).map_err(failed)?;
    let holder = transaction.last_insert_rowid();
    transaction.commit().map_err(failed)?;
    Ok((holder, clock))
}

struct Holder {
    n: i64,
    name: String,
    boot: String,
    pid: i64,
}

fn holders_of(connection: &Connection) -> rusqlite::Result<Vec<Holder>> {
    let mut find = connection.prepare("SELECT n, name, boot, pid FROM holders")?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Holder { n: row.get(0)?, name: row.get(1)?, boot: row.get(2)?, pid: row.get(3)? })
    };
    find.query_map([], read)?.collect()
}

fn of_another_machine(place: &Place, pid: i64) -> Error {
    let detail = format!(
        "{} is open on another machine (process {pid} there): several processes of one machine may open \
         a file, processes of two would corrupt it",
        place.path().display()
    );
    error::of(ErrorKind::Conflict, OPERATION, detail).with_field("path")
}

fn read_clock(connection: &Connection) -> rusqlite::Result<StoredClock> {
    connection.query_row("SELECT boot, ahead, told FROM store", [], |row| {
        let (ahead, told) = (row.get(1)?, row.get(2)?);
        let clock = StoreClock { ahead };
        Ok(StoredClock { boot: row.get(0)?, clock, told: Timestamp::from_unix_nanos(told) })
    })
}
