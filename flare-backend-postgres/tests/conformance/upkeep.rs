//! The upkeep on PostgreSQL keeps every clause of the contract, for every part: on a schema that is not set up,
//! and on one that is and has suffered.

use std::sync::Arc;

use crate::support::Scratch;
use async_trait::async_trait;
use flare_backend_postgres::PostgresUpkeep;
use flare_core::port::{Part, Purpose, Upkeep};
use flare_testkit::{Fixture, Subject, Trials, upkeep};

struct OnPostgres {
    uri: String,
    part: Part,
    suffered: bool,
}

#[async_trait]
impl Fixture for OnPostgres {
    type Port = dyn Upkeep;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Upkeep>, Scratch) {
        let scratch = Scratch::new(&self.uri);
        let upkeep = PostgresUpkeep::connect(scratch.config(), self.part).await.unwrap();
        if self.suffered {
            for step in upkeep.plan(Purpose::Setup).await.unwrap() {
                upkeep.apply(Purpose::Setup, &step, &()).await.unwrap();
            }
            scratch.run(suffering(self.part)).await;
        }
        (Arc::new(upkeep), scratch)
    }
}

/// What breaks what a fixup puts right, and leaves something to clean up.
fn suffering(part: Part) -> &'static str {
    match part {
        Part::Repository => {
            "INSERT INTO flare.subscription_ids (id) VALUES ('01700000-0000-7000-8000-000000000001'); \
             INSERT INTO flare.resource_ids (id) VALUES ('01700000-0000-7000-8000-000000000002'); \
             INSERT INTO flare.documents (resource, hash, url, revision, gone, updated, undispatched, \
                 dispatched_gone) SELECT 1, hashtextextended('http://a.example/' || n, 0), 'http://a.example/' || n, 1, 0, 0, false, 0 \
                 FROM generate_series(1, 2100) n; \
             INSERT INTO flare.contents SELECT n, 'x' FROM flare.documents; \
             INSERT INTO flare.rows (subscription, document, bucket, pending, state, wanted, due, since, \
                 generation, epoch, attempts, round, demanded) \
                 SELECT 1, n, 1, true, 0, 1, 1, 1, 1, 0, 0, 0, false FROM flare.documents; \
             DROP INDEX flare.rows_of; DROP INDEX flare.jobs_due; \
             DROP INDEX flare.consumer_rejects_rejected; DELETE FROM flare.store"
        }
        Part::Queue => "DROP INDEX flare.messages_key",
        _ => "DROP INDEX flare.lease_keys_of; DELETE FROM flare.lease_history",
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    let mut trials = all.of("upkeep");
    for part in Part::ALL {
        for suffered in [false, true] {
            for clause in upkeep::CLAUSES {
                let state = if suffered { "suffered" } else { "new" };
                let name = format!("{part}_{state}_{}", clause.name).leak();
                trials = trials.test(name, move |uri| async move {
                    let fixture = OnPostgres { uri, part, suffered };
                    let (subject, _guard) = Subject::open(fixture).await;
                    (clause.run)(subject).await;
                });
            }
        }
    }
    trials.test("what_suffered_is_found", |uri| async move {
        let fixture = OnPostgres { uri, part: Part::Repository, suffered: true };
        let (upkeep, _guard) = fixture.open().await;
        let subjects = async |purpose| {
            let steps = upkeep.plan(purpose).await.unwrap();
            steps.into_iter().map(|step| step.subject).collect::<Vec<_>>()
        };
        assert_eq!(subjects(Purpose::Setup).await, [""; 0]);
        let broken = subjects(Purpose::Fixup).await;
        let indexes = ["index rows_of", "index jobs_due", "index consumer_rejects_rejected"];
        assert_eq!(broken, [&["record of store"], &indexes[..]].concat());
        assert_eq!(subjects(Purpose::Cleanup).await.len(), 2);
    })
}
