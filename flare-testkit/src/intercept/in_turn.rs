//! Takes several handles of one store, as several processes have them; gives one port whose calls go to each
//! in turn, so that a suite sees whether what one is told the others know. Never changes an answer.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Hooks, Intercepted, LeaseHooks, QueueHooks, RepositoryHooks};

/// Hooks that pass every call on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassedOn;

impl Hooks for PassedOn {}
impl RepositoryHooks for PassedOn {}
impl QueueHooks for PassedOn {}
impl LeaseHooks for PassedOn {}

/// Handles of one store, of which the next is used at every call. There has to be one at least.
///
/// ```
/// use flare_backend_memory::MemoryBackend;
/// use flare_core::port::{Queue, QueueName};
/// use flare_testkit::intercept::{Intercepted, PassedOn, several};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = MemoryBackend::new();
/// let queue: Intercepted<dyn Queue, PassedOn> = several([store.queue() as _, store.queue() as _]);
/// queue.create(&QueueName::Spread).await.unwrap();
/// assert_eq!(queue.depth(&QueueName::Spread).await.unwrap().ready, 0);
/// # }
/// ```
pub fn several<P: ?Sized>(handles: impl IntoIterator<Item = Arc<P>>) -> Intercepted<P, PassedOn> {
    Intercepted { inner: InTurn::new(handles), hooks: Arc::new(PassedOn) }
}

/// Dereferences to each of its handles in turn. Clones share the turn.
pub(crate) struct InTurn<P: ?Sized> {
    handles: Arc<[Arc<P>]>,
    calls: Arc<AtomicUsize>,
}

impl<P: ?Sized> InTurn<P> {
    pub(super) fn new(handles: impl IntoIterator<Item = Arc<P>>) -> Self {
        let handles: Arc<[Arc<P>]> = handles.into_iter().collect();
        assert!(!handles.is_empty(), "a store has a handle");
        Self { handles, calls: Arc::default() }
    }

    /// The handle of the last call is used once more.
    pub(super) fn again(&self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<P: ?Sized> Deref for InTurn<P> {
    type Target = P;

    fn deref(&self) -> &P {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        &self.handles[call % self.handles.len()]
    }
}

impl<P: ?Sized> Clone for InTurn<P> {
    fn clone(&self) -> Self {
        Self { handles: Arc::clone(&self.handles), calls: Arc::clone(&self.calls) }
    }
}
