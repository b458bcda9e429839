//! The permits that a lane asked for, and those it has and has not used.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::permit::{ClientPermits, SendPermit, SendPermits};
use crate::tools::taken;

/// The permits of a lane's next requests.
pub(super) struct LanePermits {
    client: ClientPermits,
    held: Option<SendPermits>,
    asking: Option<BoxFuture<'static, Option<SendPermits>>>,
}

impl LanePermits {
    pub(super) fn new(client: ClientPermits) -> Self {
        Self { client, held: None, asking: None }
    }

    /// Whether the client is slow, or has not shown yet that it is not.
    pub(super) fn is_slow(&self) -> bool {
        self.client.is_slow()
    }

    /// Asks for so many; tells how many there are at once, if any.
    pub(super) fn ask(&mut self, wanted: usize) -> Option<usize> {
        self.held = self.client.try_take(wanted);
        if self.held.is_none() {
            self.asking = Some(self.client.take(wanted).boxed());
        }
        self.held.as_ref().map(SendPermits::count)
    }

    /// Waits for those that were asked for.
    pub(super) async fn next(&mut self) -> Option<SendPermits> {
        taken(&mut self.asking).await
    }

    /// They are there; tells how many. None ever, if there is no number.
    pub(super) fn given(&mut self, held: Option<SendPermits>) -> Option<usize> {
        self.held = held;
        self.held.as_ref().map(SendPermits::count)
    }

    /// Asks for none any more.
    pub(super) fn stop_asking(&mut self) {
        self.asking = None;
    }

    /// Gives back what is not used.
    pub(super) fn give_back(&mut self) {
        self.held = None;
    }

    /// Keeps them for requests that are made soon, without counting them as young.
    pub(super) fn keep(&mut self) {
        self.held.iter_mut().for_each(SendPermits::keep);
    }

    /// The permit of a request that is made now.
    pub(super) fn use_one(&mut self) -> Option<SendPermit> {
        self.held.as_mut().and_then(SendPermits::next)
    }
}
