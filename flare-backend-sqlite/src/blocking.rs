//! Takes work that takes long; does it on a thread of its own, and tells whoever waits how far it is.

use flare_core::port::StepProgress;
use flare_core::{ErrorKind, Result};
use tokio::sync::{oneshot, watch};

use crate::error;

/// How far work is, and of how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Advance {
    done: u64,
    total: u64,
}

/// Where work says how far it is.
#[derive(Debug)]
pub(crate) struct Reporter(watch::Sender<Option<Advance>>);

impl Reporter {
    /// So much of `total` is done.
    pub(crate) fn advanced(&self, done: u64, total: u64) {
        self.0.send_replace(Some(Advance { done: done.min(total), total }));
    }

    /// Whether somebody still waits for the work.
    pub(crate) fn is_heard(&self) -> bool {
        !self.0.is_closed()
    }
}

/// Does `work` on a thread of its own. Of what it says while nobody listens, the newest is told.
pub(crate) async fn run<T: Send + 'static>(
    operation: &'static str,
    progress: &dyn StepProgress,
    work: impl FnOnce(&Reporter) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (said, mut heard) = watch::channel(None);
    let (answer, mut waiting) = oneshot::channel();
    let spawned =
        std::thread::Builder::new().name(format!("flare-sqlite-{operation}")).spawn(move || {
            let done = work(&Reporter(said));
            // Whoever went away does not want to know.
            _ = answer.send(done);
        });
    spawned.map_err(|error| {
        error::from_io(operation, "a thread could not be started".to_owned(), error)
    })?;
    let mut told = None;
    let mut tell = |heard: &watch::Receiver<Option<Advance>>| {
        let now = *heard.borrow();
        if let Some(Advance { done, total }) = now.filter(|_| now != told) {
            progress.advanced(done, Some(total));
            told = now;
        }
    };
    loop {
        tokio::select! {
            biased;
            Ok(()) = heard.changed() => tell(&heard),
            done = &mut waiting => {
                // It may have said something between the two looks.
                tell(&heard);
                let gone = || error::of(ErrorKind::Internal, operation, "its thread ended");
                return done.unwrap_or_else(|_| Err(gone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<(u64, Option<u64>)>>);

    impl StepProgress for Heard {
        fn advanced(&self, done: u64, total: Option<u64>) {
            self.0.lock().unwrap().push((done, total));
        }
    }

    #[tokio::test]
    async fn what_was_said_last_is_heard_before_the_answer() {
        let heard = Heard::default();
        let answer = run("test", &heard, |said| {
            for done in 0..=10 {
                said.advanced(done, 10);
            }
            Ok(7)
        });
        assert_eq!(answer.await.unwrap(), 7);
        let heard = heard.0.into_inner().unwrap();
        assert_eq!(heard.last(), Some(&(10, Some(10))));
        assert!(heard.is_sorted());
    }

    #[tokio::test]
    async fn a_failure_is_the_answer() {
        let failed = run::<()>("test", &(), |_| Err(error::of(ErrorKind::Busy, "test", "no")));
        assert_eq!(failed.await.unwrap_err().kind(), ErrorKind::Busy);
    }
}
