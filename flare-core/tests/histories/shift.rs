//! Takes a history whose documents two resources may match; lets the more specific one come and go,
//! and checks after every put and delete that the document is live in one place at most.

use std::collections::BTreeMap;
use std::time::Duration;

use flare_core::model::{
    DocumentChange, DocumentKey, DocumentUrl, NewResource, Resource, ResourceId, SubscriptionId,
    Version,
};
use flare_core::port::{Clock, DocumentStore, ResourceStore};
use flare_core::{ErrorKind, Flare};

use crate::client::Versions;
use crate::history::{History, Known};
use crate::plan::TASK_LIFETIME;
use crate::runs::build;

/// Matches every document; the other one takes them over.
pub(crate) const WIDE: &str = "http://api.example/{kind}/{id}";
pub(crate) const NARROW: &str = "http://api.example/docs/{id}";

/// The more specific resource of a history, and what became of those before it.
pub(crate) struct Shifts {
    /// Of its own, so that the other histories stay what they are.
    random: fastrand::Rng,
    narrow: Option<(Resource, SubscriptionId)>,
    dropped: Vec<ResourceId>,
    /// A handle whose stores do not fail, for what a history has to be sure of.
    calm: Flare,
}

impl Shifts {
    pub(crate) fn of(history: &History) -> Self {
        let random = fastrand::Rng::with_seed(history.seed ^ 3);
        let backend = history.memory.clone().into();
        let seed = history.seed ^ 4;
        let (calm, _) = build(&history.plan, &backend, &history.clients, &history.clock, seed);
        Self { random, narrow: None, dropped: Vec::new(), calm }
    }
}

impl History {
    /// Now and then the more specific resource comes or goes, or a put is given up on its way.
    pub(crate) async fn shift(&mut self) {
        let Some(shifts) = &mut self.shifts else { return };
        match shifts.random.u8(..12) {
            0 | 1 => match shifts.narrow.take() {
                None => self.create_narrow().await,
                Some(narrow) => self.drop_narrow(narrow).await,
            },
            2 | 3 => self.abandon().await,
            _ => {}
        }
    }

    async fn create_narrow(&mut self) {
        let Some(shifts) = &self.shifts else { return };
        let calm = shifts.calm.clone();
        let new = NewResource::new(NARROW).change_field("rev");
        let created = self.in_time(calm.create_resource(new)).await;
        self.note(format_args!("create narrow: {:?}", created.as_ref().map(|it| it.id)));
        // The former one may still be on its way out.
        let Ok(resource) = created else { return };
        let number = self.random.clone().u32(..);
        let spec = self.plan.subscription(number, 0, self.plan.lanes);
        let subscription = self.in_time(calm.create_subscription(resource.id, spec)).await;
        let id = subscription.unwrap().id;
        let known =
            Known { before: Versions::new(), number, replacements: 0, resource: resource.id };
        self.subscriptions.insert(id, known);
        if let Some(shifts) = &mut self.shifts {
            shifts.narrow = Some((resource, id));
        }
    }

    async fn drop_narrow(&mut self, (resource, subscription): (Resource, SubscriptionId)) {
        let Some(shifts) = &mut self.shifts else { return };
        shifts.dropped.push(resource.id);
        let calm = shifts.calm.clone();
        self.clients.may_be_deleted(subscription);
        match self.in_time(calm.delete_subscription(subscription)).await {
            Ok(()) => {}
            // Somebody meddled with it.
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
        }
        self.subscriptions.remove(&subscription);
        self.deleted.insert(subscription);
        self.clients.hold(subscription, self.documents_of(resource.id).await);
        let flare = self.flare.clone();
        let dropped = self.in_time(flare.delete_resource(resource.id)).await;
        self.note(format_args!("drop narrow: {dropped:?}"));
    }

    /// Whoever wanted resources deleted finishes what failed.
    pub(crate) async fn finish_drops(&self) {
        let Some(shifts) = &self.shifts else { return };
        for resource in &shifts.dropped {
            match self.in_time(shifts.calm.delete_resource(*resource)).await {
                Ok(()) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
            }
        }
    }

    /// A put whose caller dies somewhere on its way.
    async fn abandon(&mut self) {
        let (url, revision) = (self.url(), self.next_revision());
        let turns = self.random.u32(..20);
        self.note(format_args!("abandon a put of {url} {revision} after {turns} turns"));
        let flare = self.flare.clone();
        let put = flare.put_json(&url, format!("{{\"rev\":{revision}}}"));
        tokio::pin!(put);
        for _ in 0..turns {
            let ended = futures::poll!(&mut put).is_ready();
            if ended {
                return;
            }
            self.turns(1).await;
            if let Some(next) = self.clock.next_deadline() {
                self.clock.advance_to(next);
            }
        }
    }

    /// The resources that match a document, the most specific one first.
    pub(crate) async fn matching(&self, url: &str) -> Vec<ResourceId> {
        let url = DocumentUrl::parse(url).unwrap();
        let found = self.memory.repository().match_resources(vec![url]).await.unwrap();
        found.into_iter().flatten().map(|resource| resource.id).collect()
    }

    /// What a resource stores.
    pub(crate) async fn documents_of(&self, resource: ResourceId) -> Versions {
        let urls = (0..self.plan.documents).map(|n| format!("http://api.example/docs/{n}"));
        let keys = urls.map(|url| DocumentKey::new(resource, DocumentUrl::parse(&url).unwrap()));
        let found = self.memory.repository().documents(keys.collect()).await.unwrap();
        let found = found.into_iter().flatten();
        found.map(|document| (document.key.url.to_string(), document.version)).collect()
    }

    /// Where a document is live, of the resources that match it.
    pub(crate) async fn live_in(&self, url: &str) -> BTreeMap<ResourceId, Version> {
        let mut live = BTreeMap::new();
        for resource in self.matching(url).await {
            let version = self.documents_of(resource).await.get(url).copied();
            if let Some(version) = version.filter(|version| !version.is_gone()) {
                live.insert(resource, version);
            }
        }
        live
    }

    /// A put that was answered has left the document in the most specific resource alone; a delete
    /// that was not stale has left it nowhere.
    pub(crate) async fn check_place(
        &self,
        url: &str,
        before: &[ResourceId],
        answer: &flare_core::Result<DocumentChange>,
        is_delete: bool,
    ) {
        let Ok(change) = answer else { return };
        // A deletion of a resource that was left half-way may have been concluded meanwhile.
        if self.shifts.is_none() || self.matching(url).await != before {
            return;
        }
        let live = self.live_in(url).await;
        let seed = self.seed;
        match is_delete {
            true if *change != DocumentChange::Stale => {
                assert!(live.is_empty(), "history {seed}: {url} is deleted, and live in {live:?}");
            }
            _ => {
                let elsewhere = live.keys().any(|resource| Some(resource) != before.first());
                let fits = live.len() <= 1 && (is_delete || !elsewhere);
                assert!(fits, "history {seed}: {url} was put, and is live in {live:?}");
            }
        }
    }

    /// At rest a document is live in one place at most, readers find it there, and what was
    /// deleted with its resource is gone.
    pub(crate) async fn check_shifts(&self) {
        let Some(shifts) = &self.shifts else { return };
        let seed = self.seed;
        for n in 0..self.plan.documents {
            let url = format!("http://api.example/docs/{n}");
            let live = self.live_in(&url).await;
            assert!(live.len() <= 1, "history {seed}: {url} is live in {live:?}");
            let read = self.in_time(shifts.calm.document(&url)).await;
            let read = read.ok().map(|document| (document.key.resource, document.version));
            assert_eq!(read, live.into_iter().next(), "history {seed}: {url}");
        }
        for resource in &shifts.dropped {
            let end = self.clock.now() + 2 * TASK_LIFETIME + Duration::from_secs(60);
            while self.memory.repository().resource(*resource).await.unwrap().is_some() {
                assert!(self.clock.now() < end, "history {seed}: {resource} is not removed");
                self.pass(Duration::from_secs(5)).await;
            }
            let left = self.documents_of(*resource).await;
            assert!(left.is_empty(), "history {seed}: {resource} was deleted, and has {left:?}");
        }
    }
}
