//! Flare and a client in one program: a few documents change, the client is told. Ends by itself.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::prelude::*;
use flare_examples::client::Client;
use serde_json::json;

const ADA: &str = "http://api.example.com/users/ada";
const BOB: &str = "http://api.example.com/users/bob";
const LIMIT: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut client = Client::start().await?;

    // Loopback addresses are refused unless they are allowed: clients are usually elsewhere.
    let (flare, runtime) = Flare::builder(MemoryBackend::new()).allow("127.0.0.0/8").build()?;
    let running = runtime.spawn();

    // Which documents there are, and which field says which version of one is newer.
    let users =
        NewResource::new("http://api.example.com/users/{id}").change("updatedAt", "rfc3339");
    let users = flare.create_resource(users).await?;
    println!("resource      {}", users.endpoint);

    // Who wants to be told. A failed request is made again after a second.
    let hook = format!("{}/users/{{id}}", client.url);
    let second = Duration::from_secs(1);
    let retry = RetryPolicy::builder().num_retries(30);
    let retry = retry.min_delay_target(second).max_delay_target(second);
    let subscription = SubscriptionSpec::post(&hook).retry(retry.build()?);
    flare.create_subscription(users.id, subscription).await?;
    println!("subscription  POST {hook}");

    println!("\nA new version is told, the same or an older one is not:");
    for (url, name, at) in [
        (ADA, "Ada", "2024-05-01T10:00:00Z"),
        (BOB, "Bob", "2024-05-01T10:00:01Z"),
        (ADA, "Ada Lovelace", "2024-05-01T10:00:02Z"),
        (ADA, "Ada Lovelace", "2024-05-01T12:00:02+02:00"),
        (ADA, "Ada", "2024-05-01T10:00:00Z"),
    ] {
        put(&flare, url, name, at).await?;
        settle(&flare, &mut client).await?;
    }
    let change = flare.delete_document(BOB).await?;
    println!("delete  {BOB}: {}", change.as_str());
    settle(&flare, &mut client).await?;

    println!("\nA client that was down gets the newest version, once:");
    client.set_down(true);
    put(&flare, ADA, "Ada King", "2024-05-02T10:00:00Z").await?;
    if let Some(missed) = client.hear().await {
        println!("    -> {missed}");
    }
    put(&flare, ADA, "Countess Ada", "2024-05-02T10:00:01Z").await?;
    put(&flare, ADA, "Countess Ada King", "2024-05-02T10:00:02Z").await?;
    put(&flare, ADA, "Ada, Countess of Lovelace", "2024-05-02T10:00:03Z").await?;
    client.set_down(false);
    println!("        the client is back");
    settle(&flare, &mut client).await?;

    println!("\nWhat cannot work is refused, with the field and the reason:");
    if let Err(error) = flare.create_resource(NewResource::new("http://api.example.com/me")).await {
        println!("{error}");
    }
    if let Err(error) = flare.put_document(ADA, &json!({ "updatedAt": "yesterday" })).await {
        println!("{error}");
    }

    running.drain(LIMIT).await?;
    println!("\nEvery client has the newest version of every document.");
    Ok(())
}

async fn put(flare: &Flare, url: &str, name: &str, at: &str) -> Result<(), flare_core::Error> {
    let change = flare.put_document(url, &json!({ "name": name, "updatedAt": at })).await?;
    println!("put     {url} at {at}: {}", change.as_str());
    Ok(())
}

/// Waits until every client has everything; prints what ours was told.
async fn settle(flare: &Flare, client: &mut Client) -> Result<(), flare_core::Error> {
    flare.settled(LIMIT).await?;
    for sentence in client.heard() {
        println!("    -> {sentence}");
    }
    Ok(())
}
