//! A host service with its own users and REST, which publishes their changes with Flare.
//!
//! `embed-in-axum [address]` serves until ctrl-c; `embed-in-axum --demo` sends itself some
//! requests, shows what a client is told, and ends.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_examples::accounts::Accounts;
use flare_examples::client::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome {
    let argument = std::env::args().nth(1);
    let demo = argument.as_deref() == Some("--demo");
    let address = argument.filter(|_| !demo).unwrap_or_else(|| {
        if demo { "127.0.0.1:0".to_owned() } else { "127.0.0.1:8080".to_owned() }
    });
    let listener = TcpListener::bind(&address).await?;
    let address = listener.local_addr()?;

    // The service and Flare live in one process; the service holds the handle.
    let (flare, runtime) = Flare::builder(MemoryBackend::new()).allow("127.0.0.0/8").build()?;
    let accounts = Accounts::start(flare.clone()).await?;
    let running = runtime.spawn();

    println!("accounts at http://{address}");
    let shutdown = async move {
        if demo {
            match show(address, &flare).await {
                Ok(()) => println!("\nthe demo ends"),
                Err(error) => println!("\nthe demo failed: {error}"),
            }
        } else {
            println!(
                "  curl -X POST http://{address}/listeners --json '{{\"url\":\"http://127.0.0.1:9000/users/{{id}}\"}}'"
            );
            println!("  curl -X PUT http://{address}/users/ada --json '{{\"name\":\"Ada\"}}'");
            // Said once it is listened for: before, ctrl-c would end it without draining.
            let say = async { println!("ctrl-c ends it") };
            let (interrupted, ()) = tokio::join!(biased; tokio::signal::ctrl_c(), say);
            if interrupted.is_err() {
                std::future::pending().await
            }
        }
    };

    // Drain in the order of the flow: first no more changes come in, then what came is delivered.
    axum::serve(listener, accounts.router()).with_graceful_shutdown(shutdown).await?;
    println!("accounts are closed");
    running.drain(Duration::from_secs(10)).await?;
    println!("Flare is drained");
    Ok(())
}

/// Sends the service some requests and shows what its client is told.
async fn show(accounts: SocketAddr, flare: &Flare) -> Outcome {
    let mut client = Client::start().await?;
    let hook = format!(r#"{{"url":"{}/users/{{id}}"}}"#, client.url);
    for (method, path, body) in [
        ("POST", "/listeners", r#"{"url":"http://127.0.0.1:9000/{name}"}"#),
        ("POST", "/listeners", hook.as_str()),
        ("PUT", "/users/ada", r#"{"name":"Ada"}"#),
        ("PUT", "/users/ada", r#"{"name":"Ada Lovelace"}"#),
        ("PUT", "/users/bob%20o", r#"{"name":"Bob"}"#),
        ("DELETE", "/users/ada", ""),
        ("DELETE", "/users/ada", ""),
    ] {
        let answer = request(accounts, method, path, body).await?;
        println!("\n{method} {path} {body}\n  {answer}");
        flare.settled(Duration::from_secs(5)).await?;
        client.heard().iter().for_each(|sentence| println!("    -> {sentence}"));
    }
    Ok(())
}

/// One HTTP request; gives the answer's status and body in a line.
async fn request(to: SocketAddr, method: &str, path: &str, body: &str) -> Outcome<String> {
    let mut stream = TcpStream::connect(to).await?;
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
    let fields = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    stream.write_all(format!("{head}{fields}\r\n{body}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no HTTP answer")?;
    let status = head.lines().next().and_then(|line| line.split_once(' ')).ok_or("no status")?;
    Ok(format!("{} {body}", status.1).trim_end().to_owned())
}
