//! Takes the ports and settings a host chose; gives every step of the cluster the same ones, and
//! store calls that end in time.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::settings::ClusterSettings;
use crate::audit::AuditLog;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Actor, AuditAction, AuditSubject, IdSource, NodeId};
use crate::ownership::DrainLimit;
use crate::port::{Clock, Lease, Repository};
use crate::tools::{doubled, lock};

/// The wait after a first failure.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest wait between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What all steps of one node share.
#[derive(Debug)]
pub(crate) struct NodeContext {
    pub(crate) lease: Arc<dyn Lease>,
    pub(crate) repository: Arc<dyn Repository>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: ClusterSettings,
    /// Slots that are shared out.
    pub(crate) slots: u32,
    pub(crate) drain_limit: Arc<DrainLimit>,
    /// The log of what was done, if it is told there.
    pub(crate) audit: OnceLock<AuditLog>,
    ids: IdSource,
    random: Mutex<fastrand::Rng>,
}

impl NodeContext {
    pub(crate) fn new(
        lease: Arc<dyn Lease>,
        repository: Arc<dyn Repository>,
        clock: Arc<dyn Clock>,
        settings: ClusterSettings,
        slots: u32,
        drain_limit: Arc<DrainLimit>,
        seed: u64,
    ) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        let ids = IdSource::seeded(seed);
        let audit = OnceLock::new();
        Self { lease, repository, clock, settings, slots, drain_limit, audit, ids, random }
    }

    /// Tells what became of a node.
    pub(crate) fn tell(&self, node: NodeId, action: AuditAction) {
        if let Some(audit) = self.audit.get() {
            audit.record(&Actor::node(&*self.settings.name), action, AuditSubject::node(node), "");
        }
    }

    /// An incarnation that no node had before.
    pub(crate) fn fresh_id(&self) -> NodeId {
        self.ids.next(self.clock.now()).into()
    }

    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    /// Sleeps until then by the monotonic clock; for ever without a time.
    pub(crate) async fn sleep_until(&self, time: Option<Duration>) {
        match time {
            Some(time) => self.sleep(time.saturating_sub(self.monotonic())).await,
            None => std::future::pending().await,
        }
    }

    /// A little less than `most`, so that nodes do not all do the same at once.
    pub(crate) fn up_to(&self, most: Duration) -> Duration {
        most.mul_f64(lock(&self.random).f64())
    }

    /// Waits after this many failures in a row.
    pub(crate) async fn pause(&self, failures: u32) {
        let pause = doubled(PAUSE, failures, LONGEST_PAUSE);
        self.sleep(pause + self.up_to(pause / 5)).await;
    }

    /// A store call that answers within the limit or counts as failed, its effect unknown.
    pub(crate) async fn timed<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let limit = self.settings.call_limit;
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.sleep(limit) => {
                let detail = format!("no answer within {limit:?}");
                Err(Error::new(ErrorKind::Timeout, operation).with_detail(detail))
            }
        }
    }
}
