//! Takes a port and hooks; gives the same port, with the hooks asked before and after each of its
//! calls, and in place of those that they answer themselves. Never changes what no hook does.
//!
//! [`Hooks::before`] and [`Hooks::after`] see every call by its name: they delay it, hold it up, count
//! it, or fail it before or after its effect. [`RepositoryHooks`], [`QueueHooks`] and [`LeaseHooks`]
//! have a method for each call, whose arguments and answer it may change; what it does not write is
//! passed on. A delivery is one call, for which there is
//! [`RecordingDelivery`](crate::RecordingDelivery).
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use flare_backend_memory::MemoryBackend;
//! use flare_core::port::{Queue, QueueName};
//! use flare_core::{Error, ErrorKind, Result};
//! use flare_testkit::intercept::{self, Call, Hooks, QueueHooks};
//!
//! /// Refuses to make a queue, twice.
//! #[derive(Debug, Default)]
//! struct Reluctant(AtomicU32);
//!
//! impl Hooks for Reluctant {
//!     async fn before(&self, call: &Call<'_>) -> Result<()> {
//!         if call.name == "create" && self.0.fetch_add(1, Ordering::Relaxed) < 2 {
//!             return Err(Error::new(ErrorKind::Busy, call.name));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! impl QueueHooks for Reluctant {}
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let queue = intercept::queue(MemoryBackend::new().queue(), Reluctant::default());
//! assert!(queue.create(&QueueName::Spread).await.is_err());
//! assert!(queue.create(&QueueName::Spread).await.is_err());
//! assert!(queue.create(&QueueName::Spread).await.is_ok());
//! assert_eq!(queue.hooks.0.load(Ordering::Relaxed), 3);
//! # });
//! ```

mod calls;
mod in_turn;
mod lease;
mod queue;
mod repository;

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use flare_core::port::{Lease, Queue, QueueName, Repository, Scan};
use flare_core::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};

use in_turn::InTurn;
pub use in_turn::{PassedOn, several};
pub use lease::LeaseHooks;
pub use queue::QueueHooks;
pub use repository::RepositoryHooks;

/// A port with hooks. Clones share both.
#[non_exhaustive]
pub struct Intercepted<P: ?Sized, H> {
    pub(crate) inner: InTurn<P>,
    /// What is asked around its calls.
    pub hooks: Arc<H>,
}

/// A repository with hooks.
pub fn repository<H>(inner: Arc<dyn Repository>, hooks: H) -> Intercepted<dyn Repository, H> {
    Intercepted { inner: InTurn::new([inner]), hooks: Arc::new(hooks) }
}

/// A queue with hooks.
pub fn queue<H>(inner: Arc<dyn Queue>, hooks: H) -> Intercepted<dyn Queue, H> {
    Intercepted { inner: InTurn::new([inner]), hooks: Arc::new(hooks) }
}

/// A coordination store with hooks.
pub fn lease<H>(inner: Arc<dyn Lease>, hooks: H) -> Intercepted<dyn Lease, H> {
    Intercepted { inner: InTurn::new([inner]), hooks: Arc::new(hooks) }
}

impl<P: ?Sized, H: Clone> Intercepted<P, H> {
    /// The same, with its hooks changed; clones that were made of it before keep theirs.
    pub(crate) fn changed(mut self, change: impl FnOnce(&mut H)) -> Self {
        change(Arc::make_mut(&mut self.hooks));
        self
    }
}

impl<P: ?Sized, H> Clone for Intercepted<P, H> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), hooks: Arc::clone(&self.hooks) }
    }
}

impl<P: ?Sized, H: fmt::Debug> fmt::Debug for Intercepted<P, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Intercepted").field(&self.hooks).finish()
    }
}

/// A call of a port, as hooks see it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The method's name.
    pub name: &'static str,
    /// How many items it is about: those of a batch, else 1; of a scan none yet.
    pub items: usize,
    /// The queue it is about, if it is a queue's.
    pub queue: Option<&'a QueueName>,
}

impl<'a> Call<'a> {
    const fn new(name: &'static str, items: usize) -> Self {
        Self { name, items, queue: None }
    }

    const fn of(mut self, queue: &'a QueueName) -> Self {
        self.queue = Some(queue);
        self
    }
}

/// What is asked around the calls of any port.
pub trait Hooks: fmt::Debug + Send + Sync + 'static {
    /// Before a call takes effect. An error is its answer: of a batch, that to every item; of a scan,
    /// which asks when it is read first, all that it gives.
    fn before(&self, call: &Call<'_>) -> impl Future<Output = Result<()>> + Send {
        let _ = call;
        ready(Ok(()))
    }

    /// Once a call has taken effect, or failed. An error is its answer; scans do not ask.
    fn after(&self, call: &Call<'_>) -> impl Future<Output = Result<()>> + Send {
        let _ = call;
        ready(Ok(()))
    }

    /// Around a call with an answer for each item: for hooks that go by item.
    fn batch<T: Send, R: Send, F>(
        &self,
        call: Call<'_>,
        items: Vec<T>,
        run: impl FnOnce(Vec<T>) -> F + Send,
    ) -> impl Future<Output = Vec<Result<R>>> + Send
    where
        F: Future<Output = Vec<Result<R>>> + Send,
    {
        async move {
            let all = |error: Error| (0..call.items).map(|_| Err(error.clone())).collect();
            if let Err(error) = self.before(&call).await {
                return all(error);
            }
            let answers = run(items).await;
            match self.after(&call).await {
                Ok(()) => answers,
                Err(error) => all(error),
            }
        }
    }

    /// Around a scan: for hooks that go by what it gives.
    fn scan<'a, T: Send + 'a>(&'a self, call: Call<'a>, scan: Scan<'a, T>) -> Scan<'a, T> {
        stream::once(async move { self.before(&call).await.map(|()| scan) }).try_flatten().boxed()
    }
}

/// Around a call with one answer.
async fn around<H: Hooks, R>(
    hooks: &H,
    call: Call<'_>,
    run: impl Future<Output = Result<R>>,
) -> Result<R> {
    hooks.before(&call).await?;
    let answer = run.await;
    hooks.after(&call).await?;
    answer
}
