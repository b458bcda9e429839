//! Takes requests as clients would; gives answers as bad as the plan wants, and notes every
//! promise that a request breaks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::{Action, SubscriptionId, Version};
use flare_core::port::{
    Clock, Delivery, DeliveryOutcome, DeliveryRequest, FailureKind, Reply, RetryAfter,
};
use flare_testkit::ManualClock;

use crate::plan::Plan;

/// All clients of a history.
#[derive(Clone)]
pub(crate) struct Clients {
    clock: ManualClock,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    random: fastrand::Rng,
    faults: f64,
    /// Lanes may be lost at any time, which nobody outside sees.
    loses_lanes: bool,
    /// Lanes may be taken over late, so that rows wait for it.
    late: bool,
    /// Rows are forgotten some time after their document is gone, whatever the client holds.
    forgetful: bool,
    /// What must not be sent any more: changes accepted after a pause or deletion returned.
    held: BTreeMap<SubscriptionId, Versions>,
    /// The replacement that has to be used for changes accepted after it returned.
    replaced: BTreeMap<SubscriptionId, (u32, Versions)>,
    known: BTreeMap<(SubscriptionId, String), Known>,
    violations: Vec<String>,
    crashes: u64,
    log: bool,
}

/// The version of each document at some moment.
pub(crate) type Versions = BTreeMap<String, Version>;

/// What one client knows of one document, and what it was told.
#[derive(Debug, Default)]
struct Known {
    /// The revision it holds.
    holds: Option<i64>,
    /// The sender cannot know what it holds.
    doubt: bool,
    in_flight: u32,
    newest_sent: Option<Version>,
    /// The newest version it accepted or refused, and how many crashes there had been.
    settled: Option<(Version, u64)>,
    ids: BTreeMap<(Version, bool), String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Behaviour {
    Accept,
    Refuse,
    Fail,
    AcceptAndLoseAnswer,
    LoseRequest,
    Hang {
        accept: bool,
    },
    Unreachable,
    /// Asks to be left alone for some seconds.
    Wait(u64),
    Gone,
}

impl Clients {
    pub(crate) fn new(clock: ManualClock, seed: u64, plan: &Plan, log: bool) -> Self {
        let inner = Inner {
            random: fastrand::Rng::with_seed(seed),
            faults: plan.client_faults,
            loses_lanes: plan.lease_faults > 0.0,
            late: plan.lease_faults > 0.0 || plan.store_faults > 0.0 || plan.delays > 0.0,
            forgetful: plan.retention,
            held: BTreeMap::new(),
            replaced: BTreeMap::new(),
            known: BTreeMap::new(),
            violations: Vec::new(),
            crashes: 0,
            log,
        };
        Self { clock, inner: Arc::new(Mutex::new(inner)) }
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
    fn arrives(&mut self, request: &DeliveryRequest) -> Behaviour {
        let key = (request.subscription, request.document.as_str().to_owned());
        let (version, action) = (request.version, request.action);
        let (loses_lanes, crashes) = (self.loses_lanes, self.crashes);
        let (late, forgetful) = (self.late, self.forgetful);
        let newer_than = |versions: &Versions| versions.get(&key.1) < Some(&version);
        let held = self.held.get(&request.subscription).is_some_and(newer_than);
        let outdated = self.replaced.get(&request.subscription).is_some_and(|(number, since)| {
            newer_than(since) && replacement(&request.url) < *number
        });
        // A row that waited when its lane was taken over may have been sent before.
        let fresh = Known { doubt: late || crashes > 0, ..Known::default() };
        let known = self.known.entry(key).or_insert(fresh);
        let mut broken = Vec::new();
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
            let excused = loses_lanes || then < crashes;
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
            "{:?} of {} {action:?} {version} ({known:?})",
            request.subscription, request.document
        );
        for promise in broken {
            self.violations.push(format!("{promise}: {seen}"));
        }
        self.behave()
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

impl Known {
    fn take(&mut self, request: &DeliveryRequest) {
        let revision = request.version.revision().get();
        self.holds = (request.action != Action::Delete).then_some(revision);
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
    request: DeliveryRequest,
    ended: bool,
}

impl Answering {
    fn with(&self, work: impl FnOnce(&mut Known, &DeliveryRequest, u64)) {
        let mut inner = self.clients.lock();
        let crashes = inner.crashes;
        let key = (self.request.subscription, self.request.document.as_str().to_owned());
        work(inner.known.entry(key).or_default(), &self.request, crashes);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let ended = self.ended;
        self.with(|known, _, _| {
            known.in_flight -= 1;
            known.doubt |= !ended;
        });
    }
}

#[async_trait]
impl Delivery for Clients {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let timeout = request.timeout;
        let (behaviour, delay) = {
            let mut inner = self.lock();
            let behaviour = inner.arrives(&request);
            if inner.log {
                eprintln!(
                    "{} {} {:?} {} -> {behaviour:?}",
                    self.clock.now(),
                    request.document,
                    request.action,
                    request.version
                );
            }
            // Most answer at once, some take their time.
            let slow = inner.random.u8(..4) == 0;
            (
                behaviour,
                if slow {
                    Duration::from_millis(inner.random.u64(..3_000))
                } else {
                    Duration::ZERO
                },
            )
        };
        let mut answering = Answering { clients: self.clone(), request, ended: false };
        if !delay.is_zero() {
            self.clock.sleep_until(self.clock.now() + delay).await;
        }
        let lost = |message: &str| DeliveryOutcome::failed(FailureKind::Broken, message, true);
        let outcome = match behaviour {
            Behaviour::Accept => {
                answering.with(|known, request, crashes| {
                    known.take(request);
                    known.doubt = false;
                    known.settled = Some((request.version, crashes));
                });
                DeliveryOutcome::answered(200)
            }
            Behaviour::Refuse => {
                answering.with(|known, request, crashes| {
                    known.settled = Some((request.version, crashes));
                    // A refused delete counts as absent.
                    if request.action == Action::Delete {
                        known.holds = None;
                        known.doubt = false;
                    }
                });
                DeliveryOutcome::answered(409)
            }
            Behaviour::Fail => DeliveryOutcome::answered(500),
            Behaviour::Gone => DeliveryOutcome::answered(410),
            Behaviour::Wait(seconds) => {
                let retry_after = Some(RetryAfter::Delay(Duration::from_secs(seconds)));
                let mut outcome = DeliveryOutcome::answered(429);
                let excerpt = Default::default();
                outcome.reply = Reply::Answered { status: 429, retry_after, excerpt };
                outcome
            }
            Behaviour::AcceptAndLoseAnswer => {
                answering.with(|known, request, _| {
                    known.take(request);
                    known.doubt = true;
                });
                lost("reset")
            }
            Behaviour::LoseRequest => {
                answering.with(|known, _, _| known.doubt = true);
                lost("reset")
            }
            Behaviour::Hang { accept } => {
                if accept {
                    answering.with(|known, request, _| known.take(request));
                }
                answering.with(|known, _, _| known.doubt = true);
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
