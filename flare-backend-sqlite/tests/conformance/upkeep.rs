//! The upkeep of a file keeps every clause of the contract: of one that is not there yet, and of one that is and
//! has suffered.

use std::sync::Arc;

use async_trait::async_trait;
use flare_backend_sqlite::SqliteUpkeep;
use flare_core::model::{IdSource, ResourceId, SubscriptionId, Timestamp};
use flare_core::port::{Part, Upkeep};
use flare_testkit::Fixture;
use rusqlite::{Connection, params};

use crate::support::Scratch;

struct InFile {
    part: Part,
    suffered: bool,
}

#[async_trait]
impl Fixture for InFile {
    type Port = dyn Upkeep;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Upkeep>, Scratch) {
        let scratch = Scratch::new();
        if self.suffered {
            drop(scratch.open());
            suffer(&scratch.connect());
        }
        (Arc::new(SqliteUpkeep::new(&scratch.config(), self.part)), scratch)
    }
}

/// Breaks what a fixup puts right, and leaves something to clean up.
fn suffer(connection: &Connection) {
    let ids = IdSource::seeded(1);
    let long_ago = Timestamp::from_unix_seconds(1_600_000_000);
    let gone: SubscriptionId = ids.next(long_ago).into();
    let resource: ResourceId = ids.next(long_ago).into();
    let insert = |sql: &str, id: &[u8; 16]| {
        connection.execute(sql, [id]).unwrap();
        connection.last_insert_rowid()
    };
    let gone = insert("INSERT INTO subscription_ids (id) VALUES (?1)", gone.as_bytes());
    let resource = insert("INSERT INTO resource_ids (id) VALUES (?1)", resource.as_bytes());
    let mut document = connection
        .prepare(
            "INSERT INTO documents (resource, hash, url, revision, gone, updated, undispatched, \
             dispatched_gone) VALUES (?1, ?2, ?3, 1, 0, 0, 0, 0)",
        )
        .unwrap();
    let mut row = connection
        .prepare(
            "INSERT INTO rows (subscription, document, bucket, pending, state, wanted, due, since, \
             generation, epoch, attempts, round, demanded, dead) \
             VALUES (?1, ?2, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0)",
        )
        .unwrap();
    connection.execute_batch("BEGIN").unwrap();
    let mut contents =
        connection.prepare("INSERT INTO contents (document, content) VALUES (?1, ?2)").unwrap();
    for number in 0..2_100 {
        document.execute(params![resource, number, format!("http://a.example/{number}")]).unwrap();
        let n = connection.last_insert_rowid();
        row.execute([gone, n]).unwrap();
        contents.execute(params![n, vec![b'x'; 900]]).unwrap();
    }
    // Pages that nothing uses any more.
    connection.execute_batch("CREATE TABLE ballast (bytes BLOB)").unwrap();
    let mut ballast = connection.prepare("INSERT INTO ballast VALUES (?1)").unwrap();
    for _ in 0..400 {
        ballast.execute([vec![b'x'; 4_000]]).unwrap();
    }
    drop(ballast);
    connection
        .execute_batch(
            "DROP TABLE ballast; COMMIT; DROP INDEX rows_of; DROP INDEX jobs_due; \
             CREATE INDEX jobs_due ON jobs (created); DROP VIEW lag_v; \
             CREATE VIEW lag_v AS SELECT 1 AS one;",
        )
        .unwrap();
}

macro_rules! upkeep_of {
    ($name:ident, $part:expr, $suffered:expr) => {
        mod $name {
            use super::*;
            flare_testkit::upkeep_suite!(InFile { part: $part, suffered: $suffered });
        }
    };
}

upkeep_of!(new_repository, Part::Repository, false);
upkeep_of!(suffered_repository, Part::Repository, true);
upkeep_of!(new_queue, Part::Queue, false);
upkeep_of!(suffered_queue, Part::Queue, true);
upkeep_of!(new_lease, Part::Lease, false);
upkeep_of!(suffered_lease, Part::Lease, true);

/// What was there to do: else the clauses would have tried nothing.
#[tokio::test]
async fn what_suffered_is_found() {
    use flare_core::port::Purpose;
    let (upkeep, _scratch) = InFile { part: Part::Repository, suffered: true }.open().await;
    let subjects = async |purpose| {
        let steps = upkeep.plan(purpose).await.unwrap();
        steps.into_iter().map(|step| format!("{} {}", step.kind, step.subject)).collect::<Vec<_>>()
    };
    assert_eq!(subjects(Purpose::Setup).await, [""; 0]);
    let broken = subjects(Purpose::Fixup).await;
    assert_eq!(broken, ["update index jobs_due", "create index rows_of", "update view lag_v"]);
    let left = subjects(Purpose::Cleanup).await;
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left[0].starts_with("delete rows of subscription "), "{left:?}");
    assert!(left[1].starts_with("delete documents of resource "), "{left:?}");
    assert_eq!(left[2], "delete free pages");
}
