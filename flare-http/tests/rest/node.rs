//! This process and its health.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::model::Timestamp;
use flare_testkit::{FaultPlan, FaultyRepository, ManualClock};

use crate::support::{Server, send};

#[tokio::test]
async fn tells_what_it_is_and_how_it_is_doing() {
    let server = Server::with(|api| api.version("1.2.3").commit("abcdef")).await;
    let about = server.get("/").await.is(200);
    assert_eq!(about.body, r#"{"name":"flare","version":"1.2.3","commit":"abcdef"}"#);
    let status = server.get("/status").await.is(200).json();
    assert_eq!((&status["version"], &status["running"]), (&"1.2.3".into(), &true.into()));
    assert_eq!((&status["nodes"], &status["consumers"]), (&1.into(), &0.into()));
    assert!(status["currentTimeEpochSecs"].as_i64() >= status["startTimeEpochSecs"].as_i64());
    assert!(!status["loops"].as_array().unwrap().is_empty(), "{status}");
    let nodes = server.get("/cluster/nodes").await.is(200).json();
    assert_eq!(nodes["nodes"][0]["id"], status["node"]);
    assert_eq!(server.get("/cluster/nodes?offset=1").await.json()["nodes"].to_string(), "[]");
    let health = server.get("/cluster/health").await.is(200).json();
    assert_eq!((&health["status"], &health["nodes"]), (&"green".into(), &1.into()));
    for path in ["/", "/status", "/health/live", "/health/ready", "/cluster/health"] {
        server.get(&format!("{path}?x=1")).await.refuses(400, "x");
        let head = send(server.address, "HEAD", path, &[], b"").await.is(200);
        assert_eq!(head.body, "");
        server.call("DELETE", path, None).await.is(405);
    }
}

#[tokio::test]
async fn ready_only_while_the_runtime_runs() {
    let builder = Flare::builder(MemoryBackend::new());
    let server = Server::on(builder, false, |api| api).await;
    server.get("/health/live").await.is(200);
    let answer = server.get("/health/ready").await.is(503);
    assert!(answer.body.contains("the runtime does not run"), "{answer:?}");
    assert_eq!(server.get("/cluster/health").await.is(200).json()["status"], "red");
    assert_eq!(Server::start().await.get("/health/ready").await.is(200).body, r#"{"status":"ok"}"#);
}

#[tokio::test]
async fn not_ready_while_a_loop_with_work_gets_nowhere() {
    let clock = ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000));
    let backend = MemoryBackend::with_clock(Arc::new(clock.clone()));
    let plan = FaultPlan::seeded(1);
    let faulty = FaultyRepository::new(backend.repository(), plan.clone());
    let builder = Flare::builder(backend).clock(Arc::new(clock.clone()));
    let builder = builder.repository(Arc::new(faulty));
    let server = Server::on(builder, true, |api| api).await;
    server.get("/health/ready").await.is(200);
    let _broken = plan.clone().with_before(1.0);
    clock.advance(Duration::from_secs(60)).await;
    let answer = server.get("/health/ready").await.is(503);
    assert!(answer.body.contains("no progress for 30s: "), "{answer:?}");
    server.get("/health/live").await.is(200);
    plan.heal();
    clock.advance(Duration::from_secs(60)).await;
    server.get("/health/ready").await.is(200);
}

#[tokio::test]
async fn metrics_are_the_host_s() {
    Server::start().await.get("/metrics").await.is(404);
    let server = Server::with(|api| api.metrics(|| "flare_lag 7\n".to_owned())).await;
    let answer = server.get("/metrics").await.is(200);
    assert_eq!(answer.body, "flare_lag 7\n");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
}

#[tokio::test]
async fn a_request_id_is_kept_or_made() {
    let server = Server::start().await;
    let id = async |given: &str| {
        let answer = server.send("GET", "/nowhere", &[("x-request-id", given)], b"").await;
        answer.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(id("order-7").await, "order-7");
    assert_eq!(id("has space").await.len(), 32);
    assert_eq!(id(&"x".repeat(1_000)).await.len(), 32);
    assert_ne!(id("").await, id("").await);
}

#[tokio::test]
async fn what_is_not_there_yet_is_404() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let one = server.subscription(&users, "http://c.example/{id}").await;
    for path in ["maintenance"] {
        server.post(&format!("{one}/{path}"), "{}").await.is(404);
    }
    for path in ["/consumers/", "/cluster", "/resources/", "//"] {
        server.get(path).await.is(404);
    }
    server.flare.settled(Duration::from_secs(1)).await.unwrap();
}
