//! Takes what the queue port asks; gives it as requests to SQS, in batches, on standard or FIFO queues.

mod due;
pub(crate) mod fifo;
mod receive;
mod send;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::types::QueueAttributeName;
use flare_core::port::{
    Clock, Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, SystemClock, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, TryStreamExt, stream};

use crate::client::Connection;
use crate::held::Held;
use crate::{SqsConfig, SqsRequests, codec, error};
use fifo::Ids;

/// Messages per request.
const MAX_BATCH: usize = 10;
/// The longest delay of a message.
const MAX_DELAY: Duration = Duration::from_secs(15 * 60);
/// The longest time a message is its receiver's alone.
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3600);
/// Queues per page of a list.
const PAGE: i32 = 1_000;
/// How many queues are asked for their tags at a time.
const AT_A_TIME: usize = 8;

/// The queues on SQS.
#[derive(Debug)]
pub struct SqsQueue {
    connection: Connection,
    clock: Arc<dyn Clock>,
    held: Held,
    ids: Ids,
}

impl SqsQueue {
    /// Connects to SQS.
    pub async fn connect(config: SqsConfig) -> Result<Self> {
        let connection = Connection::open(&config).await?;
        let clock = Arc::new(SystemClock::new());
        Ok(Self { connection, clock, held: Held::default(), ids: Ids::random() })
    }

    /// How many requests have left for SQS since it was connected.
    pub fn requests(&self) -> SqsRequests {
        self.connection.requests.read()
    }

    /// Brings a queue that was created with other settings in line with ours: how long messages are
    /// kept, how large they may be, after how many receipts they are dead letters.
    pub async fn align(&self, queue: &QueueName) -> Result<()> {
        const OPERATION: &str = "align";
        let url = self.connection.url(OPERATION, queue).await?;
        let attributes = self.connection.attributes(OPERATION, queue).await?;
        let request = self.connection.client.set_queue_attributes().queue_url(url);
        let set = request.set_attributes(Some(attributes)).send().await;
        let set = set.map_err(|error| error::from_sdk(OPERATION, &error));
        set.map(drop).map_err(|error| self.connection.noticed(queue, error))
    }
}

#[async_trait]
impl Queue for SqsQueue {
    fn facts(&self) -> QueueFacts {
        let (limit, fifo) = (self.connection.message_limit, self.connection.names.fifo());
        let limit = if fifo { limit - codec::DELAY_DIGITS } else { limit };
        let mut facts = QueueFacts::new(MAX_BATCH, MAX_DELAY, codec::max_payload(limit));
        (facts.ordered, facts.slots) = (fifo, self.connection.slots);
        facts
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        const OPERATION: &str = "create";
        // What is remembered may have been deleted by somebody else.
        self.connection.forget(queue);
        match self.connection.url(OPERATION, queue).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return found.map(drop),
        }
        match self.connection.make(OPERATION, queue).await {
            Err(conflict) if conflict.kind() == ErrorKind::Conflict => {
                match self.connection.url(OPERATION, queue).await {
                    Err(error) if error.kind() == ErrorKind::NotFound => Err(conflict),
                    // Somebody with other settings was faster.
                    found => found.map(drop),
                }
            }
            made => made,
        }
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        const OPERATION: &str = "delete";
        let work = async {
            let url = self.connection.url(OPERATION, queue).await?;
            let asked = self.connection.client.delete_queue().queue_url(url).send().await;
            asked.map_err(|error| error::from_sdk(OPERATION, &error))
        };
        let deleted = work.await;
        self.connection.forget(queue);
        match deleted {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn list(&self) -> Scan<'_, QueueName> {
        const OPERATION: &str = "list";
        let pages = stream::try_unfold(Some(None), async |at: Option<Option<String>>| {
            let Some(token) = at else { return Ok(None) };
            let (urls, next) = self.connection.page(OPERATION, PAGE, token).await?;
            Ok::<_, Error>(Some((stream::iter(urls.into_iter().map(Ok)), next.map(Some))))
        });
        let queues = pages
            .try_flatten()
            .map(async |url: Result<String>| self.connection.queue_at(OPERATION, &url?).await);
        let ours = queues.buffer_unordered(AT_A_TIME);
        ours.try_filter_map(|queue| std::future::ready(Ok(queue))).boxed()
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        const OPERATION: &str = "depth";
        let url = self.connection.url(OPERATION, queue).await?;
        let figures = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let request = self.connection.client.get_queue_attributes().queue_url(url);
        let asked = request.set_attribute_names(Some(figures.to_vec())).send().await;
        let asked = asked.map_err(|error| error::from_sdk(OPERATION, &error));
        let counted = asked.map_err(|error| self.connection.noticed(queue, error))?;
        let counted = counted.attributes.unwrap_or_default();
        let [ready, delayed, in_flight] = figures
            .map(|figure| counted.get(&figure).and_then(|it| it.parse().ok()).unwrap_or_default());
        let mut depth = QueueDepth::exact(ready, delayed, in_flight);
        depth.approximate = true;
        Ok(depth)
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        self.send_each(queue, messages).await
    }

    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>> {
        self.receive_some(queue, request).await
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        self.extend_each(queue, receipts, visibility).await
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        self.settle_each(queue, settlements).await
    }
}

/// Whole seconds, as SQS counts: never less than asked for.
pub(crate) fn seconds(time: Duration) -> i32 {
    let whole = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    i32::try_from(whole).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        let millis = [0, 1, 999, 1_000, 1_001].map(Duration::from_millis);
        assert_eq!(millis.map(seconds), [0, 1, 1, 1, 2]);
        assert_eq!(seconds(Duration::MAX), i32::MAX);
    }
}
