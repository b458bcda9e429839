//! Documents that a host's own transactions put into the store, with the queue elsewhere: announced as soon as the store
//! says so, once each, however busy the queue is; and nothing where a store has no such thing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{World, few_slots, in_memory, url};
use async_trait::async_trait;
use flare_core::model::{Content, DocumentKey, DocumentUrl, Resource};
use flare_core::port::{
    Clock, DocumentWrite, Outgoing, Queue, QueueName, Repository, RepositoryFacts, Undispatched,
};
use flare_core::{Error, ErrorKind, Result};
use flare_testkit::ManualClock;
use flare_testkit::intercept::{self, Hooks, QueueHooks, RepositoryHooks};
use tokio::sync::Notify;

/// A store that documents are put into by others, if it says so.
#[derive(Debug)]
struct Shared {
    says_so: bool,
    clock: ManualClock,
    put: Mutex<VecDeque<Undispatched>>,
    rung: Notify,
    asked: AtomicU64,
}

impl Hooks for Shared {}

#[async_trait]
impl RepositoryHooks for Shared {
    fn facts(&self, inner: &dyn Repository) -> RepositoryFacts {
        if self.says_so { inner.facts().puts_beside() } else { inner.facts() }
    }

    async fn take_puts_beside(
        &self,
        _: &dyn Repository,
        limit: usize,
        wait: Duration,
    ) -> Result<Vec<Undispatched>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.put.lock().unwrap().is_empty() {
            tokio::select! {
                biased;
                () = self.rung.notified() => {}
                () = self.clock.sleep(wait) => {}
            }
        }
        let mut put = self.put.lock().unwrap();
        let some = put.len().min(limit);
        Ok(put.drain(..some).collect())
    }
}

/// Counts what the partition stage is told, and refuses it if it should.
#[derive(Debug, Default)]
struct Told {
    messages: AtomicU64,
    refuses: AtomicBool,
}

impl Hooks for Told {}

#[async_trait]
impl QueueHooks for Told {
    async fn send(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        messages: Vec<Outgoing>,
    ) -> Vec<Result<()>> {
        if *queue == QueueName::Partition {
            if self.refuses.load(Ordering::Relaxed) {
                let refused = || Err(Error::new(ErrorKind::Unavailable, "send"));
                return messages.iter().map(|_| refused()).collect();
            }
            self.messages.fetch_add(messages.len() as u64, Ordering::Relaxed);
        }
        inner.send(queue, messages).await
    }
}

/// A Flare that runs, with a client, on a store that is shared and a queue that counts.
async fn running(says_so: bool) -> (World, Resource, Arc<Shared>, Arc<Told>) {
    let mut world = in_memory(few_slots());
    let (clock, put, rung) = (world.clock.clone(), Mutex::default(), Notify::new());
    let shared = Shared { says_so, clock, put, rung, asked: AtomicU64::new(0) };
    let repository = intercept::repository(world.repository(), shared);
    let queue = intercept::queue(world.queue(), Told::default());
    world.backend.repository = Some(Arc::new(repository.clone()));
    world.backend.queue = Some(Arc::new(queue.clone()));
    world.start();
    let users = world.users().await;
    world.subscribe(&users, "c").await;
    world.put(0, 1).await;
    world.settled().await;
    (world, users, repository.hooks, queue.hooks)
}

/// Stores a user as a host's own transaction does; gives what a look for it has.
async fn put_beside(world: &World, users: &Resource, id: u32) -> Undispatched {
    let key = DocumentKey::new(users.id, DocumentUrl::parse(&url(id)).unwrap());
    let json = br#"{"rev":1}"#.as_slice();
    let (revision, content) = Content::parse(&users.change, json.into()).unwrap();
    let write = DocumentWrite::put(key.clone(), revision, content);
    let store = world.repository();
    store.write_documents(vec![write]).await.pop().unwrap().unwrap();
    Undispatched::of(&store.documents(vec![key]).await.unwrap().pop().flatten().unwrap())
}

impl Shared {
    fn hand_out(&self, put: Undispatched) {
        self.put.lock().unwrap().push_back(put);
        self.rung.notify_one();
    }
}

#[tokio::test]
async fn it_is_announced_at_once_however_busy_the_queue_is() {
    let (world, users, shared, told) = running(true).await;
    // A task that waits for hours: a change that has none may be the one it is about.
    let waiting = Outgoing::new(b"{}".as_slice()).delay(Duration::from_hours(5));
    world.stores.queue().send(&QueueName::Partition, vec![waiting]).await.pop().unwrap().unwrap();
    let (before, begun) = (told.messages.load(Ordering::Relaxed), world.clock.monotonic());
    for id in 1..=20 {
        shared.hand_out(put_beside(&world, &users, id).await);
        world.until("told", async || world.delivery.total() == u64::from(id) + 1).await;
    }
    let took = world.clock.monotonic() - begun;
    assert!(took < 20 * Duration::from_millis(500), "{took:?}");
    // Neither those nor the puts of this node are announced again by it.
    for id in 21..=40 {
        world.put(id, 1).await;
    }
    world.settled().await;
    assert_eq!(told.messages.load(Ordering::Relaxed) - before, 40, "one task each");
}

#[tokio::test]
async fn what_could_not_be_announced_the_reconciler_finds() {
    let (world, users, shared, told) = running(true).await;
    told.refuses.store(true, Ordering::Relaxed);
    shared.hand_out(put_beside(&world, &users, 1).await);
    world.until("taken", async || shared.put.lock().unwrap().is_empty()).await;
    world.pass(Duration::from_millis(100)).await;
    told.refuses.store(false, Ordering::Relaxed);
    let begun = world.clock.monotonic();
    world.until("told", async || world.delivery.total() == 2).await;
    let took = world.clock.monotonic() - begun;
    assert!(took < world.settings.reconcile_every * 3, "{took:?}");
    // And the look goes on.
    shared.hand_out(put_beside(&world, &users, 2).await);
    world.until("told", async || world.delivery.total() == 3).await;
}

#[tokio::test]
async fn a_store_of_flare_s_own_is_never_asked() {
    let (world, _, shared, _) = running(false).await;
    world.pass(Duration::from_mins(10)).await;
    assert_eq!(shared.asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn nothing_put_costs_one_question_that_waits() {
    let (world, _, shared, _) = running(true).await;
    let before = shared.asked.load(Ordering::Relaxed);
    for _ in 0..600 {
        world.pass(Duration::from_secs(1)).await;
    }
    let asked = shared.asked.load(Ordering::Relaxed) - before;
    assert!(asked <= 11, "{asked} questions in ten minutes");
}
