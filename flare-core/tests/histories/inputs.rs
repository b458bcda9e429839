//! Takes a history; gives it documents that come from a broker as well: by a consumer of a queue or a stream that
//! redelivers, mixes up, loses its connection, and whose owner dies between storing and settling. Whatever happens,
//! each message is stored or kept as a reject in the end, no document goes back, and no checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flare_backend_memory::MemoryBroker;
use flare_core::ErrorKind;
use flare_core::model::consumer::{DeleteInput, MappingInput};
use flare_core::model::{Checkpoint, ConsumerId, Epoch, NewConsumer, SourceSettings, Version};
use flare_core::port::{ConsumerStore, Outgoing, Page, SourceConnector, SourceLag, SourceOpening};
use flare_testkit::{FaultPlan, FaultySources};
use serde_json::json;

use crate::history::History;

const TOPIC: &str = "docs";
/// Tries to create the consumer, or to have it go on.
const TRIES: u32 = 100;

/// What is pulled in a history.
pub(crate) struct Inputs {
    /// Of its own, so that the other histories stay what they are.
    random: fastrand::Rng,
    broker: MemoryBroker,
    pub(crate) sources: FaultySources,
    is_stream: bool,
    /// Whether messages of a document come in their order, unless they come again.
    grouped: bool,
    consumer: Option<ConsumerId>,
    /// What the messages say of each document, by its URL.
    published: BTreeMap<String, BTreeSet<Version>>,
    /// Messages that say nothing of any document.
    poison: u64,
    /// What its owners stored last.
    seen: Option<(Epoch, u64, BTreeMap<String, u64>)>,
}

impl Inputs {
    /// Those of a history.
    pub(crate) fn of(history: &History) -> Self {
        let mut random = fastrand::Rng::with_seed(history.seed ^ 6);
        let broker = MemoryBroker::with_clock(Arc::new(history.clock.clone()));
        let (is_stream, grouped) = (random.bool(), random.bool());
        match is_stream {
            true => broker.create_stream(TOPIC),
            false => broker.create_queue(TOPIC),
        }
        let mut some = |most: f64| if random.bool() { random.f64() * most } else { 0.0 };
        let (errors, cut, reorder) = (some(0.3), some(0.2), some(1.0));
        let plan = FaultPlan::seeded(history.seed ^ 7).with_before(errors).with_after(errors);
        let reorder = if grouped { 0.0 } else { reorder };
        let sources = FaultySources::new(Arc::new(broker.clone()), plan);
        let sources = sources.cutting(cut).reordering(reorder);
        Self {
            random,
            broker,
            sources,
            is_stream,
            grouped,
            consumer: None,
            published: BTreeMap::new(),
            poison: 0,
            seen: None,
        }
    }

    fn settings(&self) -> SourceSettings {
        let settings = match self.is_stream {
            true => json!({"stream": TOPIC, "from": "oldest"}),
            false => json!({"queue": TOPIC}),
        };
        SourceSettings::new(self.broker.kind(), settings).unwrap()
    }

    fn wish(&self) -> NewConsumer {
        let mut mapping = MappingInput::default();
        mapping.url = "http://api.example/docs/{/id}".to_owned();
        let (pointer, equals) = ("/op".to_owned(), "d".into());
        mapping.delete = Some(DeleteInput::Equals { pointer, equals });
        mapping.revision = Some("/rev".to_owned());
        NewConsumer::new(self.settings(), mapping)
    }

    fn publish(&mut self, group: &str, message: &str) {
        // Some publishers say it twice.
        for _ in 0..=usize::from(self.random.u8(..8) == 0) {
            let message = Outgoing::new(message.to_owned());
            let message = if self.grouped { message.group(group) } else { message };
            self.broker.publish(TOPIC, message).unwrap();
        }
    }
}

impl History {
    /// Has documents pulled, too.
    pub(crate) fn pulled_in(mut self) -> Self {
        let inputs = Inputs::of(&self);
        self.plan.sources = Some(inputs.sources.clone());
        self.inputs = Some(inputs);
        self
    }

    /// Creates the consumer, if documents are pulled.
    pub(crate) async fn begin_to_pull(&mut self) {
        let (Some(inputs), Some(resource)) = (&self.inputs, &self.resource) else { return };
        let (wish, resource) = (inputs.wish(), resource.id);
        for _ in 0..TRIES {
            let flare = self.flare.clone();
            let created = self.in_time(flare.create_consumer(resource, wish.clone())).await;
            let created = match created {
                Ok(consumer) => Some(consumer.id),
                // An error may come after the effect.
                Err(_) => {
                    let page = Page::new(1, 0);
                    let listed = self.memory.repository().list_consumers(page).await.unwrap();
                    listed.items.first().map(|consumer| consumer.id)
                }
            };
            if let (Some(_), Some(inputs)) = (created, &mut self.inputs) {
                inputs.consumer = created;
                return;
            }
        }
        panic!("history {}: no consumer could be created", self.seed);
    }

    /// Somebody publishes, or pauses and resumes the consumer.
    pub(crate) async fn feed(&mut self) {
        let Some(inputs) = &mut self.inputs else { return };
        let Some(consumer) = inputs.consumer else { return };
        match inputs.random.u8(..12) {
            0 => {
                let flare = self.flare.clone();
                let paused = self.in_time(flare.pause_consumer(consumer)).await;
                self.note(format_args!("pause consumer: {:?}", paused.err()));
            }
            1 | 2 => {
                let flare = self.flare.clone();
                let resumed = self.in_time(flare.resume_consumer(consumer)).await;
                self.note(format_args!("resume consumer: {:?}", resumed.err()));
            }
            3..=8 => {
                for _ in 0..inputs.random.u8(1..6) {
                    self.publish();
                }
            }
            _ => {}
        }
    }

    fn publish(&mut self) {
        let (revision, url) = (self.next_revision(), self.url());
        let id = url.rsplit('/').next().unwrap().to_owned();
        let Some(inputs) = &mut self.inputs else { return };
        let (message, version) = match inputs.random.u8(..12) {
            0 => {
                // Said once, so that they can be counted.
                let message = Outgoing::new("no json");
                inputs.broker.publish(TOPIC, message).unwrap();
                inputs.poison += 1;
                return;
            }
            1 | 2 => {
                self.forgettable.insert(url.clone());
                let message = format!(r#"{{"id":"{id}","rev":{revision},"op":"d"}}"#);
                (message, Version::gone(revision.into()))
            }
            _ => {
                let message = format!(r#"{{"id":"{id}","rev":{revision}}}"#);
                (message, Version::live(revision.into()))
            }
        };
        inputs.publish(&id, &message);
        inputs.published.entry(url).or_default().insert(version);
        self.note(format_args!("publish {message}"));
    }

    /// No owner goes back behind what one before it stored, nor does one that was replaced write any more.
    pub(crate) async fn look_at_inputs(&mut self) {
        let Some(inputs) = &mut self.inputs else { return };
        let Some(consumer) = inputs.consumer else { return };
        let states = self.memory.repository().consumer_states(vec![consumer]).await.unwrap();
        let Some((_, epoch, state)) = states.into_iter().next() else { return };
        let place = |it: &Checkpoint| (it.shard().to_owned(), it.position().parse().unwrap());
        let places: BTreeMap<String, u64> = state.checkpoints.iter().map(place).collect();
        if let Some((before, received, reached)) = &inputs.seen {
            let forward = *before <= epoch && *received <= state.received;
            let onward = reached.iter().all(|(shard, at)| places.get(shard) >= Some(at));
            assert!(
                forward && onward,
                "history {}: the consumer stood at {:?}, then at {epoch} {state:?}",
                self.seed,
                inputs.seen
            );
        }
        inputs.seen = Some((epoch, state.received, places));
    }

    /// The broker is well again, and the consumer is to pull.
    pub(crate) async fn heal_inputs(&mut self) {
        let Some(inputs) = &self.inputs else { return };
        inputs.sources.plan().heal();
        let Some(consumer) = inputs.consumer else { return };
        for _ in 0..TRIES {
            match self.in_time(self.flare.resume_consumer(consumer)).await {
                Ok(_) => return,
                Err(error) => assert_ne!(error.kind(), ErrorKind::NotFound, "{error}"),
            }
        }
        panic!("history {}: the consumer could not be resumed", self.seed);
    }

    /// Whether all that was published is settled.
    pub(crate) async fn has_pulled(&self) -> bool {
        let Some(inputs) = &self.inputs else { return true };
        let Some(consumer) = inputs.consumer else { return true };
        let states = self.memory.repository().consumer_states(vec![consumer]).await.unwrap();
        let checkpoints = states.into_iter().next().map(|(_, _, state)| state.checkpoints);
        let opening = SourceOpening::new(consumer, inputs.settings());
        let opening = opening.checkpoints(checkpoints.unwrap_or_default());
        let source = inputs.broker.open(opening).await.unwrap();
        let lag = source.lag().await.unwrap();
        source.close().await;
        lag == Some(SourceLag::Messages(0))
    }

    /// Whether what is stored may be what an old message said: one that its consumer, paused or down, stored only once
    /// the tombstone was forgotten that would have refused it.
    pub(crate) fn was_said_again(&self, url: &str, stored: Option<Version>) -> bool {
        let Some(inputs) = &self.inputs else { return false };
        let is_said = |stored| inputs.published.get(url).is_some_and(|said| said.contains(&stored));
        self.plan.retention && self.forgettable.contains(url) && stored.is_some_and(is_said)
    }

    /// What messages said is stored, unless something newer is, and what said nothing is kept.
    pub(crate) async fn check_inputs(&self) {
        let Some(inputs) = &self.inputs else { return };
        let seed = self.seed;
        let documents = self.documents().await;
        for (url, versions) in &inputs.published {
            let stored = documents.get(url).copied();
            let forgotten = self.plan.retention && self.forgettable.contains(url);
            for version in versions {
                let reached = stored >= Some(*version)
                    || stored.is_none() && forgotten
                    || self.was_said_again(url, stored);
                // What is deleted may never have been seen, or be deleted already.
                let silent = version.is_gone() && stored.is_none_or(Version::is_gone);
                assert!(reached || silent, "history {seed}: {url} {version} is lost: {stored:?}");
            }
        }
        let Some(consumer) = inputs.consumer.filter(|_| !self.plan.retention) else { return };
        let page = Page::new(1, 0);
        let kept = self.memory.repository().list_rejects(consumer, page).await.unwrap().total;
        assert_eq!(kept, inputs.poison, "history {seed}: rejects");
    }
}
