//! What a connection has been given: messages that wait to be handed out, and the tags of those that were. Decides
//! what to tell the broker of a batch; tells it nothing itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flare_core::model::Timestamp;
use flare_core::port::{Receipt, SourceMessage, SourceSettlement};
use flare_core::{Error, Result};
use lapin::message::Delivery;
use lapin::types::AMQPValue;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

/// The header in which brokers that are told to put the time at which they got a message.
const RECEIVED_AT: &str = "timestamp_in_ms";

/// What came over one connection.
#[derive(Debug)]
pub(crate) struct Deliveries {
    /// The connection's number: part of each receipt.
    pub(crate) number: u64,
    state: Mutex<DeliveryState>,
    /// Told when a message came, or the connection ended.
    pub(crate) changed: Notify,
}

#[derive(Debug, Default)]
struct DeliveryState {
    /// At most as many as the prefetch says, with those that are held.
    waiting: VecDeque<Delivery>,
    held: BTreeSet<u64>,
    ended: Option<Error>,
}

/// What the broker is told of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// This one and all before it are done.
    DoneUpTo(u64),
    Done(u64),
    Refused(u64),
    Requeued(u64),
}

impl Deliveries {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, state: Mutex::default(), changed: Notify::new() }
    }

    pub(crate) fn add(&self, delivery: Delivery) {
        self.state().waiting.push_back(delivery);
        self.changed.notify_waiters();
    }

    /// The connection is no more: nothing that came over it is ours any longer.
    pub(crate) fn end(&self, why: Error) {
        let mut state = self.state();
        state.waiting.clear();
        state.held.clear();
        state.ended.get_or_insert(why);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Why it ended, if it did.
    pub(crate) fn ended(&self) -> Option<Error> {
        self.state().ended.clone()
    }

    /// Hands out what waits; fails if the connection ended.
    pub(crate) fn hand_out(&self, max: usize) -> Result<Vec<SourceMessage>> {
        let mut state = self.state();
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        let count = max.min(state.waiting.len());
        let taken: Vec<_> = state.waiting.drain(..count).collect();
        state.held.extend(taken.iter().map(|delivery| delivery.delivery_tag));
        Ok(taken.into_iter().map(|delivery| message(self.number, delivery)).collect())
    }

    /// The tag of a message that was handed out and is not settled.
    pub(crate) fn held(&self, receipt: &Receipt) -> Option<u64> {
        let tag = self.tag(receipt)?;
        self.state().held.contains(&tag).then_some(tag)
    }

    fn tag(&self, receipt: &Receipt) -> Option<u64> {
        let (number, tag) = receipt.token().split_once(':')?;
        (number.parse() == Ok(self.number)).then(|| tag.parse().ok())?
    }

    /// How many messages came and are not settled.
    pub(crate) fn open(&self) -> usize {
        let state = self.state();
        state.waiting.len() + state.held.len()
    }

    /// Takes what became of messages; gives what to tell the broker, and which of the receipts were good. From
    /// here on none of them is held.
    pub(crate) fn settle(
        &self,
        settlements: &[(Receipt, SourceSettlement)],
    ) -> (Vec<Verdict>, Vec<bool>) {
        let mut state = self.state();
        let mut settled = BTreeMap::new();
        let take = |(receipt, to): &(Receipt, SourceSettlement)| match self.tag(receipt) {
            // Of two that say something of one message, the first counts.
            Some(tag) if state.held.contains(&tag) && !settled.contains_key(&tag) => {
                settled.insert(tag, *to);
                true
            }
            _ => false,
        };
        let good = settlements.iter().map(take).collect();
        (verdicts(&mut state.held, settled), good)
    }

    fn state(&self) -> MutexGuard<'_, DeliveryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As few words as tell the broker what became of some of the messages that are held, which are its oldest: those
/// that wait came later.
fn verdicts(held: &mut BTreeSet<u64>, settled: BTreeMap<u64, SourceSettlement>) -> Vec<Verdict> {
    let done = |tag: &&u64| settled.get(tag) == Some(&SourceSettlement::Done);
    let up_to = held.iter().take_while(done).last().copied();
    held.retain(|tag| !settled.contains_key(tag));
    let rest = settled.into_iter().filter(|(tag, _)| up_to.is_none_or(|last| *tag > last));
    let rest = rest.map(|(tag, to)| match to {
        SourceSettlement::Done => Verdict::Done(tag),
        SourceSettlement::Leave => Verdict::Refused(tag),
        SourceSettlement::Return => Verdict::Requeued(tag),
    });
    up_to.map(Verdict::DoneUpTo).into_iter().chain(rest).collect()
}

fn message(connection: u64, delivery: Delivery) -> SourceMessage {
    let receipt = Receipt::new(format!("{connection}:{}", delivery.delivery_tag));
    let (id, sent_at) = (id(&delivery), received_at(&delivery));
    let message = SourceMessage::new(id, delivery.data, receipt);
    match sent_at {
        Some(at) => message.sent_at(at),
        None => message,
    }
}

/// What its publisher calls it; else a name made of what it says, as the broker has none for it. Headers are no
/// part of that: brokers count in them how often a message was given out.
fn id(delivery: &Delivery) -> String {
    if let Some(id) = delivery.properties.message_id().as_ref().filter(|id| !id.as_str().is_empty())
    {
        return id.to_string();
    }
    let mut hash = Sha256::new();
    for part in [delivery.exchange.as_str().as_bytes(), delivery.routing_key.as_str().as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.update(delivery.properties.timestamp().unwrap_or_default().to_be_bytes());
    hash.update(&delivery.data);
    let hex = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256:{hex}")
}

/// When the broker got it, where it is set up to say so.
fn received_at(delivery: &Delivery) -> Option<Timestamp> {
    let headers = delivery.properties.headers().as_ref()?;
    match headers.inner().get(RECEIVED_AT)? {
        AMQPValue::LongLongInt(milliseconds) => Some(Timestamp::from_unix_millis(*milliseconds)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(tag: u64, body: &str) -> Delivery {
        Delivery::mock(tag, "".into(), "orders".into(), false, body.into())
    }

    fn receipt(number: u64, tag: u64) -> Receipt {
        Receipt::new(format!("{number}:{tag}"))
    }

    /// Tags 1 to 5 are held, 6 waits.
    fn some() -> Deliveries {
        let deliveries = Deliveries::new(7);
        (1..=6).for_each(|tag| deliveries.add(delivery(tag, "x")));
        assert_eq!(deliveries.hand_out(5).unwrap().len(), 5);
        deliveries
    }

    #[test]
    fn what_is_done_in_order_is_one_word() {
        use SourceSettlement::{Done, Leave, Return};
        use Verdict::{DoneUpTo, Refused, Requeued};
        type Case = (&'static [(u64, SourceSettlement)], &'static [Verdict]);
        let cases: [Case; 6] = [
            (&[(1, Done), (2, Done), (3, Done)], &[DoneUpTo(3)]),
            (&[(3, Done), (1, Done), (2, Done)], &[DoneUpTo(3)]),
            (&[(2, Done), (3, Done)], &[Verdict::Done(2), Verdict::Done(3)]),
            (&[(1, Done), (2, Return), (3, Done)], &[DoneUpTo(1), Requeued(2), Verdict::Done(3)]),
            (&[(1, Leave), (2, Done)], &[Refused(1), Verdict::Done(2)]),
            (&[(1, Done), (2, Done), (3, Done), (4, Done), (5, Done)], &[DoneUpTo(5)]),
        ];
        for (settled, expected) in cases {
            let deliveries = some();
            let settlements: Vec<_> =
                settled.iter().map(|(tag, to)| (receipt(7, *tag), *to)).collect();
            let (verdicts, good) = deliveries.settle(&settlements);
            assert_eq!(verdicts, expected);
            assert!(good.into_iter().all(|good| good));
            assert_eq!(deliveries.open(), 6 - settled.len());
        }
    }

    #[test]
    fn a_receipt_is_good_once_and_on_its_connection_only() {
        let deliveries = some();
        let done = SourceSettlement::Done;
        let settle = |receipts: Vec<Receipt>| {
            let settlements: Vec<_> = receipts.into_iter().map(|receipt| (receipt, done)).collect();
            deliveries.settle(&settlements)
        };
        let (verdicts, good) = settle(vec![
            receipt(8, 1),
            Receipt::new("7"),
            Receipt::new("7:x"),
            receipt(7, 6),
            receipt(7, 3),
            receipt(7, 3),
        ]);
        assert_eq!(
            (verdicts, good),
            (vec![Verdict::Done(3)], vec![false, false, false, false, true, false])
        );
        assert_eq!(settle(vec![receipt(7, 3)]).1, [false]);
        assert_eq!(
            (deliveries.held(&receipt(7, 4)), deliveries.held(&receipt(7, 3))),
            (Some(4), None)
        );
        deliveries.end(crate::error::ended("x"));
        assert_eq!((deliveries.held(&receipt(7, 4)), deliveries.open()), (None, 0));
        assert!(deliveries.hand_out(1).unwrap_err().is_temporary());
    }

    #[test]
    fn a_message_is_known_by_its_publisher_s_name_or_by_what_it_says() {
        let mut named = delivery(1, "x");
        named.properties = named.properties.with_message_id("order-7".into());
        assert_eq!(id(&named), "order-7");
        assert_eq!(id(&delivery(1, "x")), id(&delivery(2, "x")));
        assert_ne!(id(&delivery(1, "x")), id(&delivery(1, "y")));
        let mut stamped = delivery(1, "x");
        stamped.properties = stamped.properties.with_timestamp(3);
        assert_ne!(id(&stamped), id(&delivery(1, "x")));
    }

    #[test]
    fn the_broker_s_own_time_is_taken_and_no_other() {
        let mut told = delivery(1, "x");
        assert_eq!(received_at(&told), None);
        let mut headers = lapin::types::FieldTable::default();
        headers.insert(RECEIVED_AT.into(), AMQPValue::LongLongInt(1_700_000_000_250));
        told.properties = told.properties.with_headers(headers);
        let expected = Timestamp::from_unix_millis(1_700_000_000_250);
        assert_eq!(received_at(&told), Some(expected));
    }
}
