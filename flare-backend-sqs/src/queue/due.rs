//! Takes a message of a FIFO queue and what SQS knows of its times; says whether it is due, and how often
//! it was received since. FIFO queues know no delay of a message, so the delay travels in it, and what
//! comes too early is put off. All times are the server's.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aws_sdk_sqs::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_sqs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sqs::error::BoxError;
use aws_sdk_sqs::primitives::{DateTime, DateTimeFormat};
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as Name};

/// An answer says its time in whole seconds.
const BLUR: Duration = Duration::from_secs(1);

/// What SQS knows of a message's times, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    /// How often it was received, this time included.
    pub(super) receipts: u32,
    sent: Option<u64>,
    first_received: Option<u64>,
}

impl Times {
    /// A server that does not count is believed to give a message out for the first time.
    pub(super) fn of(message: &Message) -> Self {
        let attributes = message.attributes.as_ref();
        let figure = |name| number(attributes, &name);
        Self {
            receipts: figure(Name::ApproximateReceiveCount)
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(1)
                .max(1),
            sent: figure(Name::SentTimestamp),
            first_received: figure(Name::ApproximateFirstReceiveTimestamp),
        }
    }

    /// How much of a delay is left. The first receipt has a time of its own; of a later one, which can
    /// be early if whoever had the first one died before putting it off, the answer says when it was.
    pub(super) fn left_of(&self, delay: Duration, answered: Option<u64>) -> Option<Duration> {
        let received = if self.receipts == 1 { self.first_received } else { answered };
        let passed =
            received?.checked_sub(self.sent?).map_or(Duration::ZERO, Duration::from_millis);
        let left = delay.saturating_sub(passed);
        let least = if self.receipts == 1 { Duration::ZERO } else { BLUR };
        (left > least).then_some(left)
    }

    /// How often a message was received since it is due.
    pub(super) fn attempt(&self, delay: Duration) -> u32 {
        let first = Self { receipts: 1, ..*self };
        let was_early = first.left_of(delay, None).is_some();
        self.receipts.saturating_sub(u32::from(was_early)).max(1)
    }
}

fn number(attributes: Option<&HashMap<Name, String>>, name: &Name) -> Option<u64> {
    attributes?.get(name)?.parse().ok()
}

/// Notes when the server answered.
#[derive(Debug, Clone, Default)]
pub(super) struct AnswerTime(Arc<AtomicI64>);

impl AnswerTime {
    /// In milliseconds since 1970, if the server says so.
    pub(super) fn get(&self) -> Option<u64> {
        u64::try_from(self.0.load(Ordering::Relaxed)).ok().filter(|time| *time > 0)
    }
}

impl Intercept for AnswerTime {
    fn name(&self) -> &'static str {
        "flare-answer-time"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let date = date.and_then(|it| DateTime::from_str(it, DateTimeFormat::HttpDate).ok());
        let millis = date.and_then(|it| it.to_millis().ok()).unwrap_or_default();
        self.0.store(millis, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_secs(10);

    fn times(receipts: u32, first_received: u64) -> Times {
        Times { receipts, sent: Some(1_000_000), first_received: Some(first_received) }
    }

    #[test]
    fn the_first_receipt_is_early_until_the_delay_has_passed() {
        let left = |received| times(1, received).left_of(DELAY, None);
        assert_eq!(left(1_000_000), Some(DELAY));
        assert_eq!(left(1_009_999), Some(Duration::from_millis(1)));
        assert_eq!(left(1_010_000), None);
        assert_eq!(left(999_999), Some(DELAY), "servers whose clocks differ");
        assert_eq!(times(1, 1_000_000).left_of(Duration::ZERO, None), None);
    }

    #[test]
    fn a_later_receipt_is_early_by_the_time_of_the_answer() {
        let left = |answered| times(2, 1_000_500).left_of(DELAY, answered);
        assert_eq!(left(Some(1_004_000)), Some(Duration::from_secs(6)));
        assert_eq!(left(Some(1_009_000)), None, "answers are a second blurred");
        assert_eq!(left(Some(1_010_000)), None);
        assert_eq!(left(None), None, "too early is better than never");
    }

    #[test]
    fn an_early_receipt_is_no_attempt() {
        assert_eq!([1, 2, 3].map(|it| times(it, 1_000_500).attempt(DELAY)), [1, 1, 2]);
        assert_eq!([1, 2, 3].map(|it| times(it, 1_010_500).attempt(DELAY)), [1, 2, 3]);
        assert_eq!([1, 2, 3].map(|it| times(it, 1_000_500).attempt(Duration::ZERO)), [1, 2, 3]);
    }

    #[test]
    fn what_is_not_said_is_believed_to_be_the_first_time_and_due() {
        let unsaid = Times::of(&Message::builder().build());
        assert_eq!((unsaid.left_of(DELAY, None), unsaid.attempt(DELAY)), (None, 1));
    }
}
