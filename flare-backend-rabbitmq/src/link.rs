//! One connection of a source to its broker: made, consumed from and ended, never repaired. What comes over it is
//! kept in [`Deliveries`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use flare_core::port::{Clock, Receipt, SourceMessage, SourceSettlement, SystemClock};
use flare_core::{Error, Result};
use futures::StreamExt;
use futures::future::{Either, select, try_join_all};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::uri::AMQPUri;
use lapin::{Channel, Connection, ConnectionProperties, Consumer};
use tokio::task::JoinHandle;

use crate::deliveries::{Deliveries, Verdict};
use crate::error;
use crate::transport::{self, Trust};

/// AMQP's code for an end that is no failure.
const REPLY_SUCCESS: u16 = 200;

/// How to make connections that consume from one queue.
pub(crate) struct Dialer {
    pub(crate) uri: AMQPUri,
    pub(crate) trust: Option<Trust>,
    pub(crate) queue: String,
    pub(crate) prefetch: u16,
    /// What operators see among the broker's connections.
    pub(crate) name: String,
    pub(crate) timeout: Duration,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URI holds a password.
        f.debug_struct("Dialer")
            .field("name", &self.name)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// Connects, as the connection of this number, and begins to consume.
    pub(crate) async fn dial(&self, operation: &'static str, number: u64) -> Result<Link> {
        within(self.timeout, operation, async {
            let failed = |error| error::from_client(operation, &error);
            let trust = self.trust.clone();
            let connect = async move |uri: AMQPUri, _: transport::BrokerRuntime| {
                transport::connect(&uri, trust.as_ref()).await.map_err(lapin::Error::from)
            };
            // Never the client's own recovery: it goes on with channels whose tags mean nothing any more.
            let properties =
                ConnectionProperties::default().with_connection_name(self.name.as_str().into());
            let (uri, runtime) = (self.uri.clone(), transport::runtime());
            let connection = Connection::connector(uri, runtime, connect, properties);
            let connection = connection.await.map_err(failed)?;
            let channel = connection.create_channel().await.map_err(failed)?;
            let qos = BasicQosOptions::default();
            channel.basic_qos(self.prefetch, qos).await.map_err(failed)?;
            let (queue, tag) = (self.queue.as_str().into(), format!("{}-{number}", self.name));
            let options = BasicConsumeOptions::default();
            let consumer = channel.basic_consume(queue, tag.into(), options, FieldTable::default());
            let consumer = consumer.await.map_err(failed)?;
            let deliveries = Arc::new(Deliveries::new(number));
            let pump = tokio::spawn(pump(consumer, Arc::clone(&deliveries)));
            let (queue, prefetch, timeout) = (self.queue.clone(), self.prefetch, self.timeout);
            Ok(Link { connection, channel, deliveries, pump, queue, prefetch, timeout })
        })
        .await
    }
}

/// A connection that consumes from a queue.
#[derive(Debug)]
pub(crate) struct Link {
    connection: Connection,
    channel: Channel,
    deliveries: Arc<Deliveries>,
    pump: JoinHandle<()>,
    queue: String,
    prefetch: u16,
    timeout: Duration,
}

impl Link {
    /// Whether messages can come over it.
    pub(crate) fn is_alive(&self) -> bool {
        self.deliveries.ended().is_none() && self.connection.status().connected()
    }

    /// What there is, or comes before `until` is over.
    pub(crate) async fn receive(
        &self,
        max: usize,
        until: &mut (impl Future<Output = ()> + Unpin),
    ) -> Result<Vec<SourceMessage>> {
        loop {
            // Registered before looking, so that no change in between is missed.
            let mut changed = std::pin::pin!(self.deliveries.changed.notified());
            changed.as_mut().enable();
            let messages = self.deliveries.hand_out(max)?;
            if !messages.is_empty() {
                return Ok(messages);
            }
            if let Either::Right(_) = select(changed, &mut *until).await {
                return Ok(Vec::new());
            }
        }
    }

    /// Whether a message is held by this receipt.
    pub(crate) fn holds(&self, receipt: &Receipt) -> bool {
        self.deliveries.held(receipt).is_some()
    }

    /// Tells the broker what became of messages, and waits until it has heard; says which of the receipts were
    /// good. A failure ends the connection, and with it all that is held.
    pub(crate) async fn settle(
        &self,
        settlements: &[(Receipt, SourceSettlement)],
    ) -> Result<Vec<bool>> {
        let (verdicts, good) = self.deliveries.settle(settlements);
        if verdicts.is_empty() {
            return Ok(good);
        }
        let told = within(self.timeout, "settle", async {
            let failed = |error| error::from_client("settle", &error);
            try_join_all(verdicts.into_iter().map(|it| self.tell(it))).await.map_err(failed)?;
            // Verdicts are not answered. A question on the same channel is, once the broker has read them: this one
            // changes nothing.
            let heard = self.channel.basic_qos(self.prefetch, BasicQosOptions::default());
            heard.await.map_err(failed)
        });
        match told.await {
            Ok(()) => Ok(good),
            Err(error) => {
                self.deliveries.end(error::ended(&error));
                Err(error)
            }
        }
    }

    async fn tell(&self, verdict: Verdict) -> lapin::Result<()> {
        match verdict {
            Verdict::DoneUpTo(tag) => {
                self.channel.basic_ack(tag, BasicAckOptions { multiple: true }).await
            }
            Verdict::Done(tag) => self.channel.basic_ack(tag, BasicAckOptions::default()).await,
            Verdict::Refused(tag) => self.reject(tag, false).await,
            Verdict::Requeued(tag) => self.reject(tag, true).await,
        }
    }

    async fn reject(&self, tag: u64, requeue: bool) -> lapin::Result<()> {
        self.channel.basic_reject(tag, BasicRejectOptions { requeue }).await
    }

    /// How many messages are ready, or came and are not settled.
    pub(crate) async fn lag(&self) -> Result<u64> {
        within(self.timeout, "lag", async {
            let failed = |error| error::from_client("lag", &error);
            // A channel of its own: a question that is refused ends it.
            let channel = self.connection.create_channel().await.map_err(failed)?;
            let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
            let queue = self.queue.as_str().into();
            let queue = channel.queue_declare(queue, passive, FieldTable::default());
            let ready = queue.await.map_err(failed)?.message_count();
            Ok(u64::from(ready) + self.deliveries.open() as u64)
        })
        .await
    }

    /// Ends it, and waits until the broker has taken back what is not settled.
    pub(crate) async fn close(&self) {
        let closing = async {
            let closed = self.connection.close(REPLY_SUCCESS, "closed".into()).await;
            closed.map_err(|error| error::from_client("close", &error))
        };
        // One that is lost already has been closed by the broker, or will be by its heartbeat.
        let why = match within(self.timeout, "close", closing).await {
            Ok(()) => error::ended("it was closed"),
            Err(error) => error::ended(error),
        };
        self.deliveries.end(why);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The client closes a connection that nothing uses any more.
        self.pump.abort();
    }
}

/// Brings what comes to where it is looked for, until the connection ends or the broker ends the consumer, as it
/// does when its queue is deleted.
async fn pump(mut consumer: Consumer, deliveries: Arc<Deliveries>) {
    while let Some(came) = consumer.next().await {
        match came {
            Ok(delivery) => deliveries.add(delivery),
            Err(error) => return deliveries.end(error::ended(error)),
        }
    }
    deliveries.end(error::ended("the broker ended the consumer"));
}

/// The answer, unless it takes longer.
async fn within<T>(
    time: Duration,
    operation: &'static str,
    answer: impl Future<Output = Result<T>>,
) -> Result<T> {
    let clock = SystemClock::new();
    let late = std::pin::pin!(clock.sleep(time));
    match select(std::pin::pin!(answer), late).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => Err::<T, Error>(error::late(operation)),
    }
}
