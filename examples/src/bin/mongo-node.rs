//! A service that keeps everything in MongoDB: documents, queues and the agreement on who works. What
//! it accepted outlives it, and the next node goes on where it was. Ends by itself.
//!
//! `FLARE_MONGODB_URI` says where MongoDB is (this machine unless set), the first argument which
//! database to use (`flare-example` unless given).

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::time::Duration;

use flare_backend_mongo::{MongoBackend, MongoConfig};
use flare_core::Settings;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::Page;
use flare_core::{Flare, RuntimeHandle};
use flare_examples::client::Client;
use serde_json::json;

const USERS: &str = "http://api.example.com/users/{id}";
const ADA: &str = "http://api.example.com/users/ada";
const BOB: &str = "http://api.example.com/users/bob";
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let uri = std::env::var("FLARE_MONGODB_URI");
    let uri = uri.unwrap_or_else(|_| "mongodb://127.0.0.1:27017".to_owned());
    let database = std::env::args().nth(1).unwrap_or_else(|| "flare-example".to_owned());
    // Collections and indexes are created where there are none. In production `flare setup` does that,
    // after somebody has seen what it would do.
    let config = MongoConfig::new(uri).database(&database).create_missing();
    let mut client = Client::start().await?;

    let node = Node::start(config.clone()).await?;
    println!("node 1 runs on database {database}");
    tidy(&node.flare).await?;
    let users =
        node.flare.create_resource(NewResource::new(USERS).change_field("revision")).await?;
    let hook = SubscriptionSpec::post(format!("{}/users/{{id}}", client.url));
    let subscription = node.flare.create_subscription(users.id, hook).await?;
    put(&node.flare, ADA, "Ada", 1).await?;
    put(&node.flare, BOB, "Bob", 1).await?;
    settle(&node.flare, &mut client).await?;
    node.drain().await?;
    println!("node 1 is drained: nobody works\n");

    // Whoever is connected may hand over changes; they are safe as soon as it is answered.
    let backend = MongoBackend::connect(config.clone()).await?;
    let (origin, _) = Flare::builder(backend).settings(settings()).build()?;
    put(&origin, ADA, "Ada King", 2).await?;
    put(&origin, ADA, "Ada, Countess of Lovelace", 3).await?;
    put(&origin, BOB, "Bob", 1).await?;

    // Another process on another machine would do the same.
    let node = Node::start(config).await?;
    println!("node 2 runs, and goes on where node 1 was:");
    settle(&node.flare, &mut client).await?;

    node.flare.delete_subscription(subscription.id).await?;
    node.flare.delete_resource(users.id).await?;
    node.drain().await?;
    println!("node 2 is drained\n\nThe client has the newest version of every document.");
    Ok(())
}

/// The same for all on one database. There is a queue per slot, so that few of them start faster; the
/// default is for many nodes that share the work.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.slots = Some(16);
    settings
}

/// A running Flare with connections of its own.
struct Node {
    flare: Flare,
    running: RuntimeHandle,
}

impl Node {
    async fn start(config: MongoConfig) -> Result<Self, Box<dyn Error>> {
        let (flare, runtime) = Flare::builder(MongoBackend::connect(config).await?)
            .settings(settings())
            .allow("127.0.0.0/8")
            .build()?;
        let running = runtime.spawn();
        Ok(Self { flare, running })
    }

    /// Finishes what is in flight and gives its leases back, so that the next one can work at once.
    async fn drain(self) -> Result<(), Box<dyn Error>> {
        self.running.drain(LIMIT).await?;
        Ok(())
    }
}

/// Removes what an earlier run left behind that was interrupted: its client is gone.
async fn tidy(flare: &Flare) -> Result<(), flare_core::Error> {
    let resources = flare.resources(Page::new(1_000, 0)).await?.items;
    for resource in resources.iter().filter(|resource| resource.endpoint.to_string() == USERS) {
        for subscription in flare.subscriptions(resource.id, Page::new(1_000, 0)).await?.items {
            flare.delete_subscription(subscription.id).await?;
        }
        flare.delete_resource(resource.id).await?;
        println!("what an interrupted run had left is removed");
    }
    Ok(())
}

async fn put(flare: &Flare, url: &str, name: &str, rev: u64) -> Result<(), flare_core::Error> {
    let change = flare.put_document(url, &json!({ "name": name, "revision": rev })).await?;
    println!("put     {url} at {rev}: {}", change.as_str());
    Ok(())
}

/// Waits until every client has everything; prints what ours was told.
async fn settle(flare: &Flare, client: &mut Client) -> Result<(), flare_core::Error> {
    flare.settled(LIMIT).await?;
    let mut heard = client.heard();
    // Different documents are told side by side.
    heard.sort();
    heard.iter().for_each(|sentence| println!("    -> {sentence}"));
    Ok(())
}
