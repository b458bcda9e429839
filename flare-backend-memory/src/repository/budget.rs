//! Takes what documents and rows weigh; says when the store is full.

use std::sync::atomic::{AtomicU64, Ordering};

use flare_core::{Error, ErrorKind, Result};

use crate::BACKEND;

/// What a document weighs at most beside its URL and content (measured by `benches`).
pub(crate) const DOCUMENT_BYTES: u64 = 290;
/// What a row weighs at most (measured by `benches`).
pub(crate) const ROW_BYTES: u64 = 185;

#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicU64,
    limit: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Self { used: AtomicU64::new(0), limit }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Trades `freed` bytes for `needed` ones, unless that goes beyond the limit.
    pub(crate) fn trade(&self, operation: &'static str, freed: u64, needed: u64) -> Result<()> {
        let fits = |used: u64| {
            let after = used.saturating_sub(freed).saturating_add(needed);
            // What shrinks the store is welcome even while it is too full.
            (after <= self.limit || needed <= freed).then_some(after)
        };
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(used) => {
                let detail = format!(
                    "{needed} bytes more do not fit: {used} of {} (max-bytes) are used",
                    self.limit
                );
                Err(Error::new(ErrorKind::Busy, operation)
                    .with_backend(BACKEND)
                    .with_detail(detail))
            }
        }
    }

    /// Counts bytes that cannot be refused: a backlog never pushes back on what makes it.
    pub(crate) fn take(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn free(&self, bytes: u64) {
        let give_back = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, give_back);
    }
}
