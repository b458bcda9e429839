//! A service that keeps documents in MongoDB and is woken by SQS: what many machines would share. A
//! queue is deleted behind its back, and nobody misses anything. Ends by itself.
//!
//! `FLARE_MONGODB_URI` says where MongoDB is (this machine unless set). SQS is found as by every AWS
//! SDK: region and credentials from environment, profile or instance, `AWS_ENDPOINT_URL_SQS` for a
//! server of your own. The first argument is the name of the database and the prefix of the queues
//! (`flare-example` unless given).

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use flare_backend_mongo::{MongoBackend, MongoConfig};
use flare_backend_sqs::{SqsConfig, SqsQueue};
use flare_core::Settings;
use flare_core::http::Guard;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::{Page, Queue};
use flare_core::{Backend, Flare};
use flare_examples::client::Client;
use serde_json::json;

const USERS: &str = "http://api.example.com/users/{id}";
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "flare-example".to_owned());
    let uri = std::env::var("FLARE_MONGODB_URI");
    let uri = uri.unwrap_or_else(|_| "mongodb://127.0.0.1:27017".to_owned());
    // In production `flare setup` creates collections and queues, after somebody has seen what it would
    // do. Here they are made when they are first used.
    let mongodb = MongoConfig::new(uri).database(&name).create_missing();
    let queue = Arc::new(SqsQueue::connect(SqsConfig::new().prefix(&name)).await?);
    let mut stores = Backend::from(MongoBackend::connect(mongodb).await?);
    stores.queue = Some(queue.clone());

    let mut settings = Settings::default();
    // A queue per slot: for a demonstration few are enough, and SQS has 64 unless told otherwise.
    settings.slots = Some(8);
    let guard = Guard::default().allow("127.0.0.0/8")?;
    let (flare, runtime) = Flare::builder(stores).settings(settings).guard(guard).build()?;
    let running = runtime.spawn();
    println!("the node runs: documents in database {name}, queues {name}-*");

    let mut client = Client::start().await?;
    tidy(&flare).await?;
    let users = flare.create_resource(NewResource::new(USERS).change_field("revision")).await?;
    let hook = SubscriptionSpec::post(format!("{}/users/{{id}}", client.url));
    let subscription = flare.create_subscription(users.id, hook).await?;
    put(&flare, "ada", "Ada", 1).await?;
    settle(&flare, &mut client).await?;

    let wakes = flare.subscription_status(subscription.id).await?.queue;
    queue.delete(&wakes.parse()?).await?;
    println!("\nsomebody deletes queue {name}-{wakes}, which would wake the client's lane");
    put(&flare, "ada", "Ada King", 2).await?;
    put(&flare, "bob", "Bob", 1).await?;
    settle(&flare, &mut client).await?;

    flare.delete_subscription(subscription.id).await?;
    flare.delete_resource(users.id).await?;
    running.drain(LIMIT).await?;
    println!("\nThe client has the newest version of every document.");
    println!("It took {} requests to SQS.", queue.requests().total());
    Ok(())
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

async fn put(flare: &Flare, id: &str, name: &str, rev: u64) -> Result<(), flare_core::Error> {
    let url = USERS.replace("{id}", id);
    let change = flare.put_document(&url, &json!({ "name": name, "revision": rev })).await?;
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
