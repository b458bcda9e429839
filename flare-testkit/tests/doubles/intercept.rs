//! Hooks see every call, decide what becomes of it, and change nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::model::{LaneId, SubscriptionId, Timestamp};
use flare_core::port::{
    DocumentStore, JobStore, Lease, LeaseFacts, Outgoing, Queue, QueueName, Receive, RowStore,
    Settlement, Write,
};
use flare_core::{Error, ErrorKind, Result};
use flare_testkit::intercept::{self, Call, Hooks, LeaseHooks, QueueHooks, RepositoryHooks};
use futures::{StreamExt, TryStreamExt};

const MINUTE: Duration = Duration::from_secs(60);
const LANE: QueueName = QueueName::Lane(LaneId::new(SubscriptionId::from_bytes([7; 16]), 0));

/// Notes how often it was asked about what, and fails calls of one name before or after their effect.
#[derive(Debug, Default)]
struct Fails {
    before: &'static str,
    after: &'static str,
    asked: Mutex<BTreeMap<String, usize>>,
}

impl Fails {
    fn before(before: &'static str) -> Self {
        Self { before, ..Self::default() }
    }

    fn after(after: &'static str) -> Self {
        Self { after, ..Self::default() }
    }

    /// What was asked about, and how often: before and after a call, so twice unless it is a scan or
    /// failed before.
    fn asked(&self) -> Vec<(String, usize)> {
        std::mem::take(&mut *self.asked.lock().unwrap()).into_iter().collect()
    }

    fn ask(&self, call: &Call<'_>, fails: &str) -> Result<()> {
        let queue = call.queue.map(|queue| format!(" of {queue}")).unwrap_or_default();
        let about = format!("{} {}{queue}", call.name, call.items);
        *self.asked.lock().unwrap().entry(about).or_default() += 1;
        if call.name == fails { Err(Error::new(ErrorKind::Busy, call.name)) } else { Ok(()) }
    }
}

impl Hooks for Fails {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        self.ask(call, self.before)
    }

    async fn after(&self, call: &Call<'_>) -> Result<()> {
        self.ask(call, self.after)
    }
}

impl RepositoryHooks for Fails {}

impl LeaseHooks for Fails {
    const ELSEWHERE: bool = true;
}

impl QueueHooks for Fails {
    fn reached(&self, named: &QueueName) -> QueueName {
        if *named == QueueName::Slot(9) { LANE } else { named.clone() }
    }
}

fn asked<const N: usize>(expected: [(&str, usize); N]) -> Vec<(String, usize)> {
    expected.into_iter().map(|(about, times)| (about.to_owned(), times)).collect()
}

#[tokio::test]
async fn a_call_of_a_queue_fails_before_or_after_its_effect() {
    let memory = MemoryBackend::new().queue();
    memory.create(&QueueName::Spread).await.unwrap();
    let two = || vec![Outgoing::new("a"), Outgoing::new("b")];
    let ready = async || memory.depth(&QueueName::Spread).await.unwrap().ready;

    let before = intercept::queue(memory.clone(), Fails::before("send"));
    let answers = before.send(&QueueName::Spread, two()).await;
    assert!(answers.len() == 2 && answers.iter().all(Result::is_err));
    assert_eq!(ready().await, 0);
    assert_eq!(before.hooks.asked(), asked([("send 2 of spread", 1)]));

    let after = intercept::queue(memory.clone(), Fails::after("send"));
    let answers = after.send(&QueueName::Spread, two()).await;
    assert!(answers.len() == 2 && answers.iter().all(Result::is_err));
    assert_eq!(ready().await, 2);
    assert_eq!(after.hooks.asked(), asked([("send 2 of spread", 2)]));
}

#[tokio::test]
async fn receipts_come_back_from_a_settlement_that_fails() {
    let memory = MemoryBackend::new().queue();
    memory.create(&QueueName::Spread).await.unwrap();
    for (hooks, settled) in [(Fails::before("settle"), 0), (Fails::after("settle"), 1)] {
        let queue = intercept::queue(memory.clone(), hooks);
        queue.send(&QueueName::Spread, vec![Outgoing::new("a")]).await.remove(0).unwrap();
        let mut received =
            queue.receive(&QueueName::Spread, Receive::new(1, MINUTE)).await.unwrap();
        let receipt = received.remove(0).receipt;
        let token = receipt.token().to_owned();
        let answers = queue.settle(&QueueName::Spread, vec![(receipt, Settlement::Done)]).await;
        let unsettled = answers.into_iter().next().unwrap().unwrap_err();
        assert_eq!(unsettled.error.kind(), ErrorKind::Busy);
        assert_eq!(unsettled.receipt.token(), token);
        let again = memory.settle(&QueueName::Spread, vec![(unsettled.receipt, Settlement::Done)]);
        assert_eq!(again.await.iter().filter(|answer| answer.is_err()).count(), settled);
    }
}

#[tokio::test]
async fn a_call_reaches_the_queue_that_the_hooks_choose() {
    let memory = MemoryBackend::new().queue();
    let queue = intercept::queue(memory.clone(), Fails::default());
    queue.create(&QueueName::Slot(9)).await.unwrap();
    queue.send(&QueueName::Slot(9), vec![Outgoing::new("a")]).await.remove(0).unwrap();
    assert_eq!(queue.depth(&QueueName::Slot(9)).await.unwrap().ready, 1);
    let names: Vec<QueueName> = queue.list().try_collect().await.unwrap();
    assert_eq!(names, [LANE]);
    assert_eq!(memory.depth(&LANE).await.unwrap().ready, 1);
    let of = |call: &str| (format!("{call} 1 of {LANE}"), 2);
    assert_eq!(
        queue.hooks.asked(),
        [of("create"), of("depth"), ("list 0".to_owned(), 1), of("send")]
    );
}

#[tokio::test]
async fn a_repository_s_calls_are_seen_with_as_many_items_as_they_have() {
    let memory = MemoryBackend::new().repository();
    let fails = Fails { before: "due_jobs", after: "next_epoch", ..Fails::default() };
    let repository = intercept::repository(memory.clone(), fails);
    assert!(repository.next_epoch().await.is_err());
    assert!(memory.next_epoch().await.unwrap().epoch.get() > 1, "one was drawn");
    assert!(repository.rows(Vec::new()).await.unwrap().is_empty());
    assert!(repository.mark_dispatched(Vec::new()).await.is_empty());
    let found: Vec<_> = repository.undispatched(Timestamp::MAX).collect().await;
    assert!(found.is_empty(), "{found:?}");
    let jobs: Vec<_> = repository.due_jobs(Timestamp::MAX, 1).collect().await;
    assert!(matches!(jobs.as_slice(), [Err(_)]), "{jobs:?}");
    let seen = asked([
        ("due_jobs 0", 1),
        ("mark_dispatched 0", 2),
        ("next_epoch 1", 2),
        ("rows 0", 2),
        ("undispatched 0", 1),
    ]);
    assert_eq!(repository.hooks.asked(), seen);
}

#[tokio::test]
async fn a_store_that_is_elsewhere_does_not_learn_of_deaths() {
    let memory = MemoryBackend::new().lease();
    let lease = intercept::lease(memory.clone(), Fails::after("write"));
    assert_eq!(lease.facts(), LeaseFacts::default());
    assert_ne!(lease.facts(), memory.facts());
    let grant = lease.grant(MINUTE).await.unwrap();
    assert!(lease.write(Write::new("key", "value").lease(grant.id)).await.is_err());
    lease.abandon(grant.id);
    assert!(memory.get("key").await.unwrap().is_some());
    memory.abandon(grant.id);
    assert!(memory.get("key").await.unwrap().is_none());
}

#[tokio::test]
async fn clones_share_the_port_and_the_hooks() {
    let memory = MemoryBackend::new().queue();
    let queue = intercept::queue(memory, Fails::default());
    let other: Arc<dyn Queue> = Arc::new(queue.clone());
    other.create(&QueueName::Spread).await.unwrap();
    assert_eq!(queue.depth(&QueueName::Spread).await.unwrap().ready, 0);
    assert_eq!(queue.hooks.asked().len(), 2);
}
