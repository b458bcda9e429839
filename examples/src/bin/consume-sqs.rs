//! A shop that sends its orders to a queue on SQS and never calls Flare: the queue is a source, and whatever is in it
//! becomes documents that clients are told of. Ends by itself, and removes its queue.
//!
//! SQS is found as by every AWS SDK: region and credentials from environment, profile or instance,
//! `AWS_ENDPOINT_URL_SQS` for a server of your own. The first argument is the name of the queue (`flare-orders` unless
//! given).

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_sdk_sqs::Client as Sqs;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use flare_backend_memory::MemoryBackend;
use flare_backend_sqs::{SqsConfig, SqsConnector};
use flare_core::model::consumer::{DeleteInput, MappingInput};
use flare_core::model::{ConsumerId, NewConsumer, SourceSettings};
use flare_core::port::{Clock, SystemClock};
use flare_core::prelude::*;
use flare_examples::client::Client;
use serde_json::json;

const ORDERS: &str = "http://shop.example/orders/{id}";
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "flare-orders".to_owned());
    let shop = Shop::open(&name).await?;
    let mut client = Client::start().await?;

    // In memory for a demonstration. A message is settled once its document is stored, so a service that must not
    // lose what it took from the queue has stores that outlive it.
    let (flare, runtime) = Flare::builder(MemoryBackend::new())
        .source(Arc::new(SqsConnector::new(SqsConfig::new())))
        .allow("127.0.0.0/8")
        .build()?;
    let running = runtime.spawn();
    let orders = flare.create_resource(NewResource::new(ORDERS).change_field("version")).await?;
    let hook = SubscriptionSpec::post(format!("{}/users/{{id}}", client.url));
    flare.create_subscription(orders.id, hook).await?;

    // Which queue, and how a message becomes a document: where in it the document is, what its URL is made of, and
    // which messages say that one is gone.
    let queue = SourceSettings::new("sqs", json!({ "queue": name }))?;
    let mut document = MappingInput::default();
    document.url = "http://shop.example/orders/{/order/id}".to_owned();
    document.content = Some("/order".to_owned());
    let (pointer, equals) = ("/event".to_owned(), json!("cancelled"));
    document.delete = Some(DeleteInput::Equals { pointer, equals });
    document.revision = Some("/order/version".to_owned());
    let consumer = flare.create_consumer(orders.id, NewConsumer::new(queue, document)).await?;
    println!("orders are pulled from queue {name}\n");

    let order =
        |id: u32, name: &str, version: u32| json!({ "id": id, "name": name, "version": version });
    for (sent, message) in [
        json!({ "event": "placed", "order": order(1, "tea", 1) }),
        json!({ "event": "changed", "order": order(1, "green tea", 2) }),
        // SQS may deliver a message twice; an equal version tells nothing new.
        json!({ "event": "changed", "order": order(1, "green tea", 2) }),
        json!({ "event": "placed", "order": { "name": "an order without an id" } }),
        json!({ "event": "cancelled", "order": order(1, "green tea", 3) }),
    ]
    .iter()
    .enumerate()
    {
        println!("sent    {message}");
        shop.send(&message.to_string()).await?;
        received(&flare, consumer.id, sent as u64 + 1).await?;
        flare.settled(LIMIT).await?;
        client.heard().iter().for_each(|sentence| println!("    -> {sentence}"));
    }

    for reject in flare.rejects(consumer.id, Page::new(10, 0)).await?.items {
        println!("\nkept as a reject ({}): {}", reject.reason.as_str(), reject.excerpt);
    }
    let state = flare.consumer_status(consumer.id).await?.state;
    let (accepted, unchanged, rejected) = (state.accepted, state.unchanged, state.rejected);
    println!("{accepted} accepted, {unchanged} unchanged, {rejected} rejected");
    running.drain(LIMIT).await?;
    shop.close().await?;
    println!("\nThe client has heard of everything that was in the queue.");
    Ok(())
}

/// Waits until so many messages were received and what became of them is counted, which takes a second at most.
async fn received(flare: &Flare, consumer: ConsumerId, messages: u64) -> Result<()> {
    let clock = SystemClock::new();
    let until = clock.monotonic() + LIMIT;
    loop {
        let state = flare.consumer_status(consumer).await?.state;
        if state.accepted + state.unchanged + state.rejected >= messages {
            return Ok(());
        }
        if clock.monotonic() > until {
            let why = state.last_error.unwrap_or_else(|| "nothing came".to_owned());
            return Err(flare_core::Error::new(ErrorKind::Timeout, "receive").with_detail(why));
        }
        clock.sleep(Duration::from_millis(50)).await;
    }
}

/// The other service: it knows its queue, and nothing of Flare.
struct Shop {
    sqs: Sqs,
    queue: String,
}

impl Shop {
    async fn open(name: &str) -> std::result::Result<Self, Box<dyn Error>> {
        let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let aws = aws_config::defaults(BehaviorVersion::latest()).http_client(http).load().await;
        let sqs = Sqs::new(&aws);
        let made = sqs.create_queue().queue_name(name).send().await?;
        let queue = made.queue_url.ok_or("SQS does not say where the queue is")?;
        Ok(Self { sqs, queue })
    }

    async fn send(&self, message: &str) -> std::result::Result<(), Box<dyn Error>> {
        self.sqs.send_message().queue_url(&self.queue).message_body(message).send().await?;
        Ok(())
    }

    async fn close(self) -> std::result::Result<(), Box<dyn Error>> {
        self.sqs.delete_queue().queue_url(&self.queue).send().await?;
        Ok(())
    }
}
