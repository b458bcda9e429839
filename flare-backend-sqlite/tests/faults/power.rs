//! Cuts the power: takes the file and its log as they are on the disk between two syncs, spoils whatever no sync
//! has covered in all the ways a disk may, and opens what is left.
//!
//! With `synchronous = FULL` the log is synced before a put is answered, so that at the moment of an answer
//! everything up to the log's end is on the disk. What comes after it may be there in part: cut off, torn, or
//! some sectors and others not. With `NORMAL` the log is synced at checkpoints alone; everything since may be
//! spoilt in the same ways, answered or not: [`log_tail`] also cuts there, and sees a put lost. A checkpoint
//! writes to the file itself and syncs it before the log is begun anew: until then any page of the file may be
//! the old one, the new one, or some of both, and the log has all of them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Scratch;
use crate::world::{World, assert_sound, block_on, put, stored};

const SECTOR: usize = 512;
const PAGE: usize = 4_096;
const PUTS: usize = 12;
/// Ways to spoil what is there at each moment.
const WAYS: usize = 6;

/// What is on the disk: the file and its log.
#[derive(Clone)]
struct Disk {
    file: Vec<u8>,
    log: Vec<u8>,
}

fn log_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", path.display()))
}

impl Disk {
    fn of(scratch: &Scratch) -> Self {
        let path = scratch.path();
        Self { file: fs::read(&path).unwrap(), log: fs::read(log_of(&path)).unwrap() }
    }

    /// What a machine finds that is started again with this disk: every document that was accepted.
    async fn revisions(&self) -> Vec<Option<i64>> {
        let scratch = Scratch::new();
        let path = scratch.path();
        fs::write(&path, &self.file).unwrap();
        fs::write(log_of(&path), &self.log).unwrap();
        let flare = World::idle(&scratch.config()).await;
        let mut found = Vec::new();
        for number in 0..PUTS {
            found.push(stored(&flare, &number.to_string()).await.ok());
        }
        // And it goes on from there.
        put(&flare, "next", 1, 100).await.unwrap();
        assert_sound(&scratch.connect());
        found
    }
}

/// Revisions of documents that were put one after the other, so many of them.
fn expected(puts: usize) -> Vec<Option<i64>> {
    (0..PUTS).map(|number| (number < puts).then_some(1)).collect()
}

/// Whatever of the log is after the last answer may be missing, torn or mixed.
pub(crate) fn log_tail() {
    block_on(async {
        let scratch = Scratch::new();
        // Without threads nothing is written but by the puts, and the log is not begun anew.
        let flare = World::idle(&scratch.config().inline()).await;
        let mut answered = Vec::new();
        for number in 0..PUTS {
            put(&flare, &number.to_string(), 1, 700).await.unwrap();
            answered.push(Disk::of(&scratch));
        }
        let last = answered.last().unwrap().clone();
        let mut random = fastrand::Rng::with_seed(17);
        for (puts, disk) in (1..).zip(&answered) {
            let synced = disk.log.len();
            assert_eq!(last.log[..synced], disk.log, "a log only grows");
            let after = &last.log[synced..];
            for way in 0..WAYS {
                let mut tail = after.to_vec();
                match way {
                    0 => tail.clear(),
                    1 => tail.truncate(random.usize(..=after.len())),
                    2 => tail.fill(0),
                    3 => tail.iter_mut().for_each(|byte| *byte = random.u8(..)),
                    // Some sectors are there, others never were.
                    4 => {
                        tail.chunks_mut(SECTOR).filter(|_| random.bool()).for_each(|it| it.fill(0))
                    }
                    // A sector is torn in the middle.
                    _ if tail.is_empty() => {}
                    _ => {
                        let torn = random.usize(..tail.len());
                        tail[torn..].fill(0);
                    }
                }
                let log = [&disk.log[..], &tail].concat();
                let found = Disk { file: disk.file.clone(), log }.revisions().await;
                // A put that was under way may be there; one that was answered must be.
                assert_eq!(found[..puts], expected(puts)[..puts], "after {puts} puts, way {way}");
            }
        }
        // Before the end of what was answered the same cut does lose: this is what FULL is for.
        let cut = answered[PUTS - 2].log.len() + PAGE / 2;
        let lost = Disk { file: last.file.clone(), log: last.log[..cut].to_vec() };
        assert_eq!(lost.revisions().await, expected(PUTS - 1));
    });
}

/// Until the file is synced the log has everything, whichever pages of the file are old, new or torn.
pub(crate) fn checkpoint() {
    block_on(async {
        let scratch = Scratch::new();
        let flare = World::idle(&scratch.config().inline()).await;
        for number in 0..PUTS / 2 {
            put(&flare, &number.to_string(), 1, 700).await.unwrap();
        }
        let connection = scratch.connect();
        let moved = "PRAGMA wal_checkpoint(PASSIVE)";
        connection.query_row(moved, [], |_| Ok(())).unwrap();
        for number in PUTS / 2..PUTS {
            put(&flare, &number.to_string(), 1, 700).await.unwrap();
        }
        let before = Disk::of(&scratch);
        connection.query_row(moved, [], |_| Ok(())).unwrap();
        let after = Disk::of(&scratch);
        assert_eq!(before.log, after.log, "the log is not begun anew by it");
        assert_ne!(before.file, after.file, "pages were written");
        let mut random = fastrand::Rng::with_seed(18);
        for _ in 0..20 {
            // The file's length may be either, too.
            let mut file = if random.bool() { before.file.clone() } else { after.file.clone() };
            for (at, page) in file.chunks_mut(PAGE).enumerate() {
                let new = after
                    .file
                    .get(at * PAGE..)
                    .map_or(&[][..], |rest| &rest[..PAGE.min(rest.len())]);
                let old = before.file.get(at * PAGE..).unwrap_or(&[]);
                let old = &old[..PAGE.min(old.len())];
                let taken = match random.u8(..3) {
                    0 => old.to_vec(),
                    1 => new.to_vec(),
                    // The first sectors are the new ones.
                    _ if old.len() == new.len() => {
                        let torn = random.usize(..PAGE / SECTOR) * SECTOR;
                        [&new[..torn], &old[torn..]].concat()
                    }
                    _ => new.to_vec(),
                };
                if taken.len() == page.len() {
                    page.copy_from_slice(&taken);
                }
            }
            let found = Disk { file, log: before.log.clone() }.revisions().await;
            assert_eq!(found, expected(PUTS));
        }
    });
}
