//! A sender that signs and a receiver that verifies, in one program: a genuine notification, some
//! forged ones, and a secret that is being replaced. Ends by itself.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::time::Duration;

use axum::http::HeaderMap;
use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_examples::verifier::{Checked, Verifier};
use serde_json::json;
use standardwebhooks::Webhook;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

// Sender and receiver agree on a secret out of band. Yours come from a vault, not from the source.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const GUESSED: &str = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";

const ADA: &str = "http://api.example.com/users/ada";
const LIMIT: Duration = Duration::from_secs(5);

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let (flare, runtime) = Flare::builder(MemoryBackend::new()).allow("127.0.0.0/8").build()?;
    let running = runtime.spawn();

    println!("A notification that Flare signed is verified:");
    let mut receiver = Verifier::start(&[SECRET]).await?;
    subscribe(&flare, "users", &receiver, &[SECRET]).await?;
    let genuine = put(&flare, ADA, "Ada", &mut receiver).await?;
    println!("    -> verified: {}", genuine.verdict?);
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        println!("       {name}: {}", header(&genuine.headers, name)?);
    }

    println!("\nForged ones are refused:");
    let body = std::str::from_utf8(&genuine.body)?;
    let other_body = body.replace("Ada", "Mallory");
    let guessed = guess(&genuine.headers, &other_body)?;
    let mut unsigned = genuine.headers.clone();
    unsigned.remove("webhook-signature");
    for (what, headers, body) in [
        ("a genuine signature, another body", &genuine.headers, other_body.as_str()),
        ("signed with a guessed secret", &guessed, &other_body),
        ("not signed at all", &unsigned, body),
    ] {
        let status = send(&receiver.address, headers, body).await?;
        let reason = match only(receiver.checked())?.verdict {
            Err(reason) => reason,
            Ok(sentence) => return Err(format!("{what}, but believed: {sentence}").into()),
        };
        println!("{what}: answered {status}\n    -> refused: {reason}");
    }

    println!("\nWhile a secret is replaced, requests are signed with both:");
    let mut receiver = Verifier::start(&[SECRET, NEW_SECRET]).await?;
    subscribe(&flare, "orders", &receiver, &[NEW_SECRET, SECRET]).await?;
    for (turn, knows) in ["the old secret", "the new secret"].into_iter().enumerate() {
        let url = format!("http://api.example.com/orders/{}", turn + 1);
        let Checked { instance, verdict, .. } = put(&flare, &url, "Tea", &mut receiver).await?;
        if instance != turn {
            return Err("the instances did not take turns".into());
        }
        println!("    -> verified by an instance that knows {knows}: {}", verdict?);
    }

    running.drain(LIMIT).await?;
    println!("\nThe receiver believed what Flare sent, and nothing else.");
    Ok(())
}

/// Has the receiver told of a kind of document, signed.
async fn subscribe(flare: &Flare, kind: &str, receiver: &Verifier, secrets: &[&str]) -> Outcome {
    let new = NewResource::new(format!("http://api.example.com/{kind}/{{id}}"));
    let resource = flare.create_resource(new.change_field("revision")).await?;
    let hook = format!("http://{}/hook", receiver.address);
    let spec = SubscriptionSpec::post(&hook).signing(secrets.iter().copied());
    let subscription = flare.create_subscription(resource.id, spec).await?;
    // A read shows how many secrets there are, and never one of them.
    let shown = serde_json::to_value(&subscription.spec)?;
    println!("subscription  POST {hook}, signing {}", shown["signing"]);
    Ok(())
}

/// Hands over a document; gives what the receiver made of the notification.
async fn put(flare: &Flare, url: &str, name: &str, receiver: &mut Verifier) -> Outcome<Checked> {
    let change = flare.put_document(url, &json!({ "name": name, "revision": 1 })).await?;
    println!("put     {url}: {}", change.as_str());
    flare.settled(LIMIT).await?;
    only(receiver.checked())
}

fn only(mut checked: Vec<Checked>) -> Outcome<Checked> {
    match (checked.len(), checked.pop()) {
        (1, Some(one)) => Ok(one),
        (count, _) => Err(format!("the receiver got {count} requests instead of one").into()),
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Outcome<&'h str> {
    Ok(headers.get(name).ok_or_else(|| format!("there is no {name}"))?.to_str()?)
}

/// What somebody who does not know the secret would try.
fn guess(genuine: &HeaderMap, body: &str) -> Outcome<HeaderMap> {
    let (id, timestamp) = (header(genuine, "webhook-id")?, header(genuine, "webhook-timestamp")?);
    let signature = Webhook::new(GUESSED)?.sign(id, timestamp.parse()?, body.as_bytes())?;
    let mut headers = genuine.clone();
    headers.insert("webhook-signature", signature.parse()?);
    Ok(headers)
}

/// Sends the receiver a request past Flare; gives its answer's status.
async fn send(address: &str, headers: &HeaderMap, body: &str) -> Outcome<String> {
    let mut request = format!("POST /hook HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers.iter().filter(|(name, _)| name.as_str().starts_with("webhook-")) {
        request += &format!("{name}: {}\r\n", value.to_str()?);
    }
    request += &format!("content-length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.lines().next().and_then(|line| line.split_once(' '));
    Ok(status.ok_or("no HTTP answer")?.1.to_owned())
}
