//! Flare on somebody else's queue, with repository and leases in memory: ports can be mixed.
//! Ends by itself.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::Settings;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::{Queue, QueueName, SystemClock};
use flare_examples::client::Client;
use flare_examples::custom_queue::ListQueue;
use futures::TryStreamExt;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut client = Client::start().await?;

    // A queue per slot: few of them are enough for a queue that wakes all who wait.
    let mut settings = Settings::default();
    settings.slots = Some(4);
    let queue = Arc::new(ListQueue::new(Arc::new(SystemClock::new())));
    let (flare, runtime) = Flare::builder(MemoryBackend::new())
        .queue(Arc::clone(&queue) as Arc<dyn Queue>)
        .settings(settings)
        .allow("127.0.0.0/8")
        .build()?;
    let running = runtime.spawn();

    let users = NewResource::new("http://api.example.com/users/{id}").change_field("revision");
    let users = flare.create_resource(users).await?;
    let hook = SubscriptionSpec::post(format!("{}/users/{{id}}", client.url));
    flare.create_subscription(users.id, hook).await?;

    for (id, name) in [("ada", "Ada"), ("bob", "Bob"), ("eve", "Eve")] {
        let url = format!("http://api.example.com/users/{id}");
        let change = flare.put_document(&url, &json!({ "name": name, "revision": 1 })).await?;
        println!("put     {url}: {}", change.as_str());
        flare.settled(Duration::from_secs(5)).await?;
        client.heard().iter().for_each(|sentence| println!("    -> {sentence}"));
    }

    // A queue only wakes; documents and rows are the truth. One that vanishes is missed by nobody,
    // and is brought back when it is needed.
    queue.delete(&QueueName::Partition).await?;
    println!("\nthe queue of changes to spread is gone");
    let ada = "http://api.example.com/users/ada";
    let change = flare.put_document(ada, &json!({ "name": "Ada King", "revision": 2 })).await?;
    println!("put     {ada}: {}", change.as_str());
    flare.settled(Duration::from_secs(10)).await?;
    client.heard().iter().for_each(|sentence| println!("    -> {sentence}"));

    running.drain(Duration::from_secs(10)).await?;
    let mut queues: Vec<QueueName> = queue.list().try_collect().await?;
    queues.sort();
    let queues: Vec<String> = queues.iter().map(QueueName::to_string).collect();
    println!("\nqueues Flare made for itself: {}", queues.join(", "));
    Ok(())
}
