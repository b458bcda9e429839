//! A client that is told nothing by itself takes what waits when it likes: by pulling it, or by asking
//! for it to be sent. Nothing is handed to two, nothing is lost, whatever dies and whoever changes the mode.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{World, few_slots, hook, in_memory, url};
use async_trait::async_trait;
use flare_core::model::subscription::Mode;
use flare_core::model::{Action, Applied, Resource, Subscription, SubscriptionSpec};
use flare_core::port::{ClaimUpdate, Clock, DeliveryOutcome, Repository, RowStore};
use flare_core::{Error, ErrorKind, Pull, Result};
use flare_core::{PullOutcome, PullSettlement, Pulled};
use flare_testkit::intercept::{self, Call, Hooks, RepositoryHooks};
use futures::future::join_all;

const SECOND: Duration = Duration::from_secs(1);

async fn passive(world: &World, resource: &Resource) -> Subscription {
    let spec = hook("a").mode(Mode::Passive);
    world.calm.create_subscription(resource.id, spec).await.unwrap()
}

async fn set_mode(world: &World, subscription: &Subscription, mode: Mode) {
    world.flare.replace_subscription(subscription.id, hook("a").mode(mode)).await.unwrap();
}

async fn pull(world: &World, subscription: &Subscription, max: usize) -> Vec<Pulled> {
    world.flare.pull(subscription.id, Pull::new(max)).await.unwrap()
}

async fn settle(
    world: &World,
    subscription: &Subscription,
    pulled: Vec<Pulled>,
    outcome: PullOutcome,
) -> Vec<PullSettlement> {
    let receipts = pulled.into_iter().map(|it| (it.receipt, outcome));
    world.flare.settle(subscription.id, receipts).await.unwrap()
}

/// What a notification says: the document's id, the action and the revision.
fn said(pulled: &Pulled) -> (String, Action, i64) {
    let json: serde_json::Value = serde_json::from_slice(&pulled.notification).unwrap();
    let action = serde_json::from_value(json["action"].clone()).unwrap();
    (json["id"].as_str().unwrap().to_owned(), action, json["revision"].as_i64().unwrap())
}

async fn spread(world: &World) {
    let store = world.stores.repository();
    world
        .until("all is spread", async || {
            flare_core::port::DocumentStore::count_undispatched(&*store, None).await.unwrap() == 0
        })
        .await;
}

async fn lag(world: &World) -> u64 {
    world.stores.repository().count_pending(None).await.unwrap().count
}

#[tokio::test]
async fn nothing_is_sent_and_what_waits_is_pulled_in_the_newest_version() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = passive(&world, &resource).await;
    for id in 1..=3 {
        world.put(id, 1).await;
        spread(&world).await;
        world.pass(SECOND).await;
    }
    world.put(1, 2).await;
    spread(&world).await;
    world.pass(SECOND * 100).await;
    assert_eq!((world.delivery.total(), lag(&world).await), (0, 3));

    let pulled = pull(&world, &subscription, 2).await;
    let said_first: Vec<_> = pulled.iter().map(said).collect();
    assert_eq!(said_first, [(url(1), Action::Create, 2), (url(2), Action::Create, 1)]);
    let rest = pull(&world, &subscription, 10).await;
    assert_eq!(rest.iter().map(said).collect::<Vec<_>>(), [(url(3), Action::Create, 1)]);
    assert!(pull(&world, &subscription, 10).await.is_empty(), "no row is handed to two");

    use PullSettlement::{Done, Expired};
    let again = pulled.clone();
    assert_eq!(settle(&world, &subscription, pulled, PullOutcome::Success).await, [Done, Done]);
    assert_eq!(settle(&world, &subscription, again, PullOutcome::Success).await, [Expired; 2]);
    assert_eq!(settle(&world, &subscription, rest, PullOutcome::Return).await, [Done]);
    let rest = pull(&world, &subscription, 10).await;
    assert_eq!(settle(&world, &subscription, rest, PullOutcome::Discard).await, [Done]);
    assert_eq!(lag(&world).await, 0);

    // Held, refused and never seen: truthfully.
    world.put(1, 3).await;
    world.put(3, 3).await;
    world.delete(2).await;
    world.put(4, 1).await;
    world.delete(4).await;
    spread(&world).await;
    let mut told: Vec<_> = pull(&world, &subscription, 10).await.iter().map(said).collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        told,
        [(url(1), Action::Update, 3), (url(2), Action::Delete, 1), (url(3), Action::Create, 3)]
    );
    assert_eq!(lag(&world).await, 3, "what was never held needed no telling");
}

#[tokio::test]
async fn a_claim_lapses_and_an_expired_receipt_changes_nothing() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = passive(&world, &resource).await;
    world.put(1, 1).await;
    spread(&world).await;
    let wanted = Pull::new(5).lease(SECOND * 10);
    let lapsed = world.flare.pull(subscription.id, wanted).await.unwrap();
    world.crash().await;
    world.pass(SECOND * 11).await;
    world.start();
    world.pass(SECOND).await;
    let mine = world.flare.pull(subscription.id, wanted).await.unwrap();
    assert_eq!(said(&mine[0]).1, Action::Create);
    let late = settle(&world, &subscription, lapsed, PullOutcome::Success).await;
    assert_eq!((late, lag(&world).await), (vec![PullSettlement::Expired], 1));

    // The client may hold what it was handed: in doubt a deletion is told.
    world.delete(1).await;
    spread(&world).await;
    world.pass(SECOND * 11).await;
    let deleted = world.flare.pull(subscription.id, wanted).await.unwrap();
    assert_eq!(deleted.iter().map(said).collect::<Vec<_>>(), [(url(1), Action::Delete, 1)]);
    assert_eq!(mine.len(), 1);
}

#[tokio::test]
async fn whoever_waits_is_woken_by_the_change() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = passive(&world, &resource).await;
    world.pass(SECOND).await;
    let waits = |flare: flare_core::Flare| {
        let (id, wanted) = (subscription.id, Pull::new(5).wait(SECOND * 20));
        tokio::spawn(async move { flare.pull(id, wanted).await.unwrap() })
    };
    // By the same handle, and by one that hears nothing of the spread.
    for flare in [world.flare.clone(), world.calm.clone()] {
        let waiting = waits(flare);
        world.pass(SECOND * 3).await;
        assert!(!waiting.is_finished());
        let revision = 1 + world.delivery.total() as i64 + lag(&world).await as i64;
        world.put(revision, 1).await;
        world.pass(SECOND).await;
        let pulled = world.in_time(waiting).await.unwrap();
        assert_eq!(pulled.len(), 1);
    }
    let nothing = waits(world.flare.clone());
    world.pass(SECOND * 21).await;
    assert!(world.in_time(nothing).await.unwrap().is_empty());
}

#[tokio::test]
async fn whoever_waits_is_woken_by_a_backfill() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    for id in 0..200 {
        world.put(id, 1).await;
    }
    world.settled().await;
    let spec = hook("a").mode(Mode::Passive).concurrency(5).backfill(true);
    let subscription = world.calm.create_subscription(resource.id, spec).await.unwrap();
    let (began, mut held) = (world.clock.monotonic(), 0);
    while held < 200 {
        let (flare, wanted) = (world.flare.clone(), Pull::new(100).wait(SECOND * 20));
        let waiting = tokio::spawn(async move { flare.pull(subscription.id, wanted).await });
        let pulled = world.in_time(waiting).await.unwrap().unwrap();
        held += pulled.len();
        settle(&world, &subscription, pulled, PullOutcome::Success).await;
    }
    let took = world.clock.monotonic() - began;
    assert!(
        took < SECOND * 5,
        "what is spread is taken at once, not half a second later: {took:?}"
    );
}

#[tokio::test]
async fn what_is_demanded_is_sent_and_nothing_else() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = passive(&world, &resource).await;
    for id in 0..5 {
        world.put(id, 1).await;
    }
    spread(&world).await;
    world.delivery.answer_next("http://a.example/0", DeliveryOutcome::answered(503));
    assert_eq!(world.flare.demand(subscription.id, 3).await.unwrap(), 3);
    world.pass(SECOND * 60).await;
    assert_eq!((world.delivery.total() >= 3, lag(&world).await), (true, 2));
    assert_eq!(world.flare.demand(subscription.id, 1_000).await.unwrap(), 2);
    world.settled().await;
    assert_eq!(world.flare.demand(subscription.id, 1_000).await.unwrap(), 0);
    world.put(0, 2).await;
    spread(&world).await;
    world.pass(SECOND * 60).await;
    assert_eq!(lag(&world).await, 1, "a later change is asked for anew");
}

#[tokio::test]
async fn changing_the_mode_loses_nothing_and_tells_nothing_twice() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = passive(&world, &resource).await;
    for id in 0..4 {
        world.put(id, 1).await;
    }
    spread(&world).await;
    let claimed = pull(&world, &subscription, 2).await;
    set_mode(&world, &subscription, Mode::Active).await;
    world.pass(SECOND * 5).await;
    assert_eq!(world.delivery.total(), 2, "a claimed row is sent by nobody");
    let done = settle(&world, &subscription, claimed, PullOutcome::Success).await;
    assert_eq!(done, [PullSettlement::Done; 2]);
    world.settled().await;
    assert_eq!(world.delivery.total(), 2);

    // Back again, while a request is under way.
    world.delivery.hang("http://a.example/7");
    world.put(7, 1).await;
    world.put(8, 1).await;
    world.pass(SECOND).await;
    set_mode(&world, &subscription, Mode::Passive).await;
    world.put(9, 1).await;
    world.pass(SECOND).await;
    let early: BTreeSet<String> =
        pull(&world, &subscription, 9).await.iter().map(|it| said(it).0).collect();
    assert!(!early.contains(&url(7)), "what is in flight is not handed out");
    world.delivery.release("http://a.example/7");
    world.pass(SECOND * 10).await;
    let pulled = pull(&world, &subscription, 9).await;
    let names: BTreeSet<String> = pulled.iter().map(|it| said(it).0).chain(early).collect();
    assert_eq!(names, BTreeSet::from([url(9)]));
    assert_eq!(world.delivery.total(), 4);
}

/// Its lane may have sent a create and died before it could say so: what waited then is in doubt, for a
/// puller as for the next lane.
#[tokio::test]
async fn a_client_that_a_dead_lane_may_have_told_is_told_of_the_deletion() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    world.delivery.hang("http://a.example/1");
    world.put(1, 1).await;
    world.pass(SECOND).await;
    assert_eq!(world.delivery.total(), 1, "it is on its way");
    world.crash().await;
    set_mode(&world, &subscription, Mode::Passive).await;
    world.start();
    world.pass(SECOND * 20).await;
    world.put(2, 1).await;
    world.delete(1).await;
    world.delete(2).await;
    spread(&world).await;
    let told: Vec<_> = pull(&world, &subscription, 10).await.iter().map(said).collect();
    assert_eq!(told, [(url(1), Action::Delete, 1)], "and what came later is in no doubt");
}

#[tokio::test]
async fn refusals_say_what_is_wrong() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let active = world.subscribe(&resource, "b").await;
    let subscription = passive(&world, &resource).await;
    for error in [
        world.flare.pull(active.id, Pull::new(1)).await.unwrap_err(),
        world.flare.demand(active.id, 1).await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.field()), (ErrorKind::Conflict, Some("mode")), "{error}");
    }
    world.flare.pause(subscription.id).await.unwrap();
    for error in [
        world.flare.pull(subscription.id, Pull::new(1)).await.unwrap_err(),
        world.flare.demand(subscription.id, 1).await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.field()), (ErrorKind::Conflict, Some("status")));
    }
    let wrong = [
        (Pull::new(0), "max"),
        (Pull::new(1_001), "max"),
        (Pull::new(1).wait(SECOND * 21), "waitSeconds"),
        (Pull::new(1).lease(Duration::from_millis(999)), "leaseSeconds"),
        (Pull::new(1).lease(SECOND * 43_201), "leaseSeconds"),
    ];
    for (wanted, field) in wrong {
        let error = world.flare.pull(subscription.id, wanted).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)));
    }
    let given = [("nonsense".to_owned(), PullOutcome::Success)];
    let error = world.flare.settle(subscription.id, given).await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("receipts[0].receipt")));
}

#[tokio::test]
async fn a_client_that_only_pulls_needs_no_url_and_nothing_is_sent_there() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let nowhere = || SubscriptionSpec::builder().mode(Mode::Passive);
    let client = world.calm.create_subscription(resource.id, nowhere()).await.unwrap();
    let other = world.calm.create_subscription(resource.id, nowhere()).await;
    other.expect("who has no url shares none");
    world.put(1, 1).await;
    spread(&world).await;
    let refused = world.flare.demand(client.id, 1).await.unwrap_err();
    assert_eq!((refused.kind(), refused.field()), (ErrorKind::Conflict, Some("endpoint.url")));
    let active = nowhere().mode(Mode::Active);
    let refused = world.flare.replace_subscription(client.id, active).await.unwrap_err();
    assert_eq!((refused.kind(), refused.field()), (ErrorKind::Invalid, Some("endpoint.url")));
    let pulled = pull(&world, &client, 5).await;
    assert_eq!(pulled.iter().map(said).collect::<Vec<_>>(), [(url(1), Action::Create, 1)]);
    // It becomes active once it says where.
    settle(&world, &client, pulled, PullOutcome::Return).await;
    set_mode(&world, &client, Mode::Active).await;
    world.until("sent", async || world.delivery.total() == 1).await;
}

#[tokio::test]
async fn a_next_attempt_is_shown_only_of_what_was_demanded() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = passive(&world, &resource).await;
    world.put(1, 1).await;
    spread(&world).await;
    let next =
        async || world.flare.subscription_status(subscription.id).await.unwrap().next_attempt_at;
    assert_eq!(next().await, None, "nothing is sent by itself");
    world.delivery.hang("http://a.example/1");
    assert_eq!(world.flare.demand(subscription.id, 1).await.unwrap(), 1);
    assert!(next().await.is_some());
    world.delivery.release("http://a.example/1");
    world.settled().await;
    assert_eq!(next().await, None);
}

/// Settles nothing of one document, for as long as it fails.
#[derive(Debug)]
struct FailsAt(String, AtomicBool);

impl Hooks for FailsAt {}

#[async_trait]
impl RepositoryHooks for FailsAt {
    async fn apply_claims(
        &self,
        inner: &dyn Repository,
        updates: Vec<ClaimUpdate>,
    ) -> Vec<Result<Applied>> {
        let mut answers = Vec::new();
        for update in updates {
            let fails = self.1.load(Ordering::SeqCst) && update.key.url.as_str() == self.0;
            answers.push(match fails {
                true => Err(Error::new(ErrorKind::Unavailable, "apply_claims")),
                false => inner.apply_claims(vec![update]).await.pop().unwrap(),
            });
        }
        answers
    }
}

#[tokio::test]
async fn what_cannot_be_settled_hides_nothing_of_what_is() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = passive(&world, &resource).await;
    for id in 0..3 {
        world.put(id, 1).await;
    }
    spread(&world).await;
    let mut hooks = None;
    let world = world.behind(|repository, _| {
        let failing = FailsAt(url(1), AtomicBool::new(true));
        let stores = intercept::repository(repository, failing);
        hooks = Some(std::sync::Arc::clone(&stores.hooks));
        stores
    });
    let pulled = pull(&world, &subscription, 5).await;
    let at = pulled.iter().position(|it| said(it).0 == url(1)).unwrap();
    let mut expected = [PullSettlement::Done; 3];
    expected[at] = PullSettlement::Failed;
    let settled = settle(&world, &subscription, pulled.clone(), PullOutcome::Success).await;
    assert_eq!((settled, lag(&world).await), (expected.to_vec(), 1));

    // Nothing but failures is an error, which says whether to try again.
    let receipt = || [(pulled[at].receipt.clone(), PullOutcome::Success)];
    let error = world.flare.settle(subscription.id, receipt()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    hooks.unwrap().1.store(false, Ordering::SeqCst);
    let settled = world.flare.settle(subscription.id, receipt()).await.unwrap();
    assert_eq!((settled, lag(&world).await), (vec![PullSettlement::Done], 0));
}

/// Counts the documents that are read in a call, and the pulls that are at it.
#[derive(Debug, Default)]
struct ReadCounts {
    most: AtomicUsize,
    claiming: AtomicUsize,
    most_claiming: AtomicUsize,
}

impl Hooks for ReadCounts {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        match call.name {
            "documents" => {
                self.most.fetch_max(call.items, Ordering::SeqCst);
            }
            "claim_rows" => {
                let claiming = self.claiming.fetch_add(1, Ordering::SeqCst) + 1;
                self.most_claiming.fetch_max(claiming, Ordering::SeqCst);
                for _ in 0..500 {
                    tokio::task::yield_now().await;
                }
                self.claiming.fetch_sub(1, Ordering::SeqCst);
            }
            _ => {}
        }
        Ok(())
    }
}

impl RepositoryHooks for ReadCounts {}

/// P7: however large documents are, and however many ask for them.
#[tokio::test]
async fn what_pullers_read_is_bounded_and_all_is_handed_out_in_the_end() {
    let mut settings = few_slots();
    settings.content_limit = 64 << 10;
    let mut world = in_memory(settings);
    world.start();
    let resource = world.users().await;
    let subscription = passive(&world, &resource).await;
    let text = "x".repeat(20 << 10);
    for id in 0..12 {
        let content = format!(r#"{{"rev":1,"text":"{text}"}}"#);
        world.calm.put_json(&url(id), content).await.unwrap();
    }
    spread(&world).await;
    let mut hooks = None;
    let world = world.behind(|repository, _| {
        let stores = intercept::repository(repository, ReadCounts::default());
        hooks = Some(std::sync::Arc::clone(&stores.hooks));
        stores
    });
    let counts = hooks.unwrap();
    let mut pulls = 0;
    while lag(&world).await > 0 {
        pulls += 1;
        let pulled = pull(&world, &subscription, 100).await;
        assert!((1..=3).contains(&pulled.len()), "{} at once", pulled.len());
        settle(&world, &subscription, pulled, PullOutcome::Success).await;
    }
    assert!((4..=12).contains(&pulls), "{pulls} pulls");
    assert!(counts.most.load(Ordering::SeqCst) <= 2, "a call reads what there is room for");

    let pulls = (0..200).map(|_| world.flare.pull(subscription.id, Pull::new(1)));
    for pulled in join_all(pulls).await {
        assert!(pulled.unwrap().is_empty());
    }
    let at_once = counts.most_claiming.load(Ordering::SeqCst);
    assert!((2..=32).contains(&at_once), "{at_once} pulls side by side");
}
