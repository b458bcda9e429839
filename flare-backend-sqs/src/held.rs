//! Takes receipts and how long they are good; says whether they still are. SQS itself obeys receipts
//! of standard queues after their time, though somebody else has the message by then.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flare_core::port::Receipt;

/// Below this many receipts nothing is tidied up.
const FEW: usize = 1_024;

/// The receipts that are out, and until when (of the monotonic clock) each is good.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<Receipts>);

#[derive(Debug, Default)]
struct Receipts {
    until: HashMap<Box<str>, Duration>,
    /// Tidied up once there are this many: those whose owners went away are never settled.
    tidy_at: usize,
}

impl Held {
    /// Hands a receipt out, or makes one good for another time.
    pub(crate) fn hold(&self, token: &str, now: Duration, visibility: Duration) {
        let mut receipts = self.lock();
        if receipts.until.len() >= receipts.tidy_at.max(FEW) {
            receipts.until.retain(|_, until| *until > now);
            receipts.tidy_at = receipts.until.len() * 2;
        }
        receipts.until.insert(token.into(), now.saturating_add(visibility));
    }

    /// Whether a receipt is good.
    pub(crate) fn is_good(&self, receipt: &Receipt, now: Duration) -> bool {
        self.lock().until.get(receipt.token()).is_some_and(|until| *until > now)
    }

    /// A receipt that was settled is good for nothing.
    pub(crate) fn release(&self, receipt: &Receipt) {
        self.lock().until.remove(receipt.token());
    }

    /// Takes all receipts that are good: they are given back, and good for nothing from now on.
    pub(crate) fn take_good(&self, now: Duration) -> Vec<Receipt> {
        let receipts = std::mem::take(&mut self.lock().until);
        let good = receipts.into_iter().filter(|(_, until)| *until > now);
        good.map(|(token, _)| Receipt::new(token)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Receipts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_receipt_is_good_until_its_time_ends_or_it_is_settled() {
        let held = Held::default();
        let (one, two) = (Receipt::new("one"), Receipt::new("two"));
        held.hold("one", SECOND, SECOND * 2);
        assert!(held.is_good(&one, SECOND * 2));
        assert!(!held.is_good(&one, SECOND * 3));
        assert!(!held.is_good(&two, SECOND));
        held.hold("one", SECOND * 2, SECOND * 5);
        assert!(held.is_good(&one, SECOND * 6));
        held.release(&one);
        assert!(!held.is_good(&one, SECOND * 2));
    }

    #[test]
    fn what_is_given_back_is_good_for_nothing() {
        let held = Held::default();
        held.hold("late", SECOND, SECOND);
        held.hold("good", SECOND, SECOND * 5);
        assert_eq!(held.take_good(SECOND * 3), [Receipt::new("good")]);
        assert!(!held.is_good(&Receipt::new("good"), SECOND * 3));
    }

    #[test]
    fn receipts_nobody_settles_are_tidied_up() {
        let held = Held::default();
        for second in 0..100_000_u32 {
            held.hold(&second.to_string(), SECOND * second, SECOND * 10);
        }
        let left = held.lock().until.len();
        assert!(left <= FEW, "{left} receipts are kept");
    }
}
