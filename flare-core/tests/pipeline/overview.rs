//! Who is behind is told of all subscriptions at once, the same from every handle, for a few calls of the store.

use std::time::Duration;

use crate::support::{World, few_slots, hook, in_memory};
use flare_core::model::subscription::RetryPolicy;
use flare_core::model::{
    NewResource, RecordName, SubscriptionId, SubscriptionStatus, SummaryOrder, WhyUnreadable,
};
use flare_core::port::{DeliveryOutcome, Page, RowStore};
use flare_core::{OverviewQuery, SubscriptionOverview};
use flare_testkit::CountingRepository;

const ALL: OverviewQuery = OverviewQuery::new(Page::new(1_000, 0));

async fn overview(world: &World, query: OverviewQuery) -> SubscriptionOverview {
    let (here, elsewhere) =
        (world.flare.overview(query).await.unwrap(), world.calm.overview(query).await.unwrap());
    let ids = |all: &SubscriptionOverview| all.items.iter().map(|it| it.id).collect::<Vec<_>>();
    assert_eq!(ids(&here), ids(&elsewhere), "from every handle");
    assert_eq!(here.totals.lag, elsewhere.totals.lag);
    here
}

/// Waits until all is delivered, and what was counted is stored.
async fn counted(world: &World) {
    world.settled().await;
    world.pass(Duration::from_secs(2)).await;
}

fn ids(overview: &SubscriptionOverview) -> Vec<SubscriptionId> {
    overview.items.iter().map(|it| it.id).collect()
}

#[tokio::test]
async fn who_is_behind_is_right_within_two_seconds() {
    let mut world = in_memory(few_slots());
    world.start();
    let users = world.users().await;
    let notes = NewResource::new("http://api.example/notes/{id}").change_field("rev");
    let notes = world.flare.create_resource(notes).await.unwrap();
    let well = world.subscribe(&users, "well").await;
    let patient = RetryPolicy::builder().num_retries(100).min_delay_target(Duration::from_secs(9));
    let spec = hook("failing").retry(patient.build().unwrap());
    let failing = world.flare.create_subscription(notes.id, spec).await.unwrap();
    let paused = world.flare.create_subscription(notes.id, hook("paused")).await.unwrap();
    world.flare.pause(paused.id).await.unwrap();
    assert_eq!(overview(&world, ALL).await.totals.subscriptions, 3);
    for id in 0..5 {
        world
            .delivery
            .answer(format!("http://failing.example/{id}"), DeliveryOutcome::answered(404));
        let url = format!("http://api.example/notes/{id}");
        world.flare.put_json(&url, r#"{"rev":1}"#).await.unwrap();
    }
    world.put(1, 1).await;
    world.pass(Duration::from_secs(30)).await;
    world.flare.put_json("http://api.example/notes/9", r#"{"rev":1}"#).await.unwrap();
    world.pass(Duration::from_secs(2)).await;

    let by = async |order| overview(&world, ALL.by(order)).await;
    let lag = by(SummaryOrder::Lag).await;
    assert_eq!(ids(&lag), [paused.id, failing.id, well.id]);
    assert_eq!(lag.items.iter().map(|it| it.lag).collect::<Vec<_>>(), [6, 5, 0]);
    for summary in &lag.items {
        let report = world.flare.subscription_status(summary.id).await.unwrap();
        assert_eq!((summary.status, summary.lag), (report.status, report.lag));
        assert_eq!(summary.oldest_pending.as_secs(), report.oldest_pending.as_secs());
        assert_eq!(summary.consecutive_failures, report.consecutive_failures);
        assert_eq!(
            (&summary.last_error, summary.last_error_at),
            (&report.last_error, report.last_error_at)
        );
        assert_eq!((summary.probing, &summary.node), (report.probing, &report.node));
        assert_eq!(summary.last_success_at, report.last_success_at);
    }
    let totals = &lag.totals;
    assert_eq!((totals.lag, totals.behind, totals.failing, totals.subscriptions), (11, 2, 1, 3));
    assert!(totals.oldest_pending >= Duration::from_secs(30), "{totals:?}");
    assert!(totals.by_status.contains(&(SubscriptionStatus::Paused, 1)), "{totals:?}");
    assert_eq!(ids(&by(SummaryOrder::Failures).await)[0], failing.id);
    assert_eq!(ids(&by(SummaryOrder::Rate).await)[2], paused.id);
    let first = &lag.items[1];
    assert_eq!(first.url.as_deref(), Some("http://failing.example/{id}"));
    assert!(first.resource == Some(notes.id) && first.node.is_some(), "{first:?}");

    let held = overview(&world, ALL.status(SubscriptionStatus::Paused)).await;
    assert_eq!((ids(&held), held.total), (vec![paused.id], 1));
    assert_eq!(ids(&overview(&world, ALL.resource(users.id)).await), [well.id]);
    let second = overview(&world, OverviewQuery::new(Page::new(1, 1))).await;
    assert_eq!((ids(&second), second.total), (vec![failing.id], 3));
    assert_eq!(ids(&overview(&world, OverviewQuery::new(Page::new(1, 3))).await), []);

    world.flare.resume(paused.id).await.unwrap();
    world.flare.delete_subscription(failing.id).await.unwrap();
    world.pass(Duration::from_secs(2)).await;
    let after = overview(&world, ALL).await;
    assert_eq!(after.totals.subscriptions, 2);
    assert!(after.items.iter().all(|it| it.status == SubscriptionStatus::Active), "{after:?}");
}

#[tokio::test]
async fn rates_fall_to_nothing_though_nothing_is_written_any_more() {
    let mut world = in_memory(few_slots());
    world.start();
    let users = world.users().await;
    let one = world.subscribe(&users, "one").await;
    for id in 0..30 {
        world.put(id, 1).await;
    }
    counted(&world).await;
    let status = async || world.calm.subscription_status(one.id).await.unwrap();
    let report = status().await;
    assert_eq!(report.rates.delivered.minute, 0.5, "thirty in the last minute");
    assert_eq!((report.times.latency.count, report.times.attempts.count), (30, 30));
    let written = async || {
        let lanes = world.stores.repository().lanes(one.id).await.unwrap().items;
        lanes.into_iter().map(|state| state.updated_at).max()
    };
    let last = written().await;
    world.pass(Duration::from_secs(90)).await;
    let report = status().await;
    assert_eq!(report.rates.delivered.minute, 0.0);
    assert_eq!(report.rates.delivered.five_minutes, 0.1);
    world.pass(Duration::from_secs(900)).await;
    let report = status().await;
    assert_eq!((report.rates, report.times), Default::default());
    assert_eq!(report.delivered, 30);
    assert_eq!(written().await, last, "an idle lane writes nothing");
    assert_eq!(overview(&world, ALL).await.items[0].rates, Default::default());
    assert_eq!(world.flare.node().puts, Default::default());
}

#[tokio::test]
async fn a_new_owner_goes_on_with_the_rates() {
    let mut world = in_memory(few_slots());
    world.start();
    let users = world.users().await;
    let one = world.subscribe(&users, "one").await;
    for id in 0..30 {
        world.put(id, 1).await;
    }
    counted(&world).await;
    world.stop().await;
    world.start();
    for id in 30..60 {
        world.put(id, 1).await;
    }
    counted(&world).await;
    let report = world.calm.subscription_status(one.id).await.unwrap();
    assert!(report.rates.delivered.five_minutes >= 0.2, "{report:?}");
    assert_eq!(report.times.latency.count, 60);
}

#[tokio::test]
async fn one_that_cannot_be_read_is_there_with_what_waits_for_it() {
    let mut world = in_memory(few_slots());
    let users = world.users().await;
    let (spoilt, well) = (world.subscribe(&users, "a").await, world.subscribe(&users, "b").await);
    let why = Some(WhyUnreadable::Damaged { detail: "spec is not understood".to_owned() });
    world.stores.repository().spoil(RecordName::Subscription(spoilt.id), why);
    world.start();
    world.put(1, 1).await;
    world.until("one is told", async || world.delivery.total() == 1).await;
    world.pass(Duration::from_secs(3)).await;
    let all = overview(&world, ALL).await;
    assert_eq!(ids(&all), [spoilt.id, well.id]);
    assert_eq!((all.items[0].status, all.items[0].lag), (SubscriptionStatus::Unreadable, 1));
    assert!(all.items[0].reason.as_deref().unwrap().contains("spec is not understood"));
    let unreadable = overview(&world, ALL.status(SubscriptionStatus::Unreadable)).await;
    assert_eq!(ids(&unreadable), [spoilt.id]);
}

#[tokio::test]
async fn it_takes_few_calls_however_many_subscriptions_and_viewers_there_are() {
    let mut counting = None;
    let world = in_memory(few_slots())
        .behind(|repository, _| counting.insert(CountingRepository::new(repository)).clone());
    let calls = counting.unwrap();
    let users = world.users().await;
    let mut some = Vec::new();
    for number in 0..300 {
        some.push(world.subscribe(&users, &format!("client{number}")).await);
    }
    assert_eq!(world.flare.overview(ALL).await.unwrap().total, 300);
    world.pass(Duration::from_secs(2)).await;
    calls.take();
    let many = (0..50).map(|_| world.flare.overview(ALL));
    for shown in futures::future::join_all(many).await {
        assert_eq!(shown.unwrap().total, 300);
    }
    let tally = calls.take();
    for call in ["scan_members", "pending_each", "scan_lanes"] {
        assert_eq!(tally.of(call).calls, 1, "{call}: {tally:?}");
    }
    assert_eq!(tally.total(), 3, "{tally:?}");
    // What changed is read by itself.
    world.flare.pause(some[7].id).await.unwrap();
    world.pass(Duration::from_secs(2)).await;
    calls.take();
    let paused = world.flare.overview(ALL.status(SubscriptionStatus::Paused)).await.unwrap();
    assert_eq!(ids(&paused), [some[7].id]);
    assert_eq!(calls.take().total(), 4);
}

#[tokio::test]
async fn a_status_is_watched_until_its_subscription_is_deleted() {
    let mut world = in_memory(few_slots());
    world.start();
    let users = world.users().await;
    let one = world.subscribe(&users, "one").await;
    let mut watch = world.calm.watch_status(one.id).await.unwrap();
    let first = world.in_time(watch.next()).await.unwrap().unwrap();
    assert_eq!((first.delivered, first.status), (0, SubscriptionStatus::Active));
    for id in 0..200 {
        world.put(id, 1).await;
    }
    counted(&world).await;
    // Whatever happened meanwhile is few changes, the last of which is how it is now.
    let mut changes = 0;
    loop {
        let status = world.in_time(watch.next()).await.unwrap().unwrap();
        changes += 1;
        if status.delivered == 200 {
            assert_eq!(status.lag, 0);
            break;
        }
    }
    assert!(changes < 20, "{changes}");
    world.flare.pause(one.id).await.unwrap();
    while world.in_time(watch.next()).await.unwrap().unwrap().status != SubscriptionStatus::Paused {
    }
    world.flare.delete_subscription(one.id).await.unwrap();
    while let Some(status) = world.in_time(watch.next()).await {
        status.unwrap();
    }
    assert!(world.in_time(watch.next()).await.is_none(), "it has ended");
    let gone = world.calm.watch_status(one.id).await.unwrap_err();
    assert_eq!(gone.kind(), flare_core::ErrorKind::NotFound);
}
