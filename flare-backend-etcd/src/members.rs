//! Takes a question for etcd; gives the answer of the first member that has one, within the time
//! of a call. The only place that knows which member is asked, and for how long.
//!
//! Every member has connections of its own here, rather than a place in a balanced set: so a
//! question can be put to another one than the last, and a connection on which nothing comes back
//! is given up instead of used again.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_client::{Client, ConnectOptions};
use flare_core::port::{Clock, SystemClock};
use flare_core::{Error, ErrorKind, Result};
use tracing::debug;

use crate::BACKEND;
use crate::config::EtcdConfig;
use crate::error::{self, Failure, Next};

/// How long to wait after all members were asked in vain, and at most after many such rounds.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// What an attempt gives.
pub(crate) type Answer<T> = Result<T, Failure>;

/// Whether a question changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    Some,
}

/// Which connection to a member a question takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The one that most do.
    Shared,
    /// One that only keep-alives use: on the other a large answer, or one that nobody takes, holds up
    /// all that come after it.
    Alive,
}

/// The members of one cluster.
pub(crate) struct Members {
    members: Vec<Member>,
    options: ConnectOptions,
    clock: Arc<dyn Clock>,
    timeout: Duration,
    per_member: Duration,
    /// Who is asked first: the last one that answered.
    preferred: AtomicUsize,
}

struct Member {
    url: String,
    /// The connections, each once there was a question for it.
    shared: Mutex<Option<Client>>,
    alive: Mutex<Option<Client>>,
}

impl Members {
    pub(crate) fn new(config: &EtcdConfig) -> Self {
        let member = |url: &String| Member {
            url: url.clone(),
            shared: Mutex::default(),
            alive: Mutex::default(),
        };
        Self {
            members: config.endpoints.iter().map(member).collect(),
            options: config.options(),
            clock: Arc::new(SystemClock::new()),
            timeout: config.timeout,
            per_member: config.per_member(),
            preferred: AtomicUsize::new(0),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.members.len()
    }

    /// Who is asked first.
    pub(crate) fn preferred(&self) -> usize {
        self.preferred.load(Ordering::Relaxed) % self.members.len()
    }

    pub(crate) fn prefer(&self, index: usize) {
        self.preferred.store(index, Ordering::Relaxed);
    }

    pub(crate) fn url(&self, index: usize) -> &str {
        &self.members[index % self.members.len()].url
    }

    /// How long a call may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How long one member may take.
    pub(crate) fn per_member(&self) -> Duration {
        self.per_member
    }

    /// Asks something that changes nothing.
    pub(crate) async fn read<T, F>(
        &self,
        operation: &'static str,
        ask: impl Fn(Client) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Answer<T>>,
    {
        self.ask(operation, Effect::None, Way::Shared, |client, _| ask(client)).await
    }

    /// Asks for a change. An attempt is told whether one before it may have been made.
    pub(crate) async fn write<T, F>(
        &self,
        operation: &'static str,
        ask: impl Fn(Client, bool) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Answer<T>>,
    {
        self.ask(operation, Effect::Some, Way::Shared, ask).await
    }

    /// Asks for what keeps a lease, on a connection that nothing else uses.
    pub(crate) async fn keep<T, F>(
        &self,
        operation: &'static str,
        ask: impl Fn(Client) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Answer<T>>,
    {
        self.ask(operation, Effect::Some, Way::Alive, |client, _| ask(client)).await
    }

    async fn ask<T, F>(
        &self,
        operation: &'static str,
        effect: Effect,
        way: Way,
        ask: impl Fn(Client, bool) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Answer<T>>,
    {
        let deadline = self.clock.monotonic() + self.timeout;
        let (mut in_doubt, mut signed_in, mut asked) = (false, false, 0);
        let mut pause = FIRST_PAUSE;
        loop {
            let index = self.preferred();
            let left = deadline.saturating_sub(self.clock.monotonic());
            let limit = left.min(self.per_member);
            let failure = match self.attempt(operation, (index, way), limit, in_doubt, &ask).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match failure.next {
                Next::Stop => return Err(failure.error),
                Next::SignIn if signed_in => return Err(failure.error),
                Next::SignIn => {
                    // The same member: the others' tokens may be as old.
                    self.forget(index, way);
                    signed_in = true;
                    continue;
                }
                Next::InDoubt => in_doubt = effect == Effect::Some,
                Next::Elsewhere => {}
            }
            let error = failure.error;
            debug!(%error, member = self.url(index), "asking another member");
            self.turn_from(index);
            asked += 1;
            let left = deadline.saturating_sub(self.clock.monotonic());
            if asked % self.members.len() == 0 {
                if left <= pause {
                    return Err(self.given_up(error, in_doubt));
                }
                self.pause(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            } else if left.is_zero() {
                return Err(self.given_up(error, in_doubt));
            }
        }
    }

    /// Puts the question to one member.
    async fn attempt<T, F>(
        &self,
        operation: &'static str,
        (index, way): (usize, Way),
        limit: Duration,
        in_doubt: bool,
        ask: &impl Fn(Client, bool) -> F,
    ) -> Answer<T>
    where
        F: Future<Output = Answer<T>>,
    {
        let asked = AtomicBool::new(false);
        let answer = self.within(operation, limit, async {
            let client = self.client(operation, index, way).await?;
            asked.store(true, Ordering::Relaxed);
            ask(client, in_doubt).await
        });
        let mut answer = answer.await;
        if let Err(failure) = &mut answer
            && failure.next == Next::InDoubt
        {
            // A connection that broke or says nothing is not worth another question.
            self.forget(index, way);
            if !asked.into_inner() {
                failure.next = Next::Elsewhere;
            }
        }
        answer
    }

    /// Awaits an answer for so long.
    pub(crate) async fn within<T>(
        &self,
        operation: &'static str,
        limit: Duration,
        answer: impl Future<Output = Answer<T>>,
    ) -> Answer<T> {
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.pause(limit) => {
                let detail = format!("no answer within {limit:?}");
                Err(Failure::new(operation, ErrorKind::Timeout, Next::InDoubt, detail))
            }
        }
    }

    /// A connection that nobody else uses.
    pub(crate) async fn dial(&self, operation: &'static str, index: usize) -> Answer<Client> {
        let dialled = Client::connect([self.url(index)], Some(self.options.clone())).await;
        dialled.map_err(|error| error::from_client(operation, &error))
    }

    async fn client(&self, operation: &'static str, index: usize, way: Way) -> Answer<Client> {
        if let Some(client) = &*self.slot(index, way) {
            return Ok(client.clone());
        }
        let client = self.dial(operation, index).await?;
        *self.slot(index, way) = Some(client.clone());
        Ok(client)
    }

    fn forget(&self, index: usize, way: Way) {
        *self.slot(index, way) = None;
    }

    fn slot(&self, index: usize, way: Way) -> MutexGuard<'_, Option<Client>> {
        let member = &self.members[index];
        let slot = match way {
            Way::Shared => &member.shared,
            Way::Alive => &member.alive,
        };
        slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prefers the next member, unless somebody has turned already.
    fn turn_from(&self, index: usize) {
        let next = (index + 1) % self.members.len();
        let turned =
            self.preferred.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
        if turned.is_ok() {
            debug!(member = self.url(next), "preferring another member");
        }
    }

    /// Lets `time` pass.
    pub(crate) async fn pause(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    /// The error of a call that has used up its time.
    fn given_up(&self, last: Error, in_doubt: bool) -> Error {
        if !in_doubt || last.kind() == ErrorKind::Timeout {
            return last;
        }
        let detail = format!("within {:?} nobody said whether it happened", self.timeout);
        Error::new(ErrorKind::Timeout, last.operation())
            .with_backend(BACKEND)
            .with_detail(detail)
            .with_source(last)
    }

    /// Puts a question to every member at once.
    pub(crate) async fn every<T, F>(
        &self,
        operation: &'static str,
        ask: impl Fn(Client) -> F,
    ) -> Vec<Answer<T>>
    where
        F: Future<Output = Answer<T>>,
    {
        let ask = |client, _| ask(client);
        let all = (0..self.members.len())
            .map(|index| self.attempt(operation, (index, Way::Shared), self.timeout, false, &ask));
        futures::future::join_all(all).await
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls = self.members.iter().map(|member| &member.url);
        f.debug_list().entries(urls).finish()
    }
}
