//! Takes a repository; gives the same one as if it were on another machine: every document that is
//! read has bytes of its own, which are counted for as long as anybody holds them. Never changes an
//! answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::Result;
use flare_core::model::{Content, Document, DocumentKey};
use flare_core::port::{Repository, RepositoryFacts};

use crate::intercept::{self, Hooks, Intercepted, RepositoryHooks};

/// A repository whose documents are copied when they are read. Clones share the count.
///
/// A repository in memory hands out the bytes it stores; whoever holds those holds nothing more.
/// With this one before it, what is held of documents shows.
pub type FarRepository = Intercepted<dyn Repository, CopiedContent>;

impl FarRepository {
    /// Copies what is read of `inner`.
    pub fn new(inner: Arc<dyn Repository>) -> Self {
        intercept::repository(inner, CopiedContent::default())
    }

    /// Bytes of documents that were read and not dropped since.
    pub fn held(&self) -> usize {
        self.hooks.0.now.load(Ordering::Acquire)
    }

    /// The most bytes that were held at a time since this was asked last.
    pub fn most_held(&self) -> usize {
        self.hooks.0.most.swap(self.held(), Ordering::AcqRel)
    }
}

/// Copies the documents of a [`FarRepository`].
#[derive(Default)]
pub struct CopiedContent(Arc<Held>);

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

impl CopiedContent {
    fn copy(&self, content: &Content) -> Content {
        let bytes = content.as_bytes().to_vec();
        let now = self.0.now.fetch_add(bytes.len(), Ordering::AcqRel) + bytes.len();
        self.0.most.fetch_max(now, Ordering::AcqRel);
        Content::from_stored(Bytes::from_owner(Copied { bytes, held: Arc::clone(&self.0) }))
    }
}

impl fmt::Debug for CopiedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopiedContent").field("held", &self.0.now).finish_non_exhaustive()
    }
}

impl Hooks for CopiedContent {}

#[async_trait]
impl RepositoryHooks for CopiedContent {
    fn facts(&self, inner: &dyn Repository) -> RepositoryFacts {
        let mut facts = inner.facts();
        facts.in_process = false;
        facts
    }

    async fn documents(
        &self,
        inner: &dyn Repository,
        keys: Vec<DocumentKey>,
    ) -> Result<Vec<Option<Document>>> {
        let mut documents = inner.documents(keys).await?;
        for document in documents.iter_mut().flatten() {
            document.content = document.content.as_ref().map(|content| self.copy(content));
        }
        Ok(documents)
    }
}
