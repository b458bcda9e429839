//! What is on a disk when the power goes: a file and its log, of which whatever no sync has covered is spoilt in
//! all the ways a disk may.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::Scratch;

/// What a disk writes as a whole, or not.
pub(crate) const SECTOR: usize = 512;
/// Ways to spoil what was not synced.
pub(crate) const WAYS: usize = 6;

/// A file and its log.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) file: Vec<u8>,
    pub(crate) log: Vec<u8>,
}

pub(crate) fn log_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", path.display()))
}

impl Disk {
    pub(crate) fn of(scratch: &Scratch) -> Self {
        let path = scratch.path();
        Self { file: fs::read(&path).unwrap(), log: fs::read(log_of(&path)).unwrap() }
    }

    /// A folder with it.
    pub(crate) fn found(&self) -> Scratch {
        // The power went before: from now on nothing has to wait for a disk.
        let scratch = Scratch::fleeting();
        let path = scratch.path();
        fs::write(&path, &self.file).unwrap();
        fs::write(log_of(&path), &self.log).unwrap();
        scratch
    }

    /// The same, with a log of which so many bytes are as they were and the rest is spoilt in one of [`WAYS`].
    pub(crate) fn spoilt(&self, synced: usize, way: usize, random: &mut fastrand::Rng) -> Self {
        let (kept, after) = self.log.split_at(synced);
        let mut tail = after.to_vec();
        match way {
            0 => tail.clear(),
            1 => tail.truncate(random.usize(..=after.len())),
            2 => tail.fill(0),
            3 => tail.iter_mut().for_each(|byte| *byte = random.u8(..)),
            // Some sectors are there, others never were.
            4 => tail.chunks_mut(SECTOR).filter(|_| random.bool()).for_each(|it| it.fill(0)),
            // A sector is torn in the middle.
            _ if tail.is_empty() => {}
            _ => {
                let torn = random.usize(..tail.len());
                tail[torn..].fill(0);
            }
        }
        Self { file: self.file.clone(), log: [kept, &tail].concat() }
    }
}

/// SQLite's own opinion of the file.
pub(crate) fn assert_sound(connection: &Connection) {
    let found: String = connection.query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}
