//! Takes a broker under trial; gives what its clauses need again and again.

use std::sync::Arc;
use std::time::Duration;

use flare_core::ErrorKind;
use flare_core::port::{Outgoing, Receipt, Source, SourceMessage, SourceSettlement};

use super::TrialBroker;
use crate::Subject;

/// Ticks after which something that must come is given up: services are slow, never that slow.
pub(super) const PATIENCE: u32 = 20;

/// Ticks within which something comes that does not wait for a message to be free again.
pub(super) const SOON: u32 = 4;

/// What the clauses ask of a subject beyond the broker's own calls.
impl Subject<dyn TrialBroker> {
    /// A source from the oldest message on.
    pub(super) async fn opened(&self) -> Arc<dyn Source> {
        let source = self.open(Vec::new()).await.expect("a source can be opened");
        if let Some(time) = source.facts().kept_for {
            assert!(
                time >= self.ticks(6),
                "a fixture's sources hold messages for 6 ticks at least"
            );
        }
        source
    }

    /// Another source on the same, that goes on where this one is.
    pub(super) async fn after(&self, source: &Arc<dyn Source>) -> Arc<dyn Source> {
        self.open(source.checkpoints()).await.expect("a source can be opened")
    }

    /// Publishes numbers, all in one group.
    pub(super) async fn put(&self, numbers: std::ops::Range<u32>) {
        let message = |number: u32| Outgoing::new(number.to_string()).group("group");
        self.publish(numbers.map(message).collect()).await;
    }

    /// How many ticks a message is held without being kept.
    pub(super) fn held(&self, source: &Arc<dyn Source>) -> u32 {
        let Some(time) = source.facts().kept_for else { return 0 };
        let ticks = time.as_millis().div_ceil(self.ticks(1).as_millis());
        u32::try_from(ticks).expect("messages are held for a moment")
    }

    /// What can be had without waiting.
    pub(super) async fn poll(&self, source: &Arc<dyn Source>, max: usize) -> Vec<SourceMessage> {
        let received = self.within(PATIENCE, source.receive(max, Duration::ZERO)).await;
        received.expect("a receive ends").expect("a source can be read")
    }

    /// The next message, which comes within so many ticks.
    pub(super) async fn next(&self, source: &Arc<dyn Source>, ticks: u32) -> SourceMessage {
        self.collect(source, 1, ticks).await.remove(0)
    }

    /// So many messages, of which none is waited for longer than so many ticks.
    pub(super) async fn collect(
        &self,
        source: &Arc<dyn Source>,
        count: usize,
        ticks: u32,
    ) -> Vec<SourceMessage> {
        let mut messages = Vec::with_capacity(count);
        let mut idle = 0;
        while messages.len() < count {
            let more = self.poll(source, count - messages.len()).await;
            if more.is_empty() {
                assert!(idle < ticks, "only {} of {count} messages came", messages.len());
                idle += 1;
                self.pass_ticks(1).await;
            } else {
                idle = 0;
                messages.extend(more);
            }
        }
        messages
    }

    /// Nothing comes for so many ticks.
    pub(super) async fn nothing_for(&self, source: &Arc<dyn Source>, ticks: u32) {
        for tick in 0..=ticks {
            if tick > 0 {
                self.pass_ticks(1).await;
            }
            let messages = self.poll(source, 1).await;
            assert!(messages.is_empty(), "received {messages:?} after {tick} ticks");
        }
    }
}

/// Settles messages whose receipts are good.
pub(super) async fn settle(
    source: &Arc<dyn Source>,
    messages: Vec<SourceMessage>,
    to: SourceSettlement,
) {
    let settlements = messages.into_iter().map(|message| (message.receipt, to)).collect();
    for result in source.settle(settlements).await {
        result.expect("a good receipt can be settled");
    }
}

/// Settles a receipt that is not good any more, and comes back.
pub(super) async fn refused(source: &Arc<dyn Source>, receipt: Receipt, to: SourceSettlement) {
    let token = receipt.token().to_owned();
    let kept = source.keep(vec![&receipt]).await.remove(0);
    assert_eq!(kept.expect_err("it is nobody's to keep").kind(), ErrorKind::Lost);
    let mut results = source.settle(vec![(receipt, to)]).await;
    assert_eq!(results.len(), 1, "one result per receipt");
    let unsettled = results.remove(0).expect_err("a lost receipt settles nothing");
    assert_eq!(unsettled.error.kind(), ErrorKind::Lost, "{}", unsettled.error);
    assert_eq!(unsettled.receipt.token(), token, "the receipt comes back");
}

/// What messages say, as numbers.
pub(super) fn said(messages: &[SourceMessage]) -> Vec<u32> {
    let said = |message: &SourceMessage| {
        std::str::from_utf8(&message.body).expect("text").parse().expect("a number")
    };
    messages.iter().map(said).collect()
}

/// The same, sorted: most brokers promise no order.
pub(super) fn sorted(messages: &[SourceMessage]) -> Vec<u32> {
    let mut numbers = said(messages);
    numbers.sort_unstable();
    numbers
}
