//! Takes what the source port asks; gives it as requests to one SQS queue, in batches of ten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName, QueueAttributeName};
use flare_core::model::{Checkpoint, Timestamp};
use flare_core::port::{
    Clock, Receipt, Source, SourceFacts, SourceLag, SourceMessage, SourceSettlement, SystemClock,
    Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use futures::future;

use crate::answered::{self, Answered};
use crate::held::Held;
use crate::queue::fifo::Ids;
use crate::queue::seconds;
use crate::{BACKEND, batches, error};

/// Messages per request.
const MAX_BATCH: usize = 10;
/// The longest wait of one request.
const LONGEST_POLL: Duration = Duration::from_secs(20);

/// A queue that documents come from.
#[derive(Debug)]
pub(super) struct SqsSource {
    client: Client,
    url: String,
    fifo: bool,
    /// Whether the queue has a rule for what is received too often.
    redrives: bool,
    visibility: Duration,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    held: Held,
    ids: Ids,
    closed: AtomicBool,
}

impl SqsSource {
    pub(super) fn new(
        client: Client,
        url: String,
        fifo: bool,
        redrives: bool,
        visibility: Duration,
        timeout: Duration,
    ) -> Self {
        let (clock, held, ids) = (Arc::new(SystemClock::new()), Held::default(), Ids::random());
        let closed = AtomicBool::new(false);
        Self { client, url, fifo, redrives, visibility, timeout, clock, held, ids, closed }
    }

    fn open(&self, operation: &'static str) -> Result<()> {
        match self.closed.load(Ordering::SeqCst) {
            true => Err(lost(operation).with_detail("the source is closed")),
            false => Ok(()),
        }
    }

    async fn poll(&self, max: usize, wait: Duration) -> Result<Vec<Message>> {
        let timeout = TimeoutConfig::builder().operation_timeout(self.timeout + wait).build();
        let mut poll = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(i32::try_from(max).unwrap_or(i32::MAX))
            .visibility_timeout(seconds(self.visibility))
            .wait_time_seconds(seconds(wait))
            .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
        if self.fifo {
            // The id makes a repetition of the request give the same messages, not those behind them.
            poll = poll.receive_request_attempt_id(self.ids.next());
        }
        let settings = aws_sdk_sqs::Config::builder().timeout_config(timeout);
        let polled = poll.customize().config_override(settings).send().await;
        let polled = polled.map_err(|error| error::from_sdk("receive", &error))?;
        Ok(polled.messages.unwrap_or_default())
    }

    fn take(&self, message: Message, now: Duration) -> SourceMessage {
        let attributes = message.attributes.unwrap_or_default();
        let sent = attributes.get(&MessageSystemAttributeName::SentTimestamp);
        let token = message.receipt_handle.unwrap_or_default();
        self.held.hold(&token, now, self.visibility);
        let taken = SourceMessage::new(
            message.message_id.unwrap_or_default(),
            message.body.unwrap_or_default(),
            Receipt::new(token),
        );
        match sent.and_then(|millis| millis.parse().ok()) {
            Some(millis) => taken.sent_at(Timestamp::from_unix_millis(millis)),
            None => taken,
        }
    }

    /// Deletes messages, each called by its place.
    async fn remove(&self, items: &[(usize, &Receipt)]) -> Result<Answered> {
        if items.is_empty() {
            return Ok(Answered::default());
        }
        batches::remove(&self.client, "settle", &self.url, items).await
    }

    /// Has messages seen again after a time, each called by its place.
    async fn change(
        &self,
        operation: &'static str,
        items: &[(usize, &Receipt)],
        after: Duration,
    ) -> Result<Answered> {
        if items.is_empty() {
            return Ok(Answered::default());
        }
        let items: Vec<_> =
            items.iter().map(|(place, receipt)| (*place, *receipt, after)).collect();
        batches::change(&self.client, operation, &self.url, &items).await
    }
}

#[async_trait]
impl Source for SqsSource {
    fn facts(&self) -> SourceFacts {
        let mut facts = SourceFacts::queue(MAX_BATCH);
        facts.ordered = self.fifo;
        // In a FIFO queue the rest of the group would wait for it for ever.
        facts.leaves = !self.fifo || self.redrives;
        facts.kept_for = Some(self.visibility);
        facts
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<SourceMessage>> {
        self.open("receive")?;
        let max = max.min(MAX_BATCH);
        if max == 0 {
            return Ok(Vec::new());
        }
        let mut left = wait;
        loop {
            // SQS counts in whole seconds: what is asked for is waited, and not more than a second over it.
            let poll = left.min(LONGEST_POLL);
            let messages = self.poll(max, poll).await?;
            let now = self.clock.monotonic();
            left = left.saturating_sub(poll);
            if !messages.is_empty() || left.is_zero() {
                return Ok(messages.into_iter().map(|message| self.take(message, now)).collect());
            }
        }
    }

    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
        const OPERATION: &str = "keep";
        let now = self.clock.monotonic();
        let good = receipts.iter().enumerate().filter(|(_, it)| self.held.is_good(it, now));
        let items: Vec<_> = good.map(|(place, receipt)| (place, *receipt)).collect();
        let mut answers = vec![Err(lost(OPERATION)); receipts.len()];
        let places: Vec<usize> = items.iter().map(|(place, _)| *place).collect();
        let changed = self.change(OPERATION, &items, self.visibility).await;
        answered::put(OPERATION, &mut answers, &places, changed);
        for (place, receipt) in items {
            match &answers[place] {
                // From before it was asked for: SQS may have counted from any time since.
                Ok(()) => self.held.hold(receipt.token(), now, self.visibility),
                Err(error) if error.kind() == ErrorKind::Lost => self.held.release(receipt),
                Err(_) => {}
            }
        }
        answers
    }

    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        const OPERATION: &str = "settle";
        let now = self.clock.monotonic();
        let mut answers = vec![Err(lost(OPERATION)); settlements.len()];
        let (mut done, mut back) = (Vec::new(), Vec::new());
        for (place, (receipt, to)) in settlements.iter().enumerate() {
            if !self.held.is_good(receipt, now) {
                continue;
            }
            match to {
                SourceSettlement::Done => done.push((place, receipt)),
                SourceSettlement::Return => back.push((place, receipt)),
                SourceSettlement::Leave if !self.facts().leaves => {
                    let detail =
                        "a FIFO queue without a dead-letter queue keeps what is left for ever";
                    let error = Error::new(ErrorKind::Unsupported, OPERATION).with_backend(BACKEND);
                    answers[place] = Err(error.with_detail(detail));
                }
                // Its group waits for it: the sooner it is received too often, the better.
                SourceSettlement::Leave if self.fifo => back.push((place, receipt)),
                // It is seen again when its time is over, until its queue's own rule takes it away.
                SourceSettlement::Leave => answers[place] = Ok(()),
            }
        }
        let (removed, returned) =
            future::join(self.remove(&done), self.change(OPERATION, &back, Duration::ZERO)).await;
        let places: Vec<usize> = done.iter().map(|(place, _)| *place).collect();
        answered::put(OPERATION, &mut answers, &places, removed);
        let places: Vec<usize> = back.iter().map(|(place, _)| *place).collect();
        answered::put(OPERATION, &mut answers, &places, returned);
        let give_back = |(answer, (receipt, _)): (Result<()>, (Receipt, _))| match answer {
            Ok(()) => {
                self.held.release(&receipt);
                Ok(())
            }
            Err(error) => Err(Unsettled::new(error, receipt)),
        };
        answers.into_iter().zip(settlements).map(give_back).collect()
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        Vec::new()
    }

    async fn lag(&self) -> Result<Option<SourceLag>> {
        self.open("lag")?;
        let figures = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let request = self.client.get_queue_attributes().queue_url(&self.url);
        let asked = request.set_attribute_names(Some(figures.to_vec())).send().await;
        let counted = asked.map_err(|error| error::from_sdk("lag", &error))?.attributes;
        let counted = counted.unwrap_or_default();
        let figure = |it| counted.get(it).and_then(|it| it.parse::<u64>().ok()).unwrap_or_default();
        Ok(Some(SourceLag::Messages(figures.iter().map(figure).sum())))
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let held = self.held.take_good(self.clock.monotonic());
        let batches = held.chunks(MAX_BATCH).map(|batch| {
            let items: Vec<_> = batch.iter().enumerate().collect();
            async move { self.change("close", &items, Duration::ZERO).await }
        });
        // What cannot be given back comes by itself when its time is over.
        future::join_all(batches).await;
    }
}

fn lost(operation: &'static str) -> Error {
    let detail = "the message may be another receiver's by now, or is gone";
    Error::new(ErrorKind::Lost, operation).with_backend(BACKEND).with_detail(detail)
}
