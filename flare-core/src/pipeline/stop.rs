//! Takes one wish to stop; gives it to all who work.

use tokio::sync::watch;

/// Its holder can tell the others to stop.
#[derive(Debug)]
pub(crate) struct Stopper(watch::Sender<bool>);

/// Tells when to stop.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

pub(crate) fn stop() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once stopping is wished for, or no handle is left that could wish for it.
    pub(crate) async fn requested(&mut self) {
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
