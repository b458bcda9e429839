//! Takes the host's limits; gives what the stores hold themselves to.

/// How much a [`MemoryBackend`](crate::MemoryBackend) may hold.
///
/// ```
/// use std::sync::Arc;
/// use flare_backend_memory::{MemoryBackend, MemoryConfig};
/// use flare_core::port::SystemClock;
///
/// let config = MemoryConfig::default().max_bytes(64 << 20);
/// let backend = MemoryBackend::with_config(config, Arc::new(SystemClock::new()));
/// ```
#[derive(Debug, Clone)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", deny_unknown_fields, default)
)]
#[non_exhaustive]
pub struct MemoryConfig {
    /// Bytes of documents and rows beyond which a put that needs more answers *busy*.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::size"))]
    pub max_bytes: u64,
    /// Bytes of content per document.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub max_content: usize,
    /// Messages per queue beyond which a send answers *busy*.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub max_messages: usize,
    /// Changes of keys that a watch can resume over.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub lease_history: usize,
}

impl MemoryConfig {
    /// The same with another limit on documents and rows.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// The same with another limit on a single document.
    #[must_use]
    pub fn max_content(mut self, bytes: usize) -> Self {
        self.max_content = bytes;
        self
    }

    /// The same with another limit on a single queue.
    #[must_use]
    pub fn max_messages(mut self, messages: usize) -> Self {
        self.max_messages = messages;
        self
    }

    /// The same with another length of history for watches.
    #[must_use]
    pub fn lease_history(mut self, changes: usize) -> Self {
        self.lease_history = changes;
        self
    }
}

impl Default for MemoryConfig {
    /// 4 GiB in all, 16 MiB per document, a million messages per queue, 10,000 changes of keys.
    fn default() -> Self {
        Self {
            max_bytes: 4 << 30,
            max_content: 16 << 20,
            max_messages: 1_000_000,
            lease_history: 10_000,
        }
    }
}
