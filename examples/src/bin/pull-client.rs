//! A client that is told nothing by itself: it pulls what waits, when it likes, and hands back what it
//! cannot do now. Ends by itself.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::prelude::*;
use flare_examples::pull_client::{PullClient, PullTurn};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let (flare, runtime) = Flare::builder(MemoryBackend::new()).build()?;
    let running = runtime.spawn();
    let users = NewResource::new("http://api.example.com/users/{id}").change_field("revision");
    let users = flare.create_resource(users).await?;
    // Nobody connects to this client, so it has no URL.
    let spec = SubscriptionSpec::builder().mode(Mode::Passive);
    let subscription = flare.create_subscription(users.id, spec).await?;
    let client = PullClient::new(flare.clone(), subscription.id);

    for (revision, name) in [(1, "Ada"), (2, "Ada Lovelace"), (3, "Ada King")] {
        let change = flare
            .put_document(&users.url(["ada"])?, &json!({ "name": name, "revision": revision }))
            .await?;
        println!("put     users/ada at {revision}: {}", change.as_str());
    }

    println!("\nIt was away for three changes, and pulls the newest:");
    show(&turn(&client, |_| PullOutcome::Success).await?);

    println!("\nWhat it cannot do now it hands back, and has it again:");
    flare.put_document(&users.url(["bob"])?, &json!({ "name": "Bob", "revision": 1 })).await?;
    show(&turn(&client, |_| PullOutcome::Return).await?);
    show(&turn(&client, |_| PullOutcome::Success).await?);

    println!("\nA pull waits for the change:");
    let (pulled, put) = tokio::join!(turn(&client, |_| PullOutcome::Success), async {
        flare.delete_document(&users.url(["ada"])?).await
    });
    println!("delete  users/ada: {}", put?.as_str());
    show(&pulled?);

    let status = flare.subscription_status(subscription.id).await?;
    println!("\n{} changes wait for it.", status.lag);
    running.drain(LIMIT).await?;
    Ok(())
}

/// One pull that says what it was told.
async fn turn(
    client: &PullClient,
    outcome: impl Fn(&Value) -> PullOutcome,
) -> flare_core::Result<PullTurn> {
    let said = |told: &Value| {
        let outcome = outcome(told);
        let (action, id) = (told["action"].as_str(), told["id"].as_str());
        let name = told["document"]["name"].as_str().unwrap_or_default();
        println!(
            "    -> pulled: {} {} ({name}): {}",
            action.unwrap_or_default(),
            id.unwrap_or_default(),
            outcome.as_str()
        );
        outcome
    };
    client.turn(said).await
}

fn show(turn: &PullTurn) {
    let PullTurn { taken, refused, returned, expired, failed } = turn;
    println!("       {taken} taken, {refused} refused, {returned} returned, {expired} expired");
    if *failed > 0 {
        println!("       {failed} to be settled again: the store failed");
    }
}
