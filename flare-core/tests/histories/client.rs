//! Takes requests as clients would; gives answers as bad as the plan wants, and notes every
//! promise that a request breaks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::{Action, Epoch, SubscriptionId, Timestamp, Version};
use flare_core::port::{
    Clock, Delivery, DeliveryOutcome, DeliveryRequest, FailureKind, Reply, Repository, RetryAfter,
};
use flare_core::{PullOutcome, PullSettlement};
use flare_testkit::ManualClock;

use crate::asked::AllAsked;
use crate::known::{Behaviour, Known, Told, Wanted};
use crate::plan::Plan;

/// How long lanes may take to end once they are to, whoever dies meanwhile.
const LEAVES_WITHIN: Duration = Duration::from_secs(120);

/// All clients of a history, as one sender sees them.
#[derive(Clone)]
pub(crate) struct Clients {
    clock: ManualClock,
    sender: String,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    random: fastrand::Rng,
    faults: f64,
    /// Lanes may be lost at any time, which nobody outside sees.
    loses_lanes: bool,
    /// Lanes may be taken over late, so that rows wait for it.
    late: bool,
    /// Lanes may be taken from a sender before it has stored what it knows.
    rough: bool,
    /// Rows are forgotten some time after their document is gone, whatever the client holds.
    forgetful: bool,
    /// Subscriptions whose deletion a caller asked for: their rows are forgotten, and a spread that comes late
    /// may make one anew before their lanes have heard of it.
    deleted: BTreeSet<SubscriptionId>,
    /// What must not be sent any more: changes accepted after a pause or deletion returned.
    held: BTreeMap<SubscriptionId, Versions>,
    /// The replacement that has to be used for changes accepted after it returned.
    replaced: BTreeMap<SubscriptionId, (u32, Versions)>,
    /// What clients asked for beside.
    asked: AllAsked,
    /// Clients that ask for what waits: what must not be sent by itself.
    passive: BTreeMap<SubscriptionId, Versions>,
    /// Those that asked for some of it to be sent.
    demanding: BTreeSet<SubscriptionId>,
    /// Until when those that became so may still be leaving their lanes: what waits then is in doubt.
    leaving: BTreeMap<SubscriptionId, Timestamp>,
    known: BTreeMap<(SubscriptionId, String), Known>,
    violations: Vec<String>,
    crashes: u64,
    /// Who works a subscription, and under which epoch; nobody knows, where there is no cluster.
    owner: Option<Owner>,
    /// Requests that are being answered, by number.
    under_way: BTreeMap<u64, UnderWay>,
    requests: u64,
    log: bool,
}

/// Tells who works a subscription, and under which epoch.
pub(crate) type Owner = Box<dyn Fn(SubscriptionId) -> Option<(String, Epoch)> + Send>;

/// A request that a client has, and its sender waits for.
struct UnderWay {
    sender: String,
    told: Told,
    behaviour: Behaviour,
}

/// The version of each document at some moment.
pub(crate) type Versions = BTreeMap<String, Version>;

impl Clients {
    pub(crate) fn new(
        clock: ManualClock,
        store: Arc<dyn Repository>,
        seed: u64,
        plan: &Plan,
        log: bool,
    ) -> Self {
        let inner = Inner {
            random: fastrand::Rng::with_seed(seed),
            faults: plan.client_faults,
            loses_lanes: plan.lease_faults > 0.0,
            late: plan.is_slow(),
            rough: plan.is_rough(),
            forgetful: plan.retention,
            deleted: BTreeSet::new(),
            held: BTreeMap::new(),
            replaced: BTreeMap::new(),
            asked: AllAsked::new(store),
            passive: BTreeMap::new(),
            demanding: BTreeSet::new(),
            leaving: BTreeMap::new(),
            known: BTreeMap::new(),
            violations: Vec::new(),
            crashes: 0,
            owner: None,
            under_way: BTreeMap::new(),
            requests: 0,
            log,
        };
        Self { clock, sender: String::new(), inner: Arc::new(Mutex::new(inner)) }
    }

    /// The same clients, for one of many senders.
    pub(crate) fn of(&self, sender: &str) -> Self {
        Self { sender: sender.to_owned(), ..self.clone() }
    }

    /// The stores are others from now on.
    #[allow(dead_code, reason = "memory bears no outage")]
    pub(crate) fn look_at(&self, store: Arc<dyn Repository>) {
        self.lock().asked.look_at(store);
    }

    /// From now on a sender has to be whoever this names.
    pub(crate) fn owned_by(&self, owner: Owner) {
        let mut inner = self.lock();
        inner.owner = Some(owner);
        // Lanes that are lost show in their epochs.
        inner.loses_lanes = false;
    }

    /// From now on lanes may change hands at any time: what waits then is in doubt.
    pub(crate) fn may_be_handed_over(&self) {
        self.lock().late = true;
    }

    /// A sender is frozen: what it has sent arrives, and it may never hear of it.
    pub(crate) fn freeze(&self, sender: &str) {
        let mut inner = self.lock();
        let under_way = std::mem::take(&mut inner.under_way);
        for (number, it) in under_way {
            if it.sender == sender {
                let (crashes, now) = (inner.crashes, self.clock.now());
                let known = inner.known.entry(it.told.key()).or_default();
                known.answer(it.behaviour, &it.told, crashes, now);
                known.in_flight -= 1;
            } else {
                inner.under_way.insert(number, it);
            }
        }
        drop(inner);
        self.sender_crashed();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// The sender died: whatever it knew and had not stored is gone.
    pub(crate) fn sender_crashed(&self) {
        let mut inner = self.lock();
        inner.crashes += 1;
        inner.known.values_mut().for_each(|known| known.doubt = true);
    }

    /// From now on a subscription may be gone.
    pub(crate) fn may_be_deleted(&self, subscription: SubscriptionId) {
        self.lock().deleted.insert(subscription);
    }

    /// A pause or deletion has returned: nothing newer than this is sent until it is released.
    pub(crate) fn hold(&self, subscription: SubscriptionId, versions: Versions) {
        self.lock().held.insert(subscription, versions);
    }

    pub(crate) fn release(&self, subscription: SubscriptionId) {
        self.lock().held.remove(&subscription);
    }

    /// A replacement has returned: whatever is newer than this is sent under it, or a later one.
    pub(crate) fn replaced(&self, subscription: SubscriptionId, number: u32, versions: Versions) {
        self.lock().replaced.insert(subscription, (number, versions));
    }

    /// From now on a client may be told once more of what it has settled.
    pub(crate) fn may_be_retold(&self, subscription: SubscriptionId) {
        self.lock().asked.of(subscription).retellings += 1;
    }

    /// From now on a client may want these documents alone, and be left alone for so long.
    pub(crate) fn may_be_replaced(
        &self,
        subscription: SubscriptionId,
        wanted: Wanted,
        interval: Option<Duration>,
    ) {
        self.lock().asked.of(subscription).may_be_replaced(wanted, interval);
    }

    /// A client wants these documents alone, of whatever is newer than this.
    pub(crate) fn certainly_wants(
        &self,
        subscription: SubscriptionId,
        wanted: Wanted,
        versions: Versions,
    ) {
        self.lock().asked.of(subscription).certainly_wants(wanted, versions);
    }

    /// Whether a client wants a version, as far as that can be known.
    pub(crate) fn wants(
        &self,
        subscription: SubscriptionId,
        url: &str,
        version: Version,
    ) -> Option<bool> {
        self.lock().asked.of(subscription).wants(url, version)
    }

    /// A client has become one that asks for what waits: nothing newer than this is sent by itself.
    pub(crate) fn became_passive(&self, subscription: SubscriptionId, versions: Versions) {
        let mut inner = self.lock();
        if !inner.demanding.contains(&subscription) {
            inner.passive.insert(subscription, versions);
        }
    }

    /// A client is to become one that asks for what waits: its lanes end some time after that.
    pub(crate) fn leaves_its_lanes(&self, subscription: SubscriptionId) {
        let until = self.clock.now() + LEAVES_WITHIN;
        self.lock().leaving.insert(subscription, until);
    }

    /// A client asks for some of what waits to be sent: which of it does not show.
    pub(crate) fn demands(&self, subscription: SubscriptionId) {
        let mut inner = self.lock();
        inner.demanding.insert(subscription);
        inner.passive.remove(&subscription);
    }

    /// A client is to become active: it may be sent things from now on.
    pub(crate) fn may_be_sent(&self, subscription: SubscriptionId) {
        self.lock().passive.remove(&subscription);
    }

    /// Requests so far, and notifications handed out.
    pub(crate) fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// When a client was last told of a document, in requests of all.
    pub(crate) fn told(&self, subscription: SubscriptionId, url: &str) -> u64 {
        self.lock().known.get(&(subscription, url.to_owned())).map_or(0, |known| known.told)
    }

    /// A puller was handed a notification, which is its own until the claim lapses.
    pub(crate) fn handed(&self, told: &Told, outcome: PullOutcome, lapses: Timestamp) {
        let now = self.clock.now();
        let mut inner = self.lock();
        let inner = &mut *inner;
        if inner.leaving.get(&told.subscription).is_some_and(|until| *until > now) {
            inner.known.entry(told.key()).or_default().doubt = true;
        }
        inner.is_told(told, now, None, Vec::new());
        let known = inner.known.entry(told.key()).or_default();
        known.in_hand = Some(lapses);
        if outcome == PullOutcome::Success {
            known.take(told);
        }
        // It may hold it, as far as anybody can know.
        known.doubt = true;
        // No lane has it under its epoch: to the one that tells next, it may be what another has sent.
        known.epoch = Some(Epoch::ZERO);
    }

    /// A puller is about to settle what it was handed: others may have it from now on.
    pub(crate) fn settling(&self, told: &Told) {
        self.lock().known.entry(told.key()).or_default().in_hand = None;
    }

    /// What became of that, as it was asked for at `now`; nobody knows, if it failed.
    pub(crate) fn settled_by(
        &self,
        told: &Told,
        outcome: PullOutcome,
        settled: Option<PullSettlement>,
        now: Timestamp,
    ) {
        let mut inner = self.lock();
        let crashes = inner.crashes;
        let known = inner.known.entry(told.key()).or_default();
        match (settled, outcome) {
            (Some(PullSettlement::Done), PullOutcome::Success) => {
                known.answer(Behaviour::Accept, told, crashes, now);
            }
            (Some(PullSettlement::Done), PullOutcome::Discard) => {
                known.answer(Behaviour::Refuse, told, crashes, now);
            }
            (None | Some(PullSettlement::Failed), PullOutcome::Discard) => {
                known.may_have_refused = Some(told.version);
                // A refused delete counts as absent, if it was heard.
                if told.action == Action::Delete {
                    (known.doubt, known.may_be_absent) = (true, true);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn heal(&self) {
        self.lock().faults = 0.0;
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    /// The revision a client holds.
    pub(crate) fn holds(&self, subscription: SubscriptionId, url: &str) -> Option<i64> {
        self.lock().known.get(&(subscription, url.to_owned())).and_then(|known| known.holds)
    }

    /// Whether the sender may count as absent what a client holds, as it may have refused to let it go.
    pub(crate) fn may_be_absent(&self, subscription: SubscriptionId, url: &str) -> bool {
        let inner = self.lock();
        inner.known.get(&(subscription, url.to_owned())).is_some_and(|known| known.may_be_absent)
    }

    /// Whether a client may have refused a version.
    pub(crate) fn refused(
        &self,
        subscription: SubscriptionId,
        url: &str,
        version: Version,
    ) -> bool {
        let inner = self.lock();
        inner.known.get(&(subscription, url.to_owned())).is_some_and(|known| {
            let settled = known.settled.map(|(settled, _)| settled);
            settled == Some(version) || known.may_have_refused == Some(version)
        })
    }
}

impl Inner {
    /// A request arrives; gives the numbers of what it tells, how each is taken, and how the whole is.
    fn arrives(
        &mut self,
        sender: &str,
        request: &DeliveryRequest,
        now: Timestamp,
    ) -> (Vec<u64>, Vec<Behaviour>, Behaviour) {
        let all = Told::by(request);
        let whole = self.behave();
        let each: Vec<Behaviour> = match whole {
            Behaviour::Accept if all.len() > 1 => {
                all.iter().map(|_| self.behave_in_part()).collect()
            }
            // Which of many is meant is not said.
            Behaviour::Refuse if all.len() > 1 => vec![Behaviour::Fail; all.len()],
            whole => vec![whole; all.len()],
        };
        let told = all.into_iter().zip(&each);
        let numbers =
            told.map(|(told, how)| self.takes(sender, request, told, *how, now)).collect();
        (numbers, each, whole)
    }

    /// A client that takes a request takes most of what it tells.
    fn behave_in_part(&mut self) -> Behaviour {
        if self.random.f64() >= self.faults {
            return Behaviour::Accept;
        }
        if self.random.bool() { Behaviour::Fail } else { Behaviour::Refuse }
    }

    /// A client is sent something; gives its number.
    fn takes(
        &mut self,
        sender: &str,
        request: &DeliveryRequest,
        told: Told,
        behaviour: Behaviour,
        now: Timestamp,
    ) -> u64 {
        let (key, version) = (told.key(), told.version);
        let owner = self.owner.as_ref().map(|owner| owner(told.subscription));
        let newer_than = |versions: &Versions| versions.get(&key.1) < Some(&version);
        let outdated = self.replaced.get(&told.subscription).is_some_and(|(number, since)| {
            newer_than(since) && replacement(&request.url) < *number
        });
        let mut broken = Vec::new();
        if let Some(owner) = &owner
            && owner.as_ref().is_none_or(|(name, _)| name != sender)
        {
            broken.push("P6: sent by a node that does not work the slot");
        }
        if outdated {
            broken.push("accepted after a replacement returned, and sent under the old settings");
        }
        if self.passive.get(&told.subscription).is_some_and(newer_than) {
            broken.push("sent by itself to a client that asks for what waits");
        }
        // What waited when somebody else took over may have been sent before.
        let epoch = owner.map(|owner| owner.map(|(_, epoch)| epoch));
        self.is_told(&told, now, epoch, broken);
        self.known.entry(key).or_default().in_flight += 1;
        let sender = sender.to_owned();
        self.under_way.insert(self.requests, UnderWay { sender, told, behaviour });
        self.requests
    }

    /// A client is told something, under which epoch if it is sent; notes every promise that breaks.
    fn is_told(
        &mut self,
        told: &Told,
        now: Timestamp,
        epoch: Option<Option<Epoch>>,
        mut broken: Vec<&'static str>,
    ) {
        let (version, action, key) = (told.version, told.action, told.key());
        let (loses_lanes, crashes) = (self.loses_lanes, self.crashes);
        let deleted = self.deleted.contains(&told.subscription);
        let (late, rough) = (self.late, self.rough);
        let forgetful = self.forgetful || deleted;
        let newer_than = |versions: &Versions| versions.get(&key.1) < Some(&version);
        if self.held.get(&told.subscription).is_some_and(newer_than) {
            broken.push("accepted after a pause or deletion returned, and sent");
        }
        let made_anew = forgetful && self.asked.row_is_new(told.subscription, &told.document);
        let asked = self.asked.of(told.subscription);
        let (may_want, may_refuse) = asked.may_want(version);
        let (retellings, interval) = (asked.retellings, asked.interval);
        self.requests += 1;
        // A row that waited when its lane was taken over may have been sent before.
        let fresh = Known { doubt: late || crashes > 0, ..Known::default() };
        let known = self.known.entry(key.clone()).or_insert(fresh);
        known.told = self.requests;
        if let Some(epoch) = epoch {
            let moved = known.epoch != epoch && known.epoch.is_some();
            (known.doubt, known.moved) = (known.doubt || moved, known.moved || moved);
            known.epoch = epoch;
        }
        if known.in_flight > 0 {
            broken.push("P2: two requests in flight");
        }
        if known.in_hand.take().is_some_and(|lapses| lapses > now) {
            broken.push("P2: told while a puller has it");
        }
        if made_anew && known.settled.is_some_and(|(settled, _)| settled.is_gone()) {
            // The tombstone is forgotten with its row: what an old message says begins anew.
            (known.newest_sent, known.settled, known.settled_at) = (None, None, None);
        }
        if known.newest_sent > Some(version) {
            broken.push("P2: an older version after a newer one");
        }
        known.newest_sent = Some(version);

        let excused = |then: u64| loses_lanes || then < crashes || rough && known.moved || deleted;
        // What is told anew forgets an answer that came in between.
        let anew = known.retold < retellings;
        if let (Some((at, then)), Some(interval)) = (known.settled_at, interval)
            && at + interval > now
            && !excused(then)
            && !anew
        {
            broken.push("told again within its interval");
        }
        let doubt = known.doubt || loses_lanes || forgetful;
        let truthful = match action {
            Action::Create => known.holds.is_none() || doubt,
            _ => known.holds.is_some() || doubt,
        };
        let again =
            known.settled.is_some_and(|(settled, then)| settled == version && !excused(then));
        if known.settled.is_some_and(|(settled, _)| settled > version) {
            broken.push("P2: an older version after a newer one was settled");
        }
        if (again || !truthful) && anew {
            // Somebody asked for it.
            known.retold += 1;
            (known.settled, known.settled_at) = (None, None);
            known.doubt = true;
        } else {
            if again {
                broken.push("P3: settled, and told again without a crash");
            }
            if !truthful {
                broken.push("P5: not what the client holds");
            }
        }
        let fits = match action {
            Action::Delete => version.is_gone() || may_refuse,
            Action::Create | Action::Update => !version.is_gone(),
        };
        if !fits {
            broken.push("P5: the action does not fit the version");
        }
        if action != Action::Delete && !may_want {
            broken.push("told of a document that every filter refuses");
        }
        let present = action != Action::Delete;
        let ids = known.ids.entry((version, present)).or_default();
        ids.insert(told.id.clone());
        if ids.len() > 1 + retellings as usize || told.id.is_empty() {
            broken.push("P3: another webhook-id for the same notification");
        }
        for promise in broken {
            self.violations.push(format!("{promise}: {told:?} ({known:?})"));
        }
    }

    fn behave(&mut self) -> Behaviour {
        if self.random.f64() >= self.faults {
            return Behaviour::Accept;
        }
        match self.random.u8(..9) {
            0 => Behaviour::Refuse,
            1 | 2 => Behaviour::Fail,
            3 => Behaviour::AcceptAndLoseAnswer,
            4 => Behaviour::LoseRequest,
            5 => Behaviour::Hang { accept: self.random.bool() },
            6 => Behaviour::Wait(self.random.u64(..30)),
            7 if self.random.u8(..4) == 0 => Behaviour::Gone,
            _ => Behaviour::Unreachable,
        }
    }
}

/// The answer to a request that was taken, but for some of what it told.
fn in_part(told: &[Told], each: &[Behaviour]) -> DeliveryOutcome {
    let mut outcome = DeliveryOutcome::answered(200);
    let named = |how: Behaviour| {
        let named = told.iter().zip(each).filter(move |(_, it)| **it == how);
        named.map(|(told, _)| told.id.as_str()).collect::<Vec<_>>()
    };
    let (failed, discarded) = (named(Behaviour::Fail), named(Behaviour::Refuse));
    if !failed.is_empty() || !discarded.is_empty() {
        let body = serde_json::json!({ "failed": failed, "discarded": discarded });
        let excerpt = body.to_string().into();
        outcome.reply = Reply::Answered { status: 200, retry_after: None, excerpt };
    }
    outcome
}

/// Which replacement of its subscription a URL is of.
fn replacement(url: &str) -> u32 {
    let number = url.split('/').nth(3).and_then(|part| part.strip_prefix('r'));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A request that is being answered; if the sender goes away in between, nobody knows.
struct Answering {
    clients: Clients,
    numbers: Vec<u64>,
    ended: bool,
}

impl Answering {
    /// The client does what it does, unless it has because its sender froze.
    fn answer(&self) {
        let mut inner = self.clients.lock();
        let Inner { under_way, known, crashes, .. } = &mut *inner;
        for it in self.numbers.iter().filter_map(|number| under_way.get(number)) {
            let known = known.entry(it.told.key()).or_default();
            known.answer(it.behaviour, &it.told, *crashes, self.clients.clock.now());
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut inner = self.clients.lock();
        for number in &self.numbers {
            let Some(it) = inner.under_way.remove(number) else { continue };
            let known = inner.known.entry(it.told.key()).or_default();
            known.in_flight -= 1;
            known.doubt |= !self.ended;
        }
    }
}

#[async_trait]
impl Delivery for Clients {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let timeout = request.timeout;
        let (numbers, each, behaviour, delay) = {
            let mut inner = self.lock();
            let (numbers, each, behaviour) =
                inner.arrives(&self.sender, &request, self.clock.now());
            if inner.log {
                eprintln!(
                    "{} {} {} {:?} {} of {}, {} -> {behaviour:?}",
                    self.clock.now(),
                    self.sender,
                    request.document,
                    request.action,
                    request.version,
                    each.len(),
                    request.url
                );
            }
            // Most answer at once, some take their time.
            let slow = inner.random.u8(..4) == 0;
            let delay = if slow { inner.random.u64(..3_000) } else { 0 };
            (numbers, each, behaviour, Duration::from_millis(delay))
        };
        let mut answering = Answering { clients: self.clone(), numbers, ended: false };
        if !delay.is_zero() {
            self.clock.sleep_until(self.clock.now() + delay).await;
        }
        answering.answer();
        let lost = |message: &str| DeliveryOutcome::failed(FailureKind::Broken, message, true);
        let outcome = match behaviour {
            Behaviour::Accept => in_part(&Told::by(&request), &each),
            Behaviour::Refuse => DeliveryOutcome::answered(409),
            Behaviour::Fail => DeliveryOutcome::answered(500),
            Behaviour::Gone => DeliveryOutcome::answered(410),
            Behaviour::Wait(seconds) => {
                let retry_after = Some(RetryAfter::Delay(Duration::from_secs(seconds)));
                let mut outcome = DeliveryOutcome::answered(429);
                let excerpt = Default::default();
                outcome.reply = Reply::Answered { status: 429, retry_after, excerpt };
                outcome
            }
            Behaviour::AcceptAndLoseAnswer | Behaviour::LoseRequest => lost("reset"),
            Behaviour::Hang { .. } => {
                self.clock.sleep_until(self.clock.now() + timeout).await;
                DeliveryOutcome::failed(FailureKind::Timeout, "no answer", true)
            }
            Behaviour::Unreachable => {
                DeliveryOutcome::failed(FailureKind::Connect, "refused", false)
            }
        };
        answering.ended = true;
        outcome
    }
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clients")
    }
}
