//! Takes a repository; gives the same one as if it were on another machine: every document that is
//! read has bytes of its own, which are counted for as long as anybody holds them. Never changes an
//! answer.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use flare_core::model::{Content, Document};
use flare_core::port::{Repository, RepositoryFacts, Scan};

use crate::delegate::delegate_stores;

/// A repository whose documents are copied when they are read. Clones share the count.
///
/// A repository in memory hands out the bytes it stores; whoever holds those holds nothing more.
/// With this one before it, what is held of documents shows.
#[derive(Clone)]
pub struct FarRepository {
    inner: Arc<dyn Repository>,
    held: Arc<Held>,
}

#[derive(Default)]
struct Held {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Bytes of one document that was read.
struct Copied {
    bytes: Vec<u8>,
    held: Arc<Held>,
}

impl AsRef<[u8]> for Copied {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.held.now.fetch_sub(self.bytes.len(), Ordering::AcqRel);
    }
}

impl FarRepository {
    /// Copies what is read of `inner`.
    pub fn new(inner: Arc<dyn Repository>) -> Self {
        Self { inner, held: Arc::default() }
    }

    /// Bytes of documents that were read and not dropped since.
    pub fn held(&self) -> usize {
        self.held.now.load(Ordering::Acquire)
    }

    /// The most bytes that were held at a time since this was asked last.
    pub fn most_held(&self) -> usize {
        self.held.most.swap(self.held(), Ordering::AcqRel)
    }

    fn copy(&self, content: &Content) -> Content {
        let bytes = content.as_bytes().to_vec();
        let now = self.held.now.fetch_add(bytes.len(), Ordering::AcqRel) + bytes.len();
        self.held.most.fetch_max(now, Ordering::AcqRel);
        Content::from_stored(Bytes::from_owner(Copied { bytes, held: Arc::clone(&self.held) }))
    }

    async fn one<R>(&self, _: &'static str, call: impl Future<Output = R>) -> R {
        call.await
    }

    async fn many<T, R, F>(
        &self,
        _: &'static str,
        items: Vec<T>,
        call: impl FnOnce(Vec<T>) -> F,
    ) -> R
    where
        F: Future<Output = R>,
        R: 'static,
    {
        let mut answer = call(items).await;
        // One hook serves calls of every type; only documents have content.
        type Documents = flare_core::Result<Vec<Option<Document>>>;
        if let Some(Ok(documents)) = (&mut answer as &mut dyn Any).downcast_mut::<Documents>() {
            for document in documents.iter_mut().flatten() {
                document.content = document.content.as_ref().map(|content| self.copy(content));
            }
        }
        answer
    }

    async fn batch<T, R, F>(
        &self,
        _: &'static str,
        items: Vec<T>,
        call: impl FnOnce(Vec<T>) -> F,
    ) -> R
    where
        F: Future<Output = R>,
    {
        call(items).await
    }

    async fn spread<T, R, F>(
        &self,
        _: &'static str,
        items: Vec<T>,
        call: impl FnOnce(Vec<T>) -> F,
    ) -> R
    where
        F: Future<Output = R>,
    {
        call(items).await
    }

    fn scan<'a, T: Send + 'a>(&'a self, _: &'static str, scan: Scan<'a, T>) -> Scan<'a, T> {
        scan
    }
}

impl fmt::Debug for FarRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FarRepository").field("held", &self.held()).finish_non_exhaustive()
    }
}

delegate_stores!(FarRepository);

impl Repository for FarRepository {
    fn facts(&self) -> RepositoryFacts {
        let mut facts = self.inner.facts();
        facts.in_process = false;
        facts
    }
}
