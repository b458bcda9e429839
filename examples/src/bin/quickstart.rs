//! Flare and a client in one program: a few documents change, the client is told. Ends by itself.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::time::Duration;

use axum::Json;
use axum::routing::post;
use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::http::Guard;
use flare_core::model::{NewResource, SubscriptionSpec};
use serde_json::{Value, json};
use tokio::sync::oneshot;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let hook = start_client().await?;

    // Loopback addresses are refused unless they are allowed: clients are usually elsewhere.
    let (flare, runtime) = Flare::builder(MemoryBackend::new())
        .guard(Guard::default().allow("127.0.0.0/8")?)
        .build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(runtime.run(async { drop(stopped.await) }));

    let users =
        NewResource::new("http://api.example.com/users/{id}").change("updatedAt", "rfc3339");
    let users = flare.create_resource(users).await?;
    println!("resource      {}", users.endpoint);
    let subscription = SubscriptionSpec::post(format!("{hook}/users/{{id}}"));
    flare.create_subscription(&users.id, subscription).await?;
    println!("subscription  {hook}/users/{{id}}\n");

    let ada = "http://api.example.com/users/ada";
    let bob = "http://api.example.com/users/bob";
    for (url, name, at) in [
        (ada, "Ada", "2024-05-01T10:00:00Z"),
        (bob, "Bob", "2024-05-01T10:00:01Z"),
        (ada, "Ada Lovelace", "2024-05-01T10:00:02Z"),
        (ada, "Ada Lovelace", "2024-05-01T12:00:02+02:00"),
        (ada, "Ada", "2024-05-01T10:00:00Z"),
    ] {
        let change = flare.put_document(url, &json!({ "name": name, "updatedAt": at })).await?;
        println!("put           {url} at {at}: {}", change.as_str());
        flare.settled(Duration::from_secs(5)).await?;
    }
    let change = flare.delete_document(bob, None).await?;
    println!("delete        {bob}: {}", change.as_str());
    flare.settled(Duration::from_secs(5)).await?;

    let _ = stop.send(());
    running.await??;
    println!("\nEvery client has the newest version of every document.");
    Ok(())
}

/// A client that prints what it is told; gives its address.
async fn start_client() -> Result<String, Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = axum::Router::new().route("/users/{id}", post(told));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(format!("http://{address}"))
}

async fn told(Json(notification): Json<Value>) {
    let field = |name: &str| notification[name].as_str().unwrap_or_default().to_owned();
    let name = notification["document"]["name"].as_str().unwrap_or_default();
    println!("    -> client told: {} {} ({name})", field("action"), field("id"));
}
