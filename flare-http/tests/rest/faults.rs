//! When a store is away, full or slow, or a route panics.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::{MemoryBackend, MemoryConfig};
use flare_core::Flare;
use flare_core::port::SystemClock;
use flare_testkit::{FaultPlan, FaultyRepository};

use crate::support::Server;

const USER: &str = "/documents/http://api.example.com/users/1";

#[tokio::test]
async fn a_store_that_is_away_is_503_and_shows_nothing_of_itself() {
    let backend = MemoryBackend::new();
    let plan = FaultPlan::seeded(1);
    let faulty = FaultyRepository::new(backend.repository(), plan.clone());
    let builder = Flare::builder(backend).repository(Arc::new(faulty));
    let server = Server::on(builder, false, |api| api).await;
    let users = server.resource("users").await;
    let one = server.subscription(&users, "http://c.example/{id}").await;
    server.put(USER, r#"{"rev":1}"#).await.is(202);

    let _broken = plan.clone().with_before(1.0);
    let body = r#"{"endpoint":{"url":"http://c.example/2"}}"#;
    let new = r#"{"endpoint":"http://b.example/{id}","change":{"field":"rev"}}"#;
    for (method, path, body) in [
        ("GET", "/resources".to_owned(), None),
        ("POST", "/resources".to_owned(), Some(new)),
        ("GET", users.clone(), None),
        ("DELETE", users.clone(), None),
        ("GET", format!("{users}/subscriptions"), None),
        ("POST", format!("{users}/subscriptions"), Some(body)),
        ("GET", one.clone(), None),
        ("PUT", one.clone(), Some(body)),
        ("DELETE", one.clone(), None),
        ("GET", format!("{one}/status"), None),
        ("GET", format!("{one}/dead-letters"), None),
        ("POST", format!("{one}/pause"), None),
        ("POST", format!("{one}/resume"), None),
        ("POST", format!("{one}/retry"), None),
        ("POST", format!("{one}/replay"), None),
        ("GET", USER.to_owned(), None),
        ("PUT", USER.to_owned(), Some(r#"{"rev":2}"#)),
        ("DELETE", USER.to_owned(), None),
    ] {
        let answer = server.call(method, &path, body).await.is(503);
        assert!(!answer.body.contains("inject"), "{answer:?}");
    }
    plan.heal();
    server.get(&one).await.is(200);
}

#[tokio::test]
async fn a_store_that_is_full_pushes_back() {
    let config = MemoryConfig::default().max_bytes(64 << 10);
    let backend = MemoryBackend::with_config(config, Arc::new(SystemClock::new()));
    let server = Server::on(Flare::builder(backend), true, |api| api).await;
    server.resource("users").await;
    let large = format!(r#"{{"rev":1,"x":"{}"}}"#, "x".repeat(100 << 10));
    let answer = server.put(USER, &large).await;
    assert!(matches!(answer.status, 413 | 429), "{answer:?}");
    let mut pushed_back = false;
    for n in 0..200 {
        let path = format!("/documents/http://api.example.com/users/{n}");
        let body = format!(r#"{{"rev":1,"x":"{}"}}"#, "x".repeat(1 << 10));
        let answer = server.put(&path, &body).await;
        assert!(matches!(answer.status, 202 | 429), "{answer:?}");
        pushed_back |= answer.status == 429;
    }
    assert!(pushed_back);
}

#[tokio::test]
async fn a_document_above_what_the_store_holds_is_413() {
    let config = MemoryConfig::default().max_content(1_000);
    let backend = MemoryBackend::with_config(config, Arc::new(SystemClock::new()));
    let server = Server::on(Flare::builder(backend), true, |api| api).await;
    server.resource("users").await;
    let large = format!(r#"{{"rev":1,"x":"{}"}}"#, "x".repeat(2_000));
    server.put(USER, &large).await.is(413);
}

#[tokio::test]
async fn a_store_that_is_slow_is_given_up_in_time() {
    let backend = MemoryBackend::new();
    let clock = Arc::new(SystemClock::new());
    let hour = Duration::from_secs(3_600);
    let slow = FaultyRepository::new(backend.repository(), FaultPlan::seeded(1));
    let slow = slow.delaying(1.0, hour, clock);
    let builder = Flare::builder(backend).repository(Arc::new(slow));
    let server = Server::on(builder, false, |api| api.timeout(Duration::from_millis(100))).await;
    let answer = server.get("/resources").await.is(503);
    assert!(answer.body.contains("whether it took effect is unknown"), "{answer:?}");
}

#[tokio::test]
async fn a_panic_is_500_in_the_same_shape() {
    let server = Server::with(|api| api.metrics(|| panic!("a secret of ours"))).await;
    let answer = server.get("/metrics").await.is(500);
    assert!(!answer.body.contains("secret"), "{answer:?}");
    server.get("/health/live").await.is(200);
}
