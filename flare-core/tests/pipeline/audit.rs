//! The log of what operators and nodes did: who is told of as having done what, that it is bounded, and that
//! nothing else depends on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::cluster::ClusterSettings;
use flare_core::model::{Actor, AuditAction, AuditSubject, JobKind, NewResource, SubscriptionSpec};
use flare_core::port::{DeliveryOutcome, Page, SystemClock};
use flare_core::{Error, ErrorKind, Flare, FlareBuilder, Result, Settings};
use flare_testkit::RecordingDelivery;
use flare_testkit::intercept::{self, Call, Hooks, RepositoryHooks};
use tokio::sync::Semaphore;

const CLIENT: &str = "http://client.example/1";
const PATIENCE: Duration = Duration::from_secs(600);
const ALL: Page = Page::new(10_000, 0);

fn users() -> NewResource {
    NewResource::new("http://api.example.com/users/{id}").change_field("rev")
}

fn wish() -> SubscriptionSpec {
    SubscriptionSpec::post(CLIENT).build().unwrap()
}

/// A handle whose runtime does not run.
fn handle(builder: FlareBuilder) -> Flare {
    let (flare, runtime) = builder.build().unwrap();
    runtime.unused();
    flare
}

/// Who did what to what, newest first.
async fn told(flare: &Flare) -> Vec<(String, String, AuditSubject)> {
    let listing = flare.audit_log(None, ALL).await.unwrap();
    assert_eq!(listing.total, listing.items.len() as u64);
    let told = listing.items.into_iter();
    told.map(|it| (it.actor.to_string(), it.action.to_string(), it.subject)).collect()
}

#[tokio::test]
async fn what_is_done_is_told_with_who_did_it() {
    let flare = handle(Flare::builder(MemoryBackend::new()));
    let (ann, bob) = (flare.acting_as("ann"), flare.acting_as("bob"));
    let users = ann.create_resource(users()).await.unwrap();
    let one = bob.create_subscription(users.id, wish()).await.unwrap().id;
    bob.replace_subscription(one, wish()).await.unwrap();
    for _ in 0..2 {
        // The second time it changes nothing, and is not told.
        ann.pause(one).await.unwrap();
    }
    flare.resume(one).await.unwrap();
    ann.retry_now(one).await.unwrap();
    bob.backfill(one).await.unwrap();
    assert!(bob.cancel_backfill(one).await.unwrap());
    assert!(!bob.cancel_backfill(one).await.unwrap());
    ann.resync(one, Some("http://api.example.com/users/7")).await.unwrap();
    assert_eq!(ann.replay_all(one).await.unwrap(), 0, "nothing to tell");
    bob.delete_subscription(one).await.unwrap();
    ann.delete_resource(users.id).await.unwrap();
    assert!(ann.pause(one).await.is_err(), "what is refused is not told");

    let (resource, subscription) =
        (AuditSubject::resource(users.id), AuditSubject::subscription(one));
    let expected = [
        ("ann", "deleted", &resource),
        ("bob", "deleted", &subscription),
        ("ann", "resync-asked", &subscription),
        ("bob", "backfill-cancelled", &subscription),
        ("bob", "backfill-asked", &subscription),
        ("ann", "retried", &subscription),
        ("host", "resumed", &subscription),
        ("ann", "paused", &subscription),
        ("bob", "replaced", &subscription),
        ("bob", "created", &subscription),
        ("ann", "created", &resource),
    ];
    let expected = expected.map(|(by, did, what)| (by.to_owned(), did.to_owned(), what.clone()));
    assert_eq!(told(&flare).await, expected);

    let its = flare.audit_log(Some(&resource), ALL).await.unwrap();
    assert_eq!((its.total, its.items[1].action.clone()), (2, AuditAction::Created));
    assert_eq!(its.items[1].detail.as_deref(), Some("http://api.example.com/users/{id}"));
    let page = flare.audit_log(Some(&subscription), Page::new(2, 6)).await.unwrap();
    assert_eq!((page.total, page.items.len()), (9, 2));
    let resync = flare.audit_log(None, Page::new(1, 2)).await.unwrap().items.remove(0);
    assert_eq!(resync.detail.as_deref(), Some("below http://api.example.com/users/7"));
}

#[tokio::test]
async fn nodes_tell_what_becomes_of_them_and_of_clients() {
    let client = RecordingDelivery::new(Arc::new(SystemClock::new()));
    let mut cluster = ClusterSettings::default();
    cluster.name = "n1".to_owned();
    let builder = Flare::builder(MemoryBackend::new()).cluster(cluster);
    let (flare, runtime) = builder.delivery(Arc::new(client.clone())).build().unwrap();
    let running = runtime.spawn();
    let users = flare.create_resource(users()).await.unwrap();
    let one = flare.create_subscription(users.id, wish()).await.unwrap().id;
    client.answer_next(CLIENT, DeliveryOutcome::answered(410));
    let mut events = flare.events();
    flare.put_json("http://api.example.com/users/1", r#"{"rev":1}"#).await.unwrap();
    loop {
        if let flare_core::EventKind::Suspended { .. } = events.next().await.unwrap().kind {
            break;
        }
    }
    running.drain(PATIENCE).await.unwrap();

    let log = flare.audit_log(None, ALL).await.unwrap().items;
    let of = |action: AuditAction| log.iter().find(|entry| entry.action == action).unwrap();
    let suspended = of(AuditAction::Suspended);
    assert_eq!(suspended.subject, AuditSubject::subscription(one));
    assert_eq!(suspended.actor, Actor::node("n1"));
    assert!(suspended.detail.as_ref().unwrap().contains("410"), "{suspended:?}");
    let (joined, left) = (of(AuditAction::Joined), of(AuditAction::Left));
    assert_eq!((&joined.actor, &joined.subject), (&Actor::node("n1"), &left.subject));
    assert_eq!(joined.subject.kind(), "node");
}

/// Holds up, or fails, what is stored in the log and nothing else.
#[derive(Debug)]
struct Hindered {
    fails: AtomicBool,
    stored: AtomicUsize,
    may: Semaphore,
}

impl Hindered {
    fn new(may: usize) -> Self {
        let (fails, stored) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { fails, stored, may: Semaphore::new(may) }
    }
}

impl Hooks for Hindered {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        if call.name == "insert_audit" {
            self.may.acquire().await.unwrap().forget();
            if self.fails.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Internal, call.name).with_detail("on purpose"));
            }
            self.stored.fetch_add(call.items, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl RepositoryHooks for Hindered {}

#[tokio::test]
async fn a_log_that_cannot_be_written_holds_up_and_fails_nothing() {
    let memory = MemoryBackend::new();
    let hindered = intercept::repository(memory.repository(), Hindered::new(0));
    let flare = handle(Flare::builder(memory).repository(Arc::new(hindered.clone())));
    let users = flare.create_resource(users()).await.unwrap();
    let one = flare.create_subscription(users.id, wish()).await.unwrap().id;
    // Nothing of the log is answered, and everything else is.
    for _ in 0..1_500 {
        flare.retry_now(one).await.unwrap();
    }
    assert_eq!(hindered.hooks.stored.load(Ordering::Relaxed), 0);
    hindered.hooks.may.add_permits(10_000);
    while flare.audit_log(None, Page::new(1, 0)).await.unwrap().total < 1_000 {}
    assert_eq!(told(&flare).await.len(), 1_000, "what found no room is not there");

    hindered.hooks.fails.store(true, Ordering::Relaxed);
    flare.pause(one).await.unwrap();
    assert_eq!(told(&flare).await.len(), 1_000, "what could not be stored is not there");
    hindered.hooks.fails.store(false, Ordering::Relaxed);
    flare.resume(one).await.unwrap();
    let log = told(&flare).await;
    assert_eq!((log.len(), log[0].1.as_str()), (1_001, "resumed"));
}

#[tokio::test]
async fn so_much_is_kept_and_no_more() {
    let memory = MemoryBackend::new();
    let settings = Settings::default().audit_limit(50);
    let (flare, runtime) =
        Flare::builder(memory.clone()).settings(settings.clone()).build().unwrap();
    let users = flare.create_resource(users()).await.unwrap();
    let one = flare.create_subscription(users.id, wish()).await.unwrap().id;
    for _ in 0..499 {
        flare.retry_now(one).await.unwrap();
    }
    // By what is written alone, before any runtime looks after it.
    let kept = flare.audit_log(None, ALL).await.unwrap().total;
    assert!((50..=250).contains(&kept), "{kept}");
    let running = runtime.spawn();
    while flare.audit_log(None, ALL).await.unwrap().total > 50 {
        tokio::task::yield_now().await;
    }
    running.drain(PATIENCE).await.unwrap();

    let none = handle(Flare::builder(memory).settings(settings.audit_limit(0)));
    let before = flare.audit_log(None, ALL).await.unwrap().total;
    none.retry_now(one).await.unwrap();
    assert_eq!(none.audit_log(None, ALL).await.unwrap().total, before, "none is stored");
}

#[tokio::test]
async fn refused_sign_ins_are_told_by_their_number() {
    let flare = handle(Flare::builder(MemoryBackend::new()));
    for _ in 0..1_000 {
        flare.note_refused_sign_in("unknown-token");
    }
    flare.note_refused_sign_in("no-token");
    let log = flare.audit_log(None, ALL).await.unwrap().items;
    let unknown = log.iter().filter(|entry| entry.subject.id() == "unknown-token");
    let counts: Vec<u64> = unknown.map(|entry| entry.count).collect();
    assert_eq!(counts, [999, 1]);
    assert!(log.iter().all(|entry| entry.action == AuditAction::Refused));
    assert_eq!(log.len(), 3);
}

#[tokio::test]
async fn long_work_is_listed_with_how_far_it_is() {
    let client = RecordingDelivery::new(Arc::new(SystemClock::new()));
    let (flare, runtime) =
        Flare::builder(MemoryBackend::new()).delivery(Arc::new(client)).build().unwrap();
    assert_eq!(flare.jobs(ALL).await.unwrap().total, 0);
    let users = flare.create_resource(users()).await.unwrap();
    for number in 0..7 {
        let url = format!("http://api.example.com/users/{number}");
        flare.put_json(&url, r#"{"rev":1}"#).await.unwrap();
    }
    let one = flare.create_subscription(users.id, wish()).await.unwrap().id;
    flare.backfill(one).await.unwrap();
    let asked = flare.jobs(ALL).await.unwrap();
    let backfill = asked.items.iter().find(|job| job.kind == JobKind::Backfill).unwrap();
    assert_eq!((&backfill.subject, backfill.node), (&one.to_string(), None));
    let progress = backfill.progress.unwrap();
    assert_eq!((progress.scanned, progress.total, progress.done), (0, 0, false));

    let running = runtime.spawn();
    flare.settled(PATIENCE).await.unwrap();
    let jobs = flare.jobs(ALL).await.unwrap();
    assert_eq!(jobs.total, jobs.items.len() as u64);
    let done = jobs.items.iter().find(|job| job.id == backfill.id).unwrap();
    let progress = done.progress.unwrap();
    assert_eq!((progress.scanned, progress.total, progress.done), (7, 7, true));
    assert_eq!((done.since, done.due > backfill.due), (backfill.since, true));
    let others = jobs.items.iter().filter(|job| job.kind != JobKind::Backfill);
    assert!(others.clone().all(|job| job.progress.is_none()), "{jobs:?}");
    assert!(others.clone().any(|job| job.kind == JobKind::Expire), "{jobs:?}");
    running.drain(PATIENCE).await.unwrap();
}
