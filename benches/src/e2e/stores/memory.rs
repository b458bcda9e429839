//! Memory: nothing is safe, so there is nothing to compare a write with and nothing on disk.

use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_core::Backend;

use super::{MeasuredStore, Weight};
use crate::Result;

#[derive(Debug, Default)]
pub(super) struct InMemory {
    backend: std::sync::OnceLock<MemoryBackend>,
}

#[async_trait]
impl MeasuredStore for InMemory {
    async fn open(&self) -> Result<Backend> {
        Ok(self.backend.get_or_init(MemoryBackend::new).clone().into())
    }

    async fn bare_write(&self) -> Result<Option<Duration>> {
        Ok(None)
    }

    async fn weights(&self) -> Result<Vec<Weight>> {
        Ok(Vec::new())
    }

    async fn remove(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
