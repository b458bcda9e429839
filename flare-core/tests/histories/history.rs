//! Takes a seed; lives one history from the first put to the last acknowledgement, and checks what
//! is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::model::{
    DocumentChange, DocumentUrl, Epoch, NewResource, Resource, ResourceId, Round, Row, RowKey,
    SubscriptionId, Timestamp, Version,
};
use flare_core::port::{Clock, DocumentStore, Queue, QueueName, ResourceStore, RowStore};
use flare_testkit::{FaultPlan, ManualClock};
use futures::StreamExt;

use crate::client::{Clients, Versions};
use crate::inputs::Inputs;
use crate::plan::Plan;
use crate::runs::{Runs, block_on, build};
use crate::shift::{NARROW, Shifts, WIDE};
use crate::wishes::Wishes;

/// Turns that everything gets before time moves: more than the longest chain of wake-ups.
pub(crate) const TURNS: u32 = 40;
/// How often anybody may ask for the time within a second that the clock shows: many times what the
/// busiest history needs, so only somebody who turns without waiting asks more often.
const TURNS_LIMIT: u64 = 1_000_000;
/// How much simulated time a history gets to come to rest after everything is healed.
const REST: Duration = Duration::from_secs(600);

/// Lives one history; panics if it breaks a promise.
pub(crate) fn run(seed: u64, log: bool) {
    live(History::new(seed, log).wishing());
}

/// The same, as it was before clients could ask for anything.
pub(crate) fn run_plain(seed: u64, log: bool) {
    live(History::new(seed, log));
}

/// The same, with a more specific resource that comes and goes.
pub(crate) fn run_overlapping(seed: u64, log: bool) {
    let mut history = History::new(seed, log);
    history.shifts = Some(Shifts::of(&history));
    live(history);
}

/// The same, with documents that come from a broker as well.
pub(crate) fn run_pulled(seed: u64, log: bool) {
    live(History::new(seed, log).wishing().pulled_in());
}

/// Lives what a history is set up for.
pub(crate) fn live(mut history: History) {
    block_on(async {
        history.live().await;
        history.rest().await;
        history.check().await;
        history.check_shifts().await;
        history.check_inputs().await;
    });
}

/// What is known of a subscription.
pub(crate) struct Known {
    /// What was stored of each document before its creation returned.
    pub(crate) before: Versions,
    /// The resource it is told of.
    pub(crate) resource: ResourceId,
    /// The number of its client, and how often somebody wanted to replace it.
    pub(crate) number: u32,
    pub(crate) replacements: u32,
}

pub(crate) struct History {
    pub(crate) seed: u64,
    pub(crate) log: bool,
    pub(crate) random: fastrand::Rng,
    pub(crate) plan: Plan,
    faults: FaultPlan,
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryBackend,
    pub(crate) backend: flare_core::Backend,
    pub(crate) clients: Clients,
    pub(crate) flare: Flare,
    pub(crate) runs: Runs,
    pub(crate) resource: Option<Resource>,
    /// Created subscriptions, with what was stored of each document before the creation returned.
    pub(crate) subscriptions: BTreeMap<SubscriptionId, Known>,
    /// Those somebody wanted to delete.
    pub(crate) deleted: BTreeSet<SubscriptionId>,
    /// Documents somebody wanted to delete: they may be forgotten.
    pub(crate) forgettable: BTreeSet<String>,
    /// The newest version of each document that was accepted.
    accepted: BTreeMap<(ResourceId, String), Version>,
    revision: i64,
    /// How far each row was when it was last looked at.
    rows: BTreeMap<RowKey, (Epoch, (Round, Option<Version>))>,
    /// The more specific resource that comes and goes, if there is any.
    pub(crate) shifts: Option<Shifts>,
    /// What its clients ask for, if they do.
    pub(crate) wishes: Option<Wishes>,
    /// What documents come from beside, if they do.
    pub(crate) inputs: Option<Inputs>,
    /// What befalls all of it at once, now and then, where the stores can bear that.
    pub(crate) outage: Option<fn(&mut History)>,
}

impl History {
    pub(crate) fn new(seed: u64, log: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let plan = Plan::new(&mut random);
        if log {
            eprintln!("history {seed}: {plan:#?}");
        }
        let clock =
            ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)).limited(TURNS_LIMIT);
        let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
        let faults =
            FaultPlan::seeded(seed).with_before(plan.store_faults).with_after(plan.store_faults);
        let clients = Clients::new(clock.clone(), memory.repository(), seed, &plan, log);
        let runs = Runs::new(&memory, &clients);
        let lease = runs.lease(&memory);
        let backend = plan.faulty(&memory, lease, &faults, &clock, seed);
        let (flare, _) = build(&plan, &backend, &clients, &clock, seed);
        Self {
            seed,
            log,
            random,
            plan,
            faults,
            clock,
            memory,
            backend,
            clients,
            flare,
            runs,
            resource: None,
            subscriptions: BTreeMap::new(),
            deleted: BTreeSet::new(),
            forgettable: BTreeSet::new(),
            accepted: BTreeMap::new(),
            revision: 0,
            rows: BTreeMap::new(),
            shifts: None,
            wishes: None,
            inputs: None,
            outage: None,
        }
    }

    /// Lets its clients ask for things.
    pub(crate) fn wishing(mut self) -> Self {
        self.wishes = Some(Wishes::of(self.seed));
        self
    }

    /// Goes on on other stores, which are what an outage has left of those before. Rows may say less than before of
    /// what clients were told.
    #[allow(dead_code, reason = "memory bears no outage")]
    pub(crate) fn move_to(&mut self, memory: MemoryBackend) {
        self.runs.look_at(&memory);
        self.clients.look_at(memory.repository());
        let lease = self.runs.lease(&memory);
        self.backend = self.plan.faulty(&memory, lease, &self.faults, &self.clock, self.seed);
        self.memory = memory;
        self.rows.clear();
    }

    /// Everything goes at once, at any moment or right after a put was answered, where the stores can bear that.
    async fn strike(&mut self) {
        let Some(outage) = self.outage.filter(|_| self.random.u8(..4) == 0) else { return };
        if self.random.bool() {
            self.put().await;
        }
        self.drop_all().await;
        self.clients.sender_crashed();
        outage(self);
        self.start();
    }

    async fn live(&mut self) {
        self.create_resource().await;
        self.start();
        self.pass(Duration::from_secs(1)).await;
        self.begin_to_pull().await;
        for _ in 0..self.plan.steps {
            match self.random.u8(..26) {
                0..=6 => self.put().await,
                7 | 8 => self.delete().await,
                9 | 10 => self.put_many().await,
                11 | 12 => self.subscribe().await,
                13 => self.purge().await,
                14 if self.plan.crashes => self.crash().await,
                15 if self.plan.crashes => self.start(),
                16 if self.plan.crashes => self.stop().await,
                17..=22 if self.plan.meddling => self.meddle().await,
                24 | 25 if Runs::MANY => self.upset().await,
                23 if self.plan.retention => self.pass(Duration::from_secs(700)).await,
                _ => {
                    let millis = self.random.u64(..8_000);
                    self.pass(Duration::from_millis(millis)).await;
                }
            }
            self.shift().await;
            self.wish().await;
            self.feed().await;
            let turns = self.random.u32(..TURNS);
            self.turns(turns).await;
            self.strike().await;
            self.look().await;
            self.look_at_inputs().await;
        }
    }

    /// P2, P6: no row goes back but in a new round, nor is one that an owner wrote overwritten by one before it.
    async fn look(&mut self) {
        if self.plan.retention {
            // Rows may have been forgotten and made anew.
            return;
        }
        let keys = self.keys();
        let found = self.memory.repository().rows(keys.clone()).await.unwrap();
        for (key, row) in keys.into_iter().zip(found) {
            let Some(row) = row else { continue };
            let now = (row.epoch, (row.round, row.settled));
            let before = self.rows.entry(key).or_insert(now);
            let forward = before.0 <= now.0 && before.1 <= now.1;
            assert!(forward, "history {}: {:?} became {now:?}", self.seed, *before);
            *before = now;
        }
    }

    pub(crate) fn note(&self, what: impl std::fmt::Display) {
        if self.log {
            eprintln!("{} {what}", self.clock.now());
        }
    }

    async fn create_resource(&mut self) {
        for _ in 0..100 {
            let endpoint = if self.shifts.is_some() { WIDE } else { NARROW };
            let new = NewResource::new(endpoint).change_field("rev");
            let flare = self.flare.clone();
            let created = self.in_time(flare.create_resource(new)).await;
            // An error may come after the effect: then it is there, under an id we do not know.
            if let Ok(resource) = created {
                self.resource = Some(resource);
                return;
            }
            let url = DocumentUrl::parse("http://api.example/docs/1").unwrap();
            let found = self.memory.repository().match_resources(vec![url]).await.unwrap();
            if let Some(resource) = found.into_iter().flatten().next() {
                self.resource = Some(resource);
                return;
            }
        }
        panic!("no resource could be created");
    }

    pub(crate) fn url(&mut self) -> String {
        format!("http://api.example/docs/{}", self.random.u32(..self.plan.documents))
    }

    pub(crate) fn next_revision(&mut self) -> i64 {
        match self.random.u8(..8) {
            // What a forgotten tombstone held back is news again.
            0 | 1 if self.plan.retention => {
                self.revision += 1;
                self.revision
            }
            0 => self.revision,
            1 => self.random.i64(..=self.revision.max(1)),
            _ => {
                self.revision += self.random.i64(1..4);
                self.revision
            }
        }
    }

    async fn put(&mut self) {
        let (url, revision) = (self.url(), self.next_revision());
        let flare = self.flare.clone();
        let matching = self.matching(&url).await;
        let put = flare.put_json(&url, format!("{{\"rev\":{revision}}}"));
        let answer = self.in_time(put).await;
        self.note(format_args!("put {url} {revision}: {answer:?}"));
        self.check_place(&url, &matching, &answer, false).await;
        self.accept(url, Version::live(revision.into()), answer, &matching).await;
    }

    async fn put_many(&mut self) {
        let count = self.random.usize(1..6);
        let many: Vec<(String, i64)> =
            (0..count).map(|_| (self.url(), self.next_revision())).collect();
        let documents = many.iter().map(|(url, rev)| (url.clone(), format!("{{\"rev\":{rev}}}")));
        let flare = self.flare.clone();
        let matching = self.matching(&many[0].0).await;
        let answers = self.in_time(flare.put_documents(documents)).await;
        self.note(format_args!("put {many:?}: {answers:?}"));
        for ((url, revision), answer) in many.into_iter().zip(answers) {
            self.check_place(&url, &matching, &answer, false).await;
            self.accept(url, Version::live(revision.into()), answer, &matching).await;
        }
    }

    async fn delete(&mut self) {
        let url = self.url();
        let named = self.random.bool().then(|| self.next_revision());
        let shown = named.map(|revision| revision.to_string());
        let flare = self.flare.clone();
        let matching = self.matching(&url).await;
        let live = self.live_in(&url).await;
        let live = matching.iter().find(|resource| live.contains_key(resource)).copied();
        let answer = self.in_time(flare.delete_traced(&url, shown.as_deref(), None)).await;
        self.note(format_args!("delete {url} {named:?}: {answer:?}"));
        self.forgettable.insert(url.clone());
        self.check_place(&url, &matching, &answer, true).await;
        if let Some(revision) = named {
            // Where it was live, or would have been stored.
            let place = live.or(matching.first().copied());
            let place: Vec<ResourceId> = place.into_iter().collect();
            self.accept(url, Version::gone(revision.into()), answer, &place).await;
        }
    }

    /// Notes what was accepted, of the most specific resource that matched.
    async fn accept(
        &mut self,
        url: String,
        version: Version,
        answer: flare_core::Result<DocumentChange>,
        matching: &[ResourceId],
    ) {
        // A deletion of a resource that was left half-way may have been concluded meanwhile.
        let same = self.shifts.is_none() || self.matching(&url).await.contains(&matching[0]);
        let changed = answer.is_ok_and(DocumentChange::notifies);
        if let Some(resource) = matching.first().filter(|_| changed && same) {
            let newest = self.accepted.entry((*resource, url)).or_insert(version);
            *newest = (*newest).max(version);
        }
    }

    async fn subscribe(&mut self) {
        if self.subscriptions.len() >= 4 {
            return;
        }
        let Some(resource) = self.resource.clone() else { return };
        let number = self.random.u32(..);
        let spec = self.plan.subscription(number, 0, self.plan.lanes);
        let (spec, wish) = self.wished(spec, number, 0);
        let flare = self.flare.clone();
        let created = self.in_time(flare.create_subscription(resource.id, spec)).await;
        self.note(format_args!("subscribe, {wish:?}: {:?}", created.as_ref().map(|it| it.id)));
        if let Ok(subscription) = created {
            let before = self.documents().await;
            let known = Known { before, number, replacements: 0, resource: resource.id };
            self.subscriptions.insert(subscription.id, known);
            self.is_created(subscription.id, &wish);
            if wish.passive {
                self.clients.became_passive(subscription.id, Versions::new());
            }
        }
    }

    /// Whole queues are lost, all of them or some.
    async fn purge(&mut self) {
        let all = self.random.bool();
        for name in self.queues().await {
            if all || self.random.bool() {
                self.note(format_args!("purge {name}"));
                self.memory.queue().delete(&name).await.unwrap();
            }
        }
    }

    pub(crate) async fn queues(&self) -> Vec<QueueName> {
        let mut names: Vec<_> = self.memory.queue().list().map(Result::unwrap).collect().await;
        names.sort();
        names
    }

    pub(crate) async fn documents(&self) -> Versions {
        match &self.resource {
            Some(resource) => self.documents_of(resource.id).await,
            None => Versions::new(),
        }
    }

    /// Lets as much time pass as something takes.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.turns(TURNS) => {}
            }
            if let Some(next) = self.clock.next_deadline() {
                self.clock.advance_to(next);
            }
        }
    }

    /// Lets time pass, from deadline to deadline.
    pub(crate) async fn pass(&self, time: Duration) {
        let end = self.clock.now() + time;
        loop {
            self.turns(TURNS).await;
            let now = self.clock.now();
            if now >= end {
                return;
            }
            let next = self.clock.next_deadline().map_or(end, |deadline| deadline.min(end));
            self.clock.advance_to(next);
        }
    }

    /// Everything is well again: now all that was accepted has to arrive.
    async fn rest(&mut self) {
        self.note("heal");
        self.faults.heal();
        self.backend = self.memory.clone().into();
        self.backend.lease = Some(self.runs.lease(&self.memory));
        self.clients.heal();
        // Whoever still runs on the faulty stores ends; somebody on good ones takes over.
        self.end_all().await;
        self.clients.sender_crashed();
        self.start();
        self.put_right().await;
        self.heal_inputs().await;
        self.finish_drops().await;
        self.come_to_rest().await;
        if self.random.bool() {
            self.replay_everything().await;
            self.come_to_rest().await;
        }
        self.check_deleted().await;
    }

    /// The rows that are pending.
    async fn pending_rows(&self) -> Vec<Row> {
        let rows = self.memory.repository().rows(self.keys()).await.unwrap();
        rows.into_iter().flatten().filter(Row::is_pending).collect()
    }

    /// All rows there may be.
    fn keys(&self) -> Vec<RowKey> {
        let urls = (0..self.plan.documents).map(|n| format!("http://api.example/docs/{n}"));
        let urls: Vec<_> = urls.map(|url| DocumentUrl::parse(&url).unwrap()).collect();
        let keys = self.subscriptions.keys().flat_map(|id| urls.iter().map(|it| (*id, it.clone())));
        keys.map(|(id, url)| RowKey::new(id, url)).collect()
    }

    /// Lets time pass until there is nothing left to do.
    async fn come_to_rest(&mut self) {
        let store = self.memory.repository();
        let end = self.clock.now() + REST;
        loop {
            self.pass(Duration::from_secs(1)).await;
            self.pull_all().await;
            let spreading = store.count_undispatched(None).await.unwrap();
            let pending = store.count_pending(None).await.unwrap().count;
            let arrived = spreading == 0 && pending == 0;
            if arrived && self.has_backfilled().await && self.has_pulled().await {
                return;
            }
            assert!(
                self.clock.now() < end,
                "history {}: P1: {spreading} changes not spread, {pending} rows pending: {:?}",
                self.seed,
                self.pending_rows().await
            );
        }
    }

    async fn check(&self) {
        let seed = self.seed;
        let violations = self.clients.violations();
        assert!(violations.is_empty(), "history {seed}: {violations:#?}");

        for ((resource, url), accepted) in &self.accepted {
            if !self.matching(url).await.contains(resource) {
                // It was deleted with its resource.
                continue;
            }
            let stored = self.documents_of(*resource).await.get(url).copied();
            // What moved is gone where it was.
            let forgettable = self.shifts.is_some() || self.forgettable.contains(url);
            let forgotten = self.plan.retention && forgettable;
            assert!(
                stored >= Some(*accepted)
                    || stored.is_none() && forgotten
                    || self.was_said_again(url, stored),
                "history {seed}: P1: {url} {accepted} is lost: {stored:?}"
            );
        }
        for (subscription, known) in &self.subscriptions {
            for (url, newest) in &self.documents_of(known.resource).await {
                let backfilled = self.is_backfilled(*subscription);
                if backfilled || known.before.get(url) != Some(newest) {
                    self.check_client(*subscription, url, *newest).await;
                }
            }
        }
        // Nobody turns without waiting: while the clock stands and all is done, nobody asks for it.
        self.turns(TURNS).await;
        let before = self.clock.asked();
        self.turns(10 * TURNS).await;
        let asked = self.clock.asked() - before;
        assert_eq!(asked, 0, "history {seed}: somebody turns though there is nothing to do");
        // P7: nothing is left behind that would grow.
        assert!(self.clock.sleepers() < 100, "history {seed}: P7: {} sleep", self.clock.sleepers());
    }

    /// A client that subscribed before the newest version was accepted has it, refused it, was
    /// given up on, or had nothing to be told.
    async fn check_client(&self, subscription: SubscriptionId, url: &str, newest: Version) {
        let seed = self.seed;
        let key = RowKey::new(subscription, DocumentUrl::parse(url).unwrap());
        let row = self.memory.repository().rows(vec![key]).await.unwrap().remove(0);
        let wanted = self.clients.wants(subscription, url, newest);
        let Some(row) = row else {
            // A tombstone of what was never seen is told nobody.
            // Nor what a filter refuses, somebody who was never told of it.
            let silent = newest.is_gone() || wanted != Some(true);
            assert!(silent, "history {seed}: P1: {subscription} has no row for {url} {newest}");
            return;
        };
        // Of a tombstone that was raised in silence since, too.
        let given_up = row.given_up.filter(|version| row.settled < Some(*version));
        let of_gone = newest.is_gone() && given_up.is_some_and(Version::is_gone);
        if row.given_up >= Some(newest) || of_gone {
            let kept = row.dead.is_some() || self.plan.retention;
            assert!(kept, "history {seed}: P8: given up without a dead letter");
            return;
        }
        if let Some(asked) =
            self.resynced_after(subscription).filter(|_| !newest.is_gone() && wanted == Some(true))
        {
            let told = self.clients.told(subscription, url) > asked;
            assert!(told, "history {seed}: {subscription} was not told of {url} again");
        }
        let reached = row.settled.max(row.given_up);
        // A tombstone that was raised in silence need not reach the rows.
        let raised = newest.is_gone() && reached.is_some_and(Version::is_gone);
        assert!(
            reached >= Some(newest) || raised,
            "history {seed}: P1: {subscription} stands at {reached:?} of {url} {newest}"
        );
        let holds = self.clients.holds(subscription, url);
        let refused = self.clients.refused(subscription, url, newest);
        if newest.is_gone() || wanted == Some(false) {
            let absent = holds.is_none() || self.clients.may_be_absent(subscription, url);
            assert!(absent, "history {seed}: P1: {subscription} still holds {url}: {holds:?}");
        } else if !refused && wanted == Some(true) {
            let revision = newest.revision().get();
            assert_eq!(holds, Some(revision), "history {seed}: P1: {subscription}, {url}");
        }
    }
}
