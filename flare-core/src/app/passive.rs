//! Takes a client that is told nothing by itself; gives it what waits when it asks: pushed by `demand`,
//! or handed out by `pull` and settled by `settle`.

use std::time::Duration;

use super::flare::Flare;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Invalid, LaneId, Subscription, SubscriptionId};
use crate::pipeline::pull::{self, PullOutcome, PullSettlement, Pulled};

/// How often a puller that waits looks for what other nodes spread.
const LOOK: Duration = Duration::from_millis(500);
/// The most that is handed out at a time.
const MOST: usize = 1_000;
/// How long a puller waits at the most.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// How long a claim may hold.
const LONGEST_LEASE: Duration = Duration::from_secs(43_200);

/// What a puller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "it is only a wish until it is pulled"]
pub struct Pull {
    max: usize,
    wait: Duration,
    lease: Duration,
}

impl Pull {
    /// Up to `max` notifications, 1 to 1,000, of what waits now; they are to be settled within 30 s.
    pub const fn new(max: usize) -> Self {
        Self { max, wait: Duration::ZERO, lease: Duration::from_secs(30) }
    }

    /// Waits for a change if nothing waits, at most 20 s.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// How long what is handed out is the caller's, from 1 s to 12 h; then others get it.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    fn check(&self) -> std::result::Result<(), Invalid> {
        if !(1..=MOST).contains(&self.max) {
            return Err(Invalid::new("max", format!("must be an integer from 1 to {MOST}")));
        }
        if self.wait > LONGEST_WAIT {
            return Err(Invalid::new("waitSeconds", "must be an integer from 0 to 20"));
        }
        if !(Duration::from_secs(1)..=LONGEST_LEASE).contains(&self.lease) {
            return Err(Invalid::new("leaseSeconds", "must be an integer from 1 to 43200"));
        }
        Ok(())
    }
}

impl Flare {
    /// Hands out changes that wait for a passive subscription's client, earliest due first, each with
    /// the receipt by which it is [settled](Self::settle) and in the newest version. No other caller is
    /// handed them, and no lane sends them, before they are settled or the lease ends.
    ///
    /// A conflict if the subscription is not passive, or is paused or suspended. One that becomes so while it
    /// is pulled from hands nothing out that was accepted after that.
    ///
    /// ```
    /// # use flare_backend_memory::MemoryBackend;
    /// # use flare_core::{Flare, prelude::*};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> flare_core::Result<()> {
    /// let (flare, runtime) = Flare::builder(MemoryBackend::new()).build()?;
    /// let running = runtime.spawn();
    /// let users = NewResource::new("http://api.example/users/{id}").change_field("rev");
    /// let users = flare.create_resource(users).await?;
    /// let passive = SubscriptionSpec::post("http://client.example/").mode(Mode::Passive);
    /// let client = flare.create_subscription(users.id, passive).await?;
    /// flare.put_json("http://api.example/users/1", r#"{"rev":1}"#).await?;
    ///
    /// let waiting = Pull::new(10).wait(std::time::Duration::from_secs(5));
    /// let mut taken = Vec::new();
    /// for pulled in flare.pull(client.id, waiting).await? {
    ///     assert!(pulled.notification.starts_with(b"{\"id\":\"http://api.example/users/1\""));
    ///     taken.push((pulled.receipt, PullOutcome::Success));
    /// }
    /// assert_eq!(flare.settle(client.id, taken).await?, [PullSettlement::Done]);
    /// # drop(running);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pull(&self, id: SubscriptionId, wanted: Pull) -> Result<Vec<Pulled>> {
        const OPERATION: &str = "pull";
        wanted.check().map_err(|invalid| Error::invalid(OPERATION, invalid))?;
        let context = self.context();
        let end = context.clock.monotonic() + wanted.wait;
        let listener = context.bells.listen(id);
        loop {
            // Before it is looked: what comes from now on is heard.
            let mut rings = std::pin::pin!(listener.bell.notified());
            rings.as_mut().enable();
            let subscription = self.passive(OPERATION, id).await?;
            // Lanes that sent changes by themselves until now may still be at some of them.
            if subscription.moving_from.is_none() {
                let resource = self.resource(subscription.resource).await?;
                let (max, lease) = (wanted.max, wanted.lease);
                let pulled = pull::pull(context, &resource, subscription, max, lease).await;
                match pulled.map_err(|error| error.during(OPERATION))? {
                    Some(pulled) if !pulled.is_empty() => return Ok(pulled),
                    Some(_) => {}
                    // Answered as if it were asked for now: what it is by now decides.
                    None => continue,
                }
            }
            let left = end.saturating_sub(context.clock.monotonic());
            if left.is_zero() {
                return Ok(Vec::new());
            }
            tokio::select! {
                biased;
                () = rings => {}
                () = context.sleep(left.min(LOOK)) => {}
            }
        }
    }

    /// Settles what was handed out by [`pull`](Self::pull); one answer per receipt, in their order. Any
    /// handle on the same stores does it. If one of them is no receipt, nothing is settled. If the store
    /// fails at some of them only, their answer is [`PullSettlement::Failed`]; they may be settled again.
    pub async fn settle(
        &self,
        id: SubscriptionId,
        outcomes: impl IntoIterator<Item = (String, PullOutcome)>,
    ) -> Result<Vec<PullSettlement>> {
        const OPERATION: &str = "settle";
        // Whatever its mode is by now: what was handed out may be settled.
        let subscription = self.find_subscription(OPERATION, id).await?;
        let settled =
            pull::settle(self.context(), &subscription, outcomes.into_iter().collect()).await;
        settled.map_err(|error| error.during(OPERATION))
    }

    /// Has changes that wait for a passive subscription's client sent to its endpoint, up to
    /// `quantity`; tells how many. They are retried and given up like those of any subscription.
    ///
    /// A conflict if the subscription is not passive, is paused or suspended, or has no URL.
    pub async fn demand(&self, id: SubscriptionId, quantity: u64) -> Result<u64> {
        const OPERATION: &str = "demand";
        let subscription = self.passive(OPERATION, id).await?;
        if !subscription.spec.endpoint().is_reachable() {
            let detail = "the subscription has no URL to send to: pull what waits, or give it one";
            let conflict = Error::new(ErrorKind::Conflict, OPERATION).with_field("endpoint.url");
            return Err(conflict.with_detail(detail));
        }
        let context = self.context();
        let demanded = pull::demand(context, id, quantity).await;
        let demanded = demanded.map_err(|error| error.during(OPERATION))?;
        if demanded > 0 {
            let (slot, lanes) =
                (context.slot_of(&subscription), subscription.spec.delivery().lanes());
            let lanes = (0..lanes).map(|shard| (LaneId::new(id, shard), slot));
            if let Err(error) = context.wake(lanes).await {
                // They are marked: lanes find them by themselves, later.
                let error = crate::pipeline::stage::chain(&error);
                tracing::warn!(subscription = %id, %error, "could not wake the lanes of a demand");
            }
        }
        Ok(demanded)
    }

    /// The subscription, if its client may ask for what waits.
    async fn passive(&self, operation: &'static str, id: SubscriptionId) -> Result<Subscription> {
        let subscription = self.find_subscription(operation, id).await?;
        match pull::refusal(&subscription) {
            None => Ok(subscription),
            Some((field, detail)) => {
                let conflict = Error::new(ErrorKind::Conflict, operation).with_field(field);
                Err(conflict.with_detail(detail))
            }
        }
    }
}
