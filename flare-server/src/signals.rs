//! Takes SIGTERM and ctrl-c; gives the name of each as it comes. Listens from the moment it is
//! made, so that a signal during the start is not lost.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask the process to end.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "ctrl-c",
        }
    }
}
