//! Takes a future; gives one that can be frozen, as a process is that gets no time to run.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Freezes what runs behind it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    frozen: bool,
    waker: Option<Waker>,
}

impl Gate {
    pub(crate) fn freeze(&self) {
        self.0.lock().unwrap().frozen = true;
    }

    pub(crate) fn thaw(&self) {
        let mut state = self.0.lock().unwrap();
        state.frozen = false;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.0.lock().unwrap().frozen
    }

    pub(crate) fn guard<F: Future<Output = ()> + Send + 'static>(&self, inner: F) -> Gated {
        Gated { inner: Box::pin(inner), gate: self.clone() }
    }
}

pub(crate) struct Gated {
    inner: Pin<Box<dyn Future<Output = ()> + Send>>,
    gate: Gate,
}

impl Future for Gated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut state = self.gate.0.lock().unwrap();
            if state.frozen {
                state.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
        }
        self.inner.as_mut().poll(context)
    }
}
