//! Takes acts; does them to a whole Flare on memory and simulated time, and reads off what came of
//! them in the words of the model.

use std::sync::Arc;
use std::time::Duration;

use flare_core::model::{
    Action, DocumentChange, DocumentKey, DocumentUrl, NewResource, Resource, SubscriptionId,
    SubscriptionSpec,
};
use flare_core::port::DocumentStore;
use flare_core::{ErrorKind, Flare};
use flare_testkit::CountingRepository;

use super::model::{Act, KINDS, Model, RULES, Told, content, plain, revision};
use crate::support::{World, few_slots, in_memory};

pub(crate) const URL: &str = "http://api.example/users/1";

/// How long a call of the store takes where that matters.
pub(crate) const CALL: Duration = Duration::from_millis(100);

/// A Flare, and the resources that are there.
pub(crate) struct Overlapping {
    pub(crate) world: World,
    kinds: [Option<(Resource, SubscriptionId)>; KINDS],
    clients: u32,
}

impl Overlapping {
    pub(crate) fn new() -> Self {
        let mut settings = few_slots();
        settings.task_lifetime = Duration::from_secs(30);
        Self { world: in_memory(settings), kinds: [const { None }; KINDS], clients: 0 }
    }

    /// Does these acts one after the other.
    pub(crate) async fn after(acts: &[Act]) -> Self {
        let mut overlapping = Self::new();
        overlapping.world.start();
        for act in acts {
            overlapping.act(*act).await;
            overlapping.world.settled().await;
        }
        overlapping
    }

    pub(crate) async fn act(&mut self, act: Act) -> Option<DocumentChange> {
        match act {
            Act::Create(kind) => {
                self.create(kind).await;
                None
            }
            Act::Drop(kind) => {
                let (resource, subscription) = self.kinds[kind].take().unwrap();
                self.world.calm.delete_subscription(subscription).await.unwrap();
                self.world.calm.delete_resource(resource.id).await.unwrap();
                None
            }
            _ => change(&self.world.calm, self.model().await, act).await,
        }
    }

    async fn create(&mut self, kind: usize) {
        let (endpoint, field) = RULES[kind];
        let new = NewResource::new(endpoint).change_field(field);
        let resource = self.world.calm.create_resource(new).await.unwrap();
        self.clients += 1;
        let spec = SubscriptionSpec::post(format!("http://client-{}.example", self.clients));
        let subscription = self.world.calm.create_subscription(resource.id, spec).await.unwrap();
        self.kinds[kind] = Some((resource, subscription.id));
    }

    /// What is there, and what the clients of it were told.
    pub(crate) async fn model(&self) -> Model {
        let mut model = Model::default();
        let url = DocumentUrl::parse(URL).unwrap();
        for (kind, there) in self.kinds.iter().enumerate() {
            let Some((resource, _)) = there else { continue };
            let key = DocumentKey::new(resource.id, url.clone());
            let stored = self.world.stores.repository().documents(vec![key]).await.unwrap();
            let stored = stored.into_iter().flatten().next();
            model.kinds[kind] = Some(stored.map(|stored| plain(stored.version)));
        }
        model.told = self.told();
        model
    }

    fn told(&self) -> Told {
        let mut told = Told::default();
        for recorded in self.world.delivery.requests() {
            let request = recorded.request;
            let of = |it: &Option<(Resource, SubscriptionId)>| {
                it.as_ref().is_some_and(|(_, id)| *id == request.subscription)
            };
            if let Some(kind) = self.kinds.iter().position(of) {
                told[kind].push((request.action, request.version.revision().get()));
            }
        }
        told
    }

    /// What a reader sees: which kind, and which revision.
    pub(crate) async fn read(&self) -> Option<(usize, i64)> {
        match self.world.calm.document(URL).await {
            Ok(document) => {
                let of = |it: &Option<(Resource, _)>| {
                    it.as_ref().is_some_and(|(it, _)| it.id == document.key.resource)
                };
                let kind = self.kinds.iter().position(of).unwrap();
                Some((kind, document.version.revision().get()))
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                None
            }
        }
    }

    /// A handle whose calls of the store take their time.
    pub(crate) fn slow(&self) -> Flare {
        let repository = CountingRepository::new(self.world.repository());
        let repository = repository.slowed(CALL, Arc::new(self.world.clock.clone()));
        self.world.builder().repository(Arc::new(repository)).seed(9).build().unwrap().0
    }
}

/// Puts or deletes the document; a delete names revisions as those do where the document is.
pub(crate) async fn change(flare: &Flare, seen: Model, act: Act) -> Option<DocumentChange> {
    let answer = match act {
        Act::Put(number) => flare.put_json(URL, content(number)).await,
        Act::Delete => flare.delete_document(URL).await,
        Act::DeleteAsOf(number) => {
            let stored = |kind: &usize| seen.kinds[*kind].flatten().is_some();
            let there = |kind: &usize| seen.kinds[*kind].is_some();
            let live = seen.live().map(|(kind, _)| kind);
            let kind = live.or_else(|| (0..KINDS).find(stored));
            let kind = kind.or_else(|| (0..KINDS).find(there)).unwrap_or(0);
            let named = revision(kind, number).to_string();
            flare.delete_document_at(URL, &named).await
        }
        Act::Create(_) | Act::Drop(_) => panic!("{act:?} is not about the document"),
    };
    match answer {
        Ok(change) => Some(change),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{act:?}: {error}");
            None
        }
    }
}

/// Whether a client that was told this was told the truth: no create of what it holds, no update
/// or delete of what it does not.
pub(crate) fn truthful(told: &[(Action, i64)]) -> bool {
    let mut holds = false;
    told.iter().all(|(action, _)| {
        let fits = holds != (*action == Action::Create);
        holds = *action != Action::Delete;
        fits
    })
}
