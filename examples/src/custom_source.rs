//! Takes entries into a journal of the host's own; gives them to Flare as a source, in order, from wherever it was.
//!
//! Written against the contract of [`Source`] alone, and tried by the testkit (`tests/custom_source.rs`). The
//! journal remembers everything and nothing of who read it: Flare keeps the place. A start for a source of your own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::model::{Checkpoint, Invalid, SourceSettings};
use flare_core::port::{
    Clock, Receipt, Source, SourceConnector, SourceFacts, SourceLag, SourceMessage, SourceOpening,
    SourceSettlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use tokio::sync::watch;

/// Entries in the order they were written in; `None` while the journal is shut. Clones are the same journal.
#[derive(Debug, Clone)]
pub struct Journal {
    clock: Arc<dyn Clock>,
    entries: watch::Sender<Option<Arc<Vec<Bytes>>>>,
}

impl Journal {
    /// A journal without an entry.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, entries: watch::Sender::new(Some(Arc::default())) }
    }

    /// Puts something else in place of all entries: more of them, or nothing to be read for now.
    pub fn change(&self, change: impl FnOnce(&mut Option<Arc<Vec<Bytes>>>)) {
        self.entries.send_modify(change);
    }
}

#[async_trait]
impl SourceConnector for Journal {
    fn kind(&self) -> &'static str {
        "journal"
    }

    fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
        settings.only(&["name"])?;
        settings.text("name").map(drop)
    }

    async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>> {
        if opening.settings.text("name")? != "orders" {
            return Err(Error::new(ErrorKind::NotFound, "open").with_backend("journal"));
        }
        let next = opening.position("orders").and_then(|at| at.parse().ok()).unwrap_or(0);
        let place = Place { next, ..Place::default() };
        Ok(Arc::new(JournalSource { journal: self.clone(), place: Mutex::new(place) }))
    }
}

/// Where one reader is: its next entry, and those before it that are not settled, with their receipts.
#[derive(Debug, Default)]
struct Place {
    next: usize,
    open: BTreeMap<usize, u64>,
    receipts: u64,
    closed: bool,
}

#[derive(Debug)]
struct JournalSource {
    journal: Journal,
    place: Mutex<Place>,
}

impl JournalSource {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self, operation: &'static str) -> Result<Arc<Vec<Bytes>>> {
        let shut = || Error::new(ErrorKind::Unavailable, operation).with_backend("journal");
        self.journal.entries.borrow().clone().ok_or_else(shut)
    }
}

#[async_trait]
impl Source for JournalSource {
    fn facts(&self) -> SourceFacts {
        SourceFacts::stream(100)
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<SourceMessage>> {
        let mut changes = self.journal.entries.subscribe();
        let over = self.journal.clock.sleep(wait);
        let next = self.place().next;
        let more = changes.wait_for(|it| it.as_ref().is_none_or(|all| all.len() > next));
        tokio::select! { biased; _ = more => {}, () = over => {} }
        let entries = self.entries("receive")?;
        let mut place = self.place();
        let mut received = Vec::new();
        for (at, entry) in entries.iter().enumerate().skip(place.next).take(max.min(100)) {
            place.receipts += 1;
            let receipt = place.receipts;
            place.open.insert(at, receipt);
            place.next = at + 1;
            let receipt = Receipt::new(format!("{at}:{receipt}"));
            received.push(SourceMessage::new(at.to_string(), entry.clone(), receipt));
        }
        Ok(received)
    }

    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
        let mut place = self.place();
        receipts.iter().map(|receipt| place.held("keep", receipt).map(drop)).collect()
    }

    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let mut place = self.place();
        let settle = |(receipt, to): (Receipt, SourceSettlement)| {
            let settled = place.held("settle", &receipt).and_then(|at| match to {
                SourceSettlement::Done => {
                    place.open.remove(&at);
                    Ok(())
                }
                SourceSettlement::Return => {
                    place.next = at;
                    place.open.split_off(&at);
                    Ok(())
                }
                SourceSettlement::Leave => Err(Error::new(ErrorKind::Unsupported, "settle")),
            });
            settled.map_err(|error| Unsettled::new(error, receipt))
        };
        settlements.into_iter().map(settle).collect()
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        let place = self.place();
        let done = place.open.keys().next().unwrap_or(&place.next);
        vec![Checkpoint::new("orders", done.to_string())]
    }

    async fn lag(&self) -> Result<Option<SourceLag>> {
        let entries = self.entries("lag")?.len();
        let place = self.place();
        Ok(Some(SourceLag::Messages((entries - place.next + place.open.len()) as u64)))
    }

    async fn close(&self) {
        self.place().closed = true;
    }
}

impl Place {
    /// The entry a receipt is good for.
    fn held(&mut self, operation: &'static str, receipt: &Receipt) -> Result<usize> {
        let (at, number) = receipt.token().split_once(':').unwrap_or_default();
        let (at, number) = (at.parse().ok(), number.parse().ok());
        let is_open = |at: &usize| !self.closed && self.open.get(at).copied() == number;
        at.filter(is_open).ok_or_else(|| Error::new(ErrorKind::Lost, operation))
    }
}
