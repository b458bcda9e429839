//! Takes the time somebody wants to be woken at; gives one sleep that lasts from wait to wait for
//! as long as that time stays the same.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::model::Timestamp;
use crate::port::Clock;

/// An alarm that is set before each wait, and costs nothing if the time has not changed.
#[derive(Default)]
pub(super) struct Alarm(Option<(Timestamp, BoxFuture<'static, ()>)>);

impl Alarm {
    /// Rings at `at`, and at no other time.
    pub(super) fn set(&mut self, at: Timestamp, clock: &Arc<dyn Clock>) {
        if self.0.as_ref().is_none_or(|(set, _)| *set != at) {
            let clock = Arc::clone(clock);
            self.0 = Some((at, async move { clock.sleep_until(at).await }.boxed()));
        }
    }

    /// Returns when it rings; an alarm that is not set never does.
    pub(super) async fn rings(&mut self) {
        match &mut self.0 {
            Some((_, alarm)) => alarm.await,
            None => std::future::pending().await,
        }
        self.0 = None;
    }
}
