//! A puller's subscription is paused, replaced or told to be active between the puller's own calls of the
//! store. What it is handed then is what it would be handed if it had asked only after that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{World, few_slots, hook, in_memory, url};
use flare_core::model::subscription::{Mode, SubscriptionBuilder};
use flare_core::model::{Action, Subscription};
use flare_core::port::{DocumentStore, RowStore};
use flare_core::{ErrorKind, Pull, PullOutcome, PullSettlement, Pulled, Result};
use flare_testkit::intercept::{self, Call, Hooks, RepositoryHooks};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const SECOND: Duration = Duration::from_secs(1);

/// Before or after one of a puller's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before(&'static str),
    After(&'static str),
}

/// Every moment at which something may come between what a puller asks the store for.
const MOMENTS: [Moment; 4] = [
    Moment::Before("claim_rows"),
    Moment::After("claim_rows"),
    Moment::Before("documents"),
    Moment::After("documents"),
];

/// Holds a puller up at some moments, one after the other.
#[derive(Debug, Default)]
struct Holdup {
    moments: Mutex<VecDeque<Moment>>,
    reached: Notify,
    goes_on: Notify,
}

impl Holdup {
    async fn at(&self, moment: Moment) {
        let held = self.moments.lock().unwrap().pop_front_if(|next| *next == moment).is_some();
        if held {
            self.reached.notify_one();
            self.goes_on.notified().await;
        }
    }
}

impl Hooks for Holdup {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        self.at(Moment::Before(call.name)).await;
        Ok(())
    }

    async fn after(&self, call: &Call<'_>) -> Result<()> {
        self.at(Moment::After(call.name)).await;
        Ok(())
    }
}

impl RepositoryHooks for Holdup {}

fn passive() -> SubscriptionBuilder {
    hook("a").mode(Mode::Passive)
}

/// A world with a passive subscription of which one document waits, and a puller that is held up.
struct Race {
    world: World,
    holdup: Arc<Holdup>,
    subscription: Subscription,
    puller: JoinHandle<Result<Vec<Pulled>>>,
}

impl Race {
    /// Lets the puller begin, and gets it to the first of the moments.
    async fn until(spec: SubscriptionBuilder, moments: &[Moment]) -> Self {
        let mut world = in_memory(few_slots());
        world.start();
        let resource = world.users().await;
        let subscription = world.calm.create_subscription(resource.id, spec).await.unwrap();
        world.put(1, 1).await;
        spread(&world).await;
        // The node that runs is not behind it; the handle of the puller is.
        let mut holdup = None;
        let world = world.behind(|repository, _| {
            let stores = intercept::repository(repository, Holdup::default());
            holdup = Some(Arc::clone(&stores.hooks));
            stores
        });
        let holdup = holdup.unwrap();
        holdup.moments.lock().unwrap().extend(moments);
        let (flare, id) = (world.flare.clone(), subscription.id);
        let puller = tokio::spawn(async move { flare.pull(id, Pull::new(5)).await });
        let race = Self { world, holdup, subscription, puller };
        race.reached().await;
        race
    }

    /// Waits until the puller is at the next moment.
    async fn reached(&self) {
        self.world.in_time(self.holdup.reached.notified()).await;
    }

    fn goes_on(&self) {
        self.holdup.goes_on.notify_one();
    }

    async fn replace(&self, spec: SubscriptionBuilder) {
        self.world.calm.replace_subscription(self.subscription.id, spec).await.unwrap();
    }

    /// Puts the document that waits once more, and has it spread.
    async fn put(&self, rev: i64) {
        let content = format!(r#"{{"rev":{rev}}}"#);
        self.world.calm.put_json(&url(1), content).await.unwrap();
        spread(&self.world).await;
    }

    /// What the puller is answered.
    async fn answer(self) -> (World, Subscription, Result<Vec<Pulled>>) {
        self.goes_on();
        let answer = self.world.in_time(self.puller).await.unwrap();
        (self.world, self.subscription, answer)
    }
}

async fn spread(world: &World) {
    let store = world.stores.repository();
    world.until("all is spread", async || store.count_undispatched(None).await.unwrap() == 0).await;
}

/// What a notification says: the action, the revision and the content.
fn said(pulled: &Pulled) -> (Action, i64, bool) {
    let json: serde_json::Value = serde_json::from_slice(&pulled.notification).unwrap();
    let action = serde_json::from_value(json["action"].clone()).unwrap();
    (action, json["revision"].as_i64().unwrap(), json.get("document").is_some())
}

#[cfg(feature = "filter")]
#[tokio::test]
async fn what_a_new_filter_withholds_is_not_handed_out_by_the_old_one() {
    for moment in MOMENTS {
        let race = Race::until(passive().filter("document.rev < 10"), &[moment]).await;
        race.replace(passive().filter("document.rev > 10")).await;
        race.put(5).await;
        let (world, subscription, answer) = race.answer().await;
        let told: Vec<_> = answer.unwrap().iter().map(said).collect();
        assert_eq!(told, [], "{moment:?}");
        let row = world.row(subscription.id, 1).await.unwrap();
        assert_eq!((row.claim, row.present), (None, flare_core::model::Present::No), "{moment:?}");
    }
}

#[tokio::test]
async fn nothing_is_handed_out_once_a_pause_has_returned() {
    for moment in MOMENTS {
        let race = Race::until(passive(), &[moment]).await;
        race.world.calm.pause(race.subscription.id).await.unwrap();
        race.put(2).await;
        let (world, subscription, answer) = race.answer().await;
        let refused = answer.expect_err(&format!("{moment:?}"));
        assert_eq!((refused.kind(), refused.field()), (ErrorKind::Conflict, Some("status")));
        assert_eq!(world.row(subscription.id, 1).await.unwrap().claim, None, "{moment:?}");
        // It is there for the client that asks once it goes on.
        world.calm.resume(subscription.id).await.unwrap();
        let told = world.flare.pull(subscription.id, Pull::new(5)).await.unwrap();
        assert_eq!(told.iter().map(said).collect::<Vec<_>>(), [(Action::Create, 2, true)]);
    }
}

#[tokio::test]
async fn a_subscription_that_is_deleted_meanwhile_is_unknown() {
    for moment in MOMENTS {
        let race = Race::until(passive(), &[moment]).await;
        race.world.calm.delete_subscription(race.subscription.id).await.unwrap();
        let (_, _, answer) = race.answer().await;
        assert_eq!(answer.expect_err(&format!("{moment:?}")).kind(), ErrorKind::NotFound);
    }
}

/// P2: one that became active sends what waits; a puller that asked before that has none of it.
#[tokio::test]
async fn what_is_being_sent_is_not_handed_out_as_well() {
    for moment in MOMENTS {
        let race = Race::until(passive(), &[moment]).await;
        race.world.delivery.hang("http://a.example/1");
        race.replace(hook("a")).await;
        race.world.pass(SECOND).await;
        let sent = race.world.delivery.in_flight();
        assert_eq!(sent, usize::from(moment == Moment::Before("claim_rows")), "{moment:?}");
        let (world, subscription, answer) = race.answer().await;
        let refused = answer.expect_err(&format!("{moment:?}"));
        assert_eq!((refused.kind(), refused.field()), (ErrorKind::Conflict, Some("mode")));
        assert_eq!(world.row(subscription.id, 1).await.unwrap().claim, None, "{moment:?}");
        world.delivery.release("http://a.example/1");
        world.settled().await;
        assert_eq!(world.delivery.total(), 1, "{moment:?}");
    }
}

/// P2, P3: active for a while, it has told what the puller had claimed just before that was stored.
#[tokio::test]
async fn what_was_sent_meanwhile_is_not_handed_out_after_it() {
    let moments = [Moment::Before("claim_rows"), Moment::Before("documents")];
    let race = Race::until(passive(), &moments).await;
    race.world.delivery.hang("http://a.example/1");
    race.replace(hook("a")).await;
    race.world.pass(SECOND).await;
    assert_eq!(race.world.delivery.in_flight(), 1);
    race.goes_on();
    race.reached().await;
    race.world.delivery.release("http://a.example/1");
    race.world.settled().await;
    race.replace(passive()).await;
    race.world.pass(SECOND * 10).await;
    let (world, _, answer) = race.answer().await;
    assert_eq!((answer.unwrap(), world.delivery.total()), (Vec::new(), 1));
}

/// P2: on a store that took longer than its claim holds, a puller has nothing of what another one, who was told
/// something newer, has settled since.
#[tokio::test]
async fn what_was_claimed_is_not_handed_out_once_the_claim_has_lapsed() {
    for moment in MOMENTS.into_iter().filter(|moment| *moment != Moment::Before("claim_rows")) {
        let race = Race::until(passive(), &[moment]).await;
        let (id, calm) = (race.subscription.id, race.world.calm.clone());
        race.world.pass(SECOND * 31).await;
        race.put(2).await;
        let pulled = calm.pull(id, Pull::new(5)).await.unwrap();
        assert_eq!(pulled.iter().map(said).collect::<Vec<_>>(), [(Action::Create, 2, true)]);
        let receipts = pulled.into_iter().map(|it| (it.receipt, PullOutcome::Success));
        assert_eq!(calm.settle(id, receipts).await.unwrap(), [PullSettlement::Done]);
        let (world, _, answer) = race.answer().await;
        assert_eq!(answer.unwrap().iter().map(said).collect::<Vec<_>>(), [], "{moment:?}");
        let row = world.row(id, 1).await.unwrap();
        assert!(!row.is_pending() && row.claim.is_none(), "{moment:?}: {row:?}");
    }
}

/// A change of settings that says nothing of what waits costs the puller nothing.
#[tokio::test]
async fn a_puller_goes_on_under_the_newer_settings() {
    for moment in MOMENTS {
        let race = Race::until(passive(), &[moment]).await;
        race.replace(passive().rate(5, SECOND)).await;
        let (world, subscription, answer) = race.answer().await;
        let pulled = answer.unwrap();
        assert_eq!(pulled.iter().map(said).collect::<Vec<_>>(), [(Action::Create, 1, true)]);
        let receipts = pulled.into_iter().map(|it| (it.receipt, PullOutcome::Success));
        let settled = world.flare.settle(subscription.id, receipts).await.unwrap();
        assert_eq!(settled, [PullSettlement::Done], "{moment:?}");
        assert_eq!(world.stores.repository().count_pending(None).await.unwrap().count, 0);
    }
}
