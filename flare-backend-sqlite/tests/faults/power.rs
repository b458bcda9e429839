//! Cuts the power: takes the file and its log as they are on the disk between two syncs, spoils whatever no sync
//! has covered in all the ways a disk may, and opens what is left.
//!
//! With `synchronous = FULL` the log is synced before a put is answered, so that at the moment of an answer
//! everything up to the log's end is on the disk. What comes after it may be there in part: cut off, torn, or
//! some sectors and others not. So may be what clients were told since, which nothing waits for: [`outcomes`].
//! With `NORMAL` the log is synced at checkpoints alone; everything since may be spoilt in the same ways, answered
//! or not: [`log_tail`] also cuts there, and sees a put lost. A checkpoint writes to the file itself and syncs it before the log is begun anew: until then any page of the file may be
//! the old one, the new one, or some of both, and the log has all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use flare_core::model::DocumentUrl;
use flare_testkit::Recorded;

use crate::support::Scratch;
use crate::support::disk::{Disk, SECTOR, WAYS, assert_sound};
use crate::world::{World, block_on, put, stored};

const PAGE: usize = 4_096;
const PUTS: usize = 12;
/// Moments at which the power goes while clients are told.
const CUTS: usize = 20;
const SETTLED: Duration = Duration::from_secs(60);

impl Disk {
    /// What a machine finds that is started again with this disk: every document that was accepted.
    async fn revisions(&self) -> Vec<Option<i64>> {
        let scratch = self.found();
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
            let cut = Disk { file: disk.file.clone(), log: last.log.clone() };
            for way in 0..WAYS {
                let found = cut.spoilt(synced, way, &mut random).revisions().await;
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

/// What came of a request does not wait for the disk and may be gone, and so may be all that followed a put: it is
/// done again, and the client knows what it is told twice by its id.
pub(crate) fn outcomes() {
    block_on(async {
        let scratch = Scratch::new();
        let World { flare, runtime, client } = World::open(&scratch.config().inline()).await;
        for number in 0..PUTS {
            put(&flare, &number.to_string(), 1, 700).await.unwrap();
        }
        // While somebody reads from the log it is not begun anew.
        let reads = scratch.connect();
        reads.execute_batch("BEGIN; SELECT * FROM store").unwrap();
        let answered = Disk::of(&scratch);
        let runtime = runtime.spawn();
        flare.settled(SETTLED).await.unwrap();
        let last = Disk::of(&scratch);
        let told = ids(&client.requests());
        runtime.drain(SETTLED).await.unwrap();
        assert_eq!(told.len(), PUTS);
        assert!(last.log.starts_with(&answered.log), "a log only grows");

        let mut random = fastrand::Rng::with_seed(19);
        let during = answered.log.len()..=last.log.len();
        let mut cuts = vec![*during.start(), *during.end()];
        cuts.extend((0..CUTS).map(|_| random.usize(during.clone())));
        let mut all_again = false;
        for cut in cuts {
            let disk = Disk { file: answered.file.clone(), log: last.log[..cut].to_vec() };
            let scratch = disk.found();
            let World { flare, runtime, client } = World::open(&scratch.config()).await;
            let runtime = runtime.spawn();
            flare.settled(SETTLED).await.unwrap();
            let again = ids(&client.requests());
            for (document, id) in &again {
                assert_eq!(told.get(document), Some(id), "{document} after {cut} bytes");
            }
            all_again |= again.len() == PUTS;
            runtime.drain(SETTLED).await.unwrap();
            assert_sound(&scratch.connect());
        }
        assert!(all_again, "what nothing waits for was never gone");
    });
}

/// The id under which a client was told of each document.
fn ids(requests: &[Recorded]) -> BTreeMap<DocumentUrl, String> {
    let id = |recorded: &Recorded| {
        let mut headers = recorded.request.headers.iter();
        let id = headers.find(|(name, _)| name.eq_ignore_ascii_case("webhook-id")).unwrap();
        (recorded.request.document.clone(), id.1.clone())
    };
    requests.iter().map(id).collect()
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
