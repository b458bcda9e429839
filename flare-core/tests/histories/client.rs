//! Takes requests as clients would; gives answers as bad as the plan wants, and notes every
//! promise that a request breaks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::{Action, Epoch, SubscriptionId, Version};
use flare_core::port::{
    Clock, Delivery, DeliveryOutcome, DeliveryRequest, FailureKind, Reply, RetryAfter,
};
use flare_testkit::ManualClock;

use crate::known::{Behaviour, Known, key_of};
use crate::plan::Plan;

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
    /// What must not be sent any more: changes accepted after a pause or deletion returned.
    held: BTreeMap<SubscriptionId, Versions>,
    /// The replacement that has to be used for changes accepted after it returned.
    replaced: BTreeMap<SubscriptionId, (u32, Versions)>,
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
    request: DeliveryRequest,
    behaviour: Behaviour,
}

/// The version of each document at some moment.
pub(crate) type Versions = BTreeMap<String, Version>;

impl Clients {
    pub(crate) fn new(clock: ManualClock, seed: u64, plan: &Plan, log: bool) -> Self {
        let inner = Inner {
            random: fastrand::Rng::with_seed(seed),
            faults: plan.client_faults,
            loses_lanes: plan.lease_faults > 0.0,
            late: plan.is_slow(),
            rough: plan.is_rough(),
            forgetful: plan.retention,
            held: BTreeMap::new(),
            replaced: BTreeMap::new(),
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
                let crashes = inner.crashes;
                let known = inner.known.entry(key_of(&it.request)).or_default();
                known.answer(it.behaviour, &it.request, crashes);
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

    /// The newest version a client accepted or refused.
    pub(crate) fn settled(&self, subscription: SubscriptionId, url: &str) -> Option<Version> {
        let inner = self.lock();
        let known = inner.known.get(&(subscription, url.to_owned()))?;
        known.settled.map(|(version, _)| version)
    }
}

impl Inner {
    fn arrives(&mut self, sender: &str, request: &DeliveryRequest) -> (u64, Behaviour) {
        let key = key_of(request);
        let owner = self.owner.as_ref().map(|owner| owner(request.subscription));
        let (version, action) = (request.version, request.action);
        let (loses_lanes, crashes) = (self.loses_lanes, self.crashes);
        let (late, forgetful, rough) = (self.late, self.forgetful, self.rough);
        let newer_than = |versions: &Versions| versions.get(&key.1) < Some(&version);
        let held = self.held.get(&request.subscription).is_some_and(newer_than);
        let outdated = self.replaced.get(&request.subscription).is_some_and(|(number, since)| {
            newer_than(since) && replacement(&request.url) < *number
        });
        // A row that waited when its lane was taken over may have been sent before.
        let fresh = Known { doubt: late || crashes > 0, ..Known::default() };
        let known = self.known.entry(key).or_insert(fresh);
        let mut broken = Vec::new();
        if let Some(owner) = owner {
            if owner.as_ref().is_none_or(|(name, _)| name != sender) {
                broken.push("P6: sent by a node that does not work the slot");
            }
            // What waited when somebody else took over may have been sent before.
            let epoch = owner.map(|(_, epoch)| epoch);
            let moved = known.epoch != epoch && known.epoch.is_some();
            (known.doubt, known.moved) = (known.doubt || moved, known.moved || moved);
            known.epoch = epoch;
        }
        if held {
            broken.push("accepted after a pause or deletion returned, and sent");
        }
        if outdated {
            broken.push("accepted after a replacement returned, and sent under the old settings");
        }

        known.in_flight += 1;
        if known.in_flight > 1 {
            broken.push("P2: two requests in flight");
        }
        if known.newest_sent > Some(version) {
            broken.push("P2: an older version after a newer one");
        }
        known.newest_sent = Some(version);

        if let Some((settled, then)) = known.settled {
            let excused = loses_lanes || then < crashes || rough && known.moved;
            if settled > version {
                broken.push("P2: an older version after a newer one was settled");
            } else if settled == version && !excused {
                broken.push("P3: settled, and told again without a crash");
            }
        }
        let doubt = known.doubt || loses_lanes || forgetful;
        let truthful = match action {
            Action::Create => known.holds.is_none() || doubt,
            _ => known.holds.is_some() || doubt,
        };
        if !truthful {
            broken.push("P5: not what the client holds");
        }
        if (action == Action::Delete) != version.is_gone() {
            broken.push("P5: the action does not fit the version");
        }
        let header = |name: &str| {
            request.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone())
        };
        let id = header("webhook-id").unwrap_or_default();
        let present = action != Action::Delete;
        let first = known.ids.entry((version, present)).or_insert_with(|| id.clone());
        if *first != id || id.is_empty() {
            broken.push("P3: another webhook-id for the same notification");
        }
        let seen = format!(
            "{sender} {:?} of {} {action:?} {version} ({known:?})",
            request.subscription, request.document
        );
        for promise in broken {
            self.violations.push(format!("{promise}: {seen}"));
        }
        let behaviour = self.behave();
        self.requests += 1;
        let sender = sender.to_owned();
        self.under_way
            .insert(self.requests, UnderWay { sender, request: request.clone(), behaviour });
        (self.requests, behaviour)
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

/// Which replacement of its subscription a URL is of.
fn replacement(url: &str) -> u32 {
    let number = url.split('/').nth(3).and_then(|part| part.strip_prefix('r'));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A request that is being answered; if the sender goes away in between, nobody knows.
struct Answering {
    clients: Clients,
    number: u64,
    ended: bool,
}

impl Answering {
    /// The client does what it does, unless it has because its sender froze.
    fn answer(&self) {
        let mut inner = self.clients.lock();
        let Inner { under_way, known, crashes, .. } = &mut *inner;
        if let Some(it) = under_way.get(&self.number) {
            let known = known.entry(key_of(&it.request)).or_default();
            known.answer(it.behaviour, &it.request, *crashes);
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut inner = self.clients.lock();
        if let Some(it) = inner.under_way.remove(&self.number) {
            let known = inner.known.entry(key_of(&it.request)).or_default();
            known.in_flight -= 1;
            known.doubt |= !self.ended;
        }
    }
}

#[async_trait]
impl Delivery for Clients {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let timeout = request.timeout;
        let (number, behaviour, delay) = {
            let mut inner = self.lock();
            let (number, behaviour) = inner.arrives(&self.sender, &request);
            if inner.log {
                eprintln!(
                    "{} {} {} {:?} {} -> {behaviour:?}",
                    self.clock.now(),
                    self.sender,
                    request.document,
                    request.action,
                    request.version
                );
            }
            // Most answer at once, some take their time.
            let slow = inner.random.u8(..4) == 0;
            let delay = if slow { inner.random.u64(..3_000) } else { 0 };
            (number, behaviour, Duration::from_millis(delay))
        };
        let mut answering = Answering { clients: self.clone(), number, ended: false };
        if !delay.is_zero() {
            self.clock.sleep_until(self.clock.now() + delay).await;
        }
        answering.answer();
        let lost = |message: &str| DeliveryOutcome::failed(FailureKind::Broken, message, true);
        let outcome = match behaviour {
            Behaviour::Accept => DeliveryOutcome::answered(200),
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
