//! A record that cannot be read stops nothing but itself: one of each kind, spoilt in three ways, and
//! everything else is delivered. It is named in the status, and can be deleted.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{Stored as _, World, few_slots, in_memory, url};
use bytes::Bytes;
use flare_core::model::{
    DocumentKey, DocumentUrl, LaneId, NewResource, RECORD_FORMAT, RecordKind, RecordName, Resource,
    RowKey, Subscription, SubscriptionStatus, Timestamp, WhyUnreadable,
};
use flare_core::port::{
    JobStore, Outgoing, Page, QueueExt, QueueName, RowStore, SubscriptionStore,
};
use flare_core::{ErrorKind, Result};
use futures::StreamExt;

/// A field nobody knows, a newer format, damage.
fn ways() -> [Option<WhyUnreadable>; 3] {
    let detail = "spec is not understood".to_owned();
    [
        None,
        Some(WhyUnreadable::Newer { needs: RECORD_FORMAT + 1 }),
        Some(WhyUnreadable::Damaged { detail }),
    ]
}

struct Scene {
    world: World,
    users: Resource,
    other: Resource,
    subscriptions: Vec<Subscription>,
}

/// Three clients of users and one of notes, all of whom have document 0; nobody runs.
async fn scene() -> Scene {
    let mut world = in_memory(few_slots());
    let users = world.users().await;
    let notes = NewResource::new("http://api.example/notes/{id}").change_field("rev");
    let other = world.calm.create_resource(notes).await.unwrap();
    let mut subscriptions = Vec::new();
    for name in ["a", "b", "c"] {
        subscriptions.push(world.subscribe(&users, name).await);
    }
    subscriptions.push(world.subscribe(&other, "n").await);
    world.start();
    world.put(0, 1).await;
    world.settled().await;
    world.crash().await;
    Scene { world, users, other, subscriptions }
}

impl Scene {
    fn spoil(&self, record: RecordName, why: &Option<WhyUnreadable>) {
        self.world.stores.repository().spoil(record, why.clone());
    }

    /// Whoever was told of a document, by the names of the clients.
    fn told(&self, document: &str) -> BTreeSet<String> {
        let requests = self.world.delivery.requests();
        let of = format!(r#""id":"{document}""#);
        let about = requests
            .iter()
            .filter(|it| it.request.body.windows(of.len()).any(|part| part == of.as_bytes()));
        let name = |url: &str| url["http://".len()..].split('.').next().unwrap().to_owned();
        about.map(|it| name(it.request.url.as_str())).collect()
    }

    /// Lets a while pass, insists that the node stays well, and tells what it cannot read.
    async fn goes_on(&self) -> Vec<RecordKind> {
        for _ in 0..12 {
            self.world.pass(Duration::from_secs(30)).await;
            let node = self.world.flare.node();
            assert_eq!(node.stuck(Duration::from_secs(30)).count(), 0, "{node:?}");
        }
        self.world.flare.node().unreadable.iter().map(|it| it.record.kind()).collect()
    }
}

fn clients(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn document(number: u32) -> DocumentUrl {
    DocumentUrl::parse(&url(number)).unwrap()
}

fn kinds(why: &Option<WhyUnreadable>, kind: RecordKind) -> Vec<RecordKind> {
    why.iter().map(|_| kind).collect()
}

#[tokio::test]
async fn a_subscription() {
    for why in ways() {
        let mut scene = scene().await;
        let id = scene.subscriptions[0].id;
        scene.spoil(RecordName::Subscription(id), &why);
        scene.world.start();
        scene.world.put(1, 1).await;
        assert_eq!(scene.goes_on().await, kinds(&why, RecordKind::Subscription));
        let readable = why.is_none();
        let expected = clients(&["a", "b", "c"][usize::from(!readable)..]);
        assert_eq!(scene.told(&url(1)), expected, "{why:?}");

        // Its rows are there, for whoever can read it.
        let flare = &scene.world.flare;
        let status = flare.subscription_status(id).await.unwrap();
        assert_eq!(status.lag, u64::from(!readable), "{why:?}");
        let expected =
            if readable { SubscriptionStatus::Active } else { SubscriptionStatus::Unreadable };
        assert_eq!((status.status, status.reason.is_some()), (expected, !readable));
        let listed = flare.subscriptions(scene.users.id, Page::new(10, 0)).await.unwrap();
        assert_eq!(listed.items.len() + listed.unreadable.len(), 3);
        assert_eq!((listed.unreadable.len(), listed.total), (usize::from(!readable), 3));
        if !readable {
            for refused in [flare.subscription(id).await, flare.pause(id).await] {
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(error.unreadable().is_some(), "{error}");
            }
        }
        flare.delete_subscription(id).await.unwrap();
        let again = flare.delete_subscription(id).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::NotFound);
        let listed = flare.subscriptions(scene.users.id, Page::new(10, 0)).await.unwrap();
        assert_eq!((listed.items.len(), listed.total), (2, 2));
        let store = scene.world.stores.repository();
        let removed = async || store.subscription(id).await.is_ok_and(|it| it.is_none());
        scene.world.until("it is removed", removed).await;
        assert_eq!(store.count_pending(None).await.unwrap().count, 0, "with its rows");
    }
}

/// A node that worked a subscription until a newer one changed it sends nothing more for it.
#[tokio::test]
async fn a_subscription_that_becomes_unreadable() {
    let mut scene = scene().await;
    scene.world.start();
    scene.world.put(1, 1).await;
    scene.world.settled().await;
    assert_eq!(scene.told(&url(1)).len(), 3);
    let id = scene.subscriptions[1].id;
    scene.spoil(RecordName::Subscription(id), &ways()[1]);
    // As whoever changed it would say.
    scene.world.pass(Duration::from_secs(600)).await;
    scene.world.put(2, 1).await;
    scene.goes_on().await;
    assert_eq!(scene.told(&url(2)), clients(&["a", "c"]));
}

#[tokio::test]
async fn a_resource() {
    for why in ways() {
        let mut scene = scene().await;
        scene.spoil(RecordName::Resource(scene.users.id), &why);
        scene.world.start();
        let flare = scene.world.flare.clone();
        let note = "http://api.example/notes/1";
        let mine = url(1);
        let changes = [(mine.as_str(), r#"{"rev":1}"#), (note, r#"{"rev":1}"#)];
        let put: Vec<Result<_>> = flare.put_documents(changes).await;
        assert!(put[1].is_ok(), "{put:?}");
        assert_eq!(put[0].is_ok(), why.is_none(), "{put:?}");
        scene.goes_on().await;
        assert_eq!(scene.told(note), clients(&["n"]));
        assert_eq!(scene.told(&url(1)).len(), if why.is_none() { 3 } else { 0 });
        let listed = flare.resources(Page::new(10, 0)).await.unwrap();
        assert_eq!((listed.items.len() + listed.unreadable.len(), listed.total), (2, 2));
        let listed = flare.subscriptions(scene.users.id, Page::new(10, 0)).await.unwrap();
        assert_eq!(listed.total, 3, "its subscriptions can be looked at, and deleted");
        let refused = flare.delete_resource(scene.users.id).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        for subscription in &scene.subscriptions[..3] {
            flare.delete_subscription(subscription.id).await.unwrap();
        }
        flare.delete_resource(scene.users.id).await.unwrap();
        let again = flare.delete_resource(scene.users.id).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::NotFound, "{again}");
        assert_eq!(flare.resources(Page::new(10, 0)).await.unwrap().total, 1);
        let new = NewResource::new("http://api.example/users/{id}").change_field("rev");
        flare.create_resource(new).await.unwrap();
        assert_eq!(flare.resource(scene.other.id).await.unwrap().id, scene.other.id);
    }
}

#[tokio::test]
async fn a_document() {
    for why in ways() {
        let mut scene = scene().await;
        // Stored, and not spread to anybody yet.
        for number in 1..=3 {
            scene.world.put(number, 1).await;
        }
        let key = DocumentKey::new(scene.users.id, document(2));
        scene.spoil(RecordName::Document(key.clone()), &why);
        scene.world.start();
        assert_eq!(scene.goes_on().await, kinds(&why, RecordKind::Document));
        for number in [1, 3] {
            assert_eq!(scene.told(&url(number)).len(), 3, "{why:?}");
        }
        assert_eq!(scene.told(&url(2)).len(), if why.is_none() { 3 } else { 0 }, "{why:?}");
        // Rows that want it are there already, as after a spread: nothing else waits for them.
        scene.world.put(4, 1).await;
        scene.goes_on().await;
        assert_eq!(scene.told(&url(4)).len(), 3, "{why:?}");
    }
}

/// Rows whose documents cannot be read let others pass, however many there are.
#[tokio::test]
async fn documents_that_are_due() {
    for why in ways().into_iter().flatten().map(Some) {
        let mut scene = scene().await;
        for subscription in &scene.subscriptions[..3] {
            scene.world.calm.pause(subscription.id).await.unwrap();
        }
        scene.world.start();
        for number in 1..=60 {
            scene.world.put(number, 1).await;
        }
        scene.world.pass(Duration::from_secs(10)).await;
        scene.world.crash().await;
        for number in 1..=50 {
            let key = DocumentKey::new(scene.users.id, document(number));
            scene.spoil(RecordName::Document(key), &why);
        }
        for subscription in &scene.subscriptions[..3] {
            scene.world.calm.resume(subscription.id).await.unwrap();
        }
        scene.world.start();
        scene.goes_on().await;
        for number in 51..=60 {
            assert_eq!(scene.told(&url(number)).len(), 3, "{number}: {why:?}");
        }
        for number in 1..=50 {
            assert_eq!(scene.told(&url(number)).len(), 0, "{number}: {why:?}");
        }
    }
}

#[tokio::test]
async fn a_row() {
    for why in ways() {
        let mut scene = scene().await;
        for subscription in &scene.subscriptions[..3] {
            scene.world.calm.pause(subscription.id).await.unwrap();
        }
        scene.world.start();
        for number in 1..=3 {
            scene.world.put(number, 1).await;
        }
        scene.world.pass(Duration::from_secs(10)).await;
        let row = RowKey::new(scene.subscriptions[0].id, document(1));
        scene.spoil(RecordName::Row(row), &why);
        for subscription in &scene.subscriptions[..3] {
            scene.world.calm.resume(subscription.id).await.unwrap();
        }
        assert_eq!(scene.goes_on().await, kinds(&why, RecordKind::Row));
        let expected = clients(&["a", "b", "c"][usize::from(why.is_some())..]);
        assert_eq!(scene.told(&url(1)), expected, "{why:?}");
        for number in [2, 3] {
            assert_eq!(scene.told(&url(number)).len(), 3, "{why:?}");
        }
    }
}

#[tokio::test]
async fn a_lane() {
    for why in ways() {
        let mut scene = scene().await;
        let lane = LaneId::new(scene.subscriptions[0].id, 0);
        let store = scene.world.stores.repository();
        assert_eq!(store.lanes(lane.subscription).await.unwrap().items.len(), 1);
        scene.spoil(RecordName::Lane(lane), &why);
        scene.world.start();
        scene.world.put(1, 1).await;
        scene.goes_on().await;
        // A newer version keeps there what whoever sends must know; what is damaged is begun anew.
        let newer = matches!(why, Some(WhyUnreadable::Newer { .. }));
        let expected = clients(&["a", "b", "c"][usize::from(newer)..]);
        assert_eq!(scene.told(&url(1)), expected, "{why:?}");
    }
}

#[tokio::test]
async fn a_job() {
    for why in ways() {
        let mut scene = scene().await;
        let [first, second] = [scene.subscriptions[0].id, scene.subscriptions[1].id];
        scene.world.calm.delete_subscription(first).await.unwrap();
        scene.world.calm.delete_subscription(second).await.unwrap();
        let jobs = scene.world.removals().await;
        let job = jobs.iter().find(|it| it.subject == first.to_string()).unwrap();
        scene.spoil(RecordName::Job(job.id), &why);
        scene.world.start();
        scene.world.put(1, 1).await;
        scene.goes_on().await;
        let store = scene.world.stores.repository();
        let removed = async |id| store.subscription(id).await.unwrap().is_none();
        scene.world.until("it is removed", async || removed(second).await).await;
        // A sweep asks for it again, and a damaged one is in nobody's way.
        let newer = matches!(why, Some(WhyUnreadable::Newer { .. }));
        match newer {
            true => scene.world.pass(Duration::from_secs(3_600)).await,
            false => scene.world.until("it is removed", async || removed(first).await).await,
        }
        assert_eq!(removed(first).await, !newer, "{why:?}");
        let due: Vec<_> = store.due_jobs(Timestamp::MAX, 10).collect().await;
        assert_eq!(due.iter().filter(|it| it.is_err()).count(), usize::from(newer));
    }
}

#[tokio::test]
async fn a_task() {
    let mut scene = scene().await;
    let queue = scene.world.queue();
    let names = [QueueName::Partition, QueueName::Spread, QueueName::Slot(0), QueueName::Slot(1)];
    let odd = [
        r#"{"v":1,"task":"restored","colour":"red"}"#,
        r#"{"v":2,"task":"partition","colour":"red"}"#,
        "{",
    ];
    for name in &names {
        for odd in odd {
            let message = Outgoing::new(Bytes::copy_from_slice(odd.as_bytes()));
            queue.create(name).await.unwrap();
            assert!(queue.send_all(name, vec![message]).await.iter().all(|it| it.is_ok()));
        }
    }
    scene.world.start();
    for number in 1..=20 {
        scene.world.put(number, 1).await;
    }
    assert_eq!(scene.goes_on().await, [RecordKind::Task]);
    for number in 1..=20 {
        assert_eq!(scene.told(&url(number)).len(), 3);
    }
    for name in &names {
        assert_eq!(queue.depth(name).await.unwrap().ready, 0, "none is left: {name}");
    }
}
