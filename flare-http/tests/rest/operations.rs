//! What can be asked of a subscription.

use std::time::Duration;

use flare_core::model::{SubscriptionId, SubscriptionReport, TimeFigures, Timestamp, WindowRates};
use flare_core::port::DeliveryOutcome;

use crate::support::Server;

#[tokio::test]
async fn pause_and_resume_may_be_repeated() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let path = server.subscription(&users, "http://c.example/{id}").await;
    for _ in 0..2 {
        let paused = server.call("POST", &format!("{path}/pause"), None).await.is(200);
        assert_eq!(paused.json()["status"], "paused");
        assert!(paused.header("etag").is_some());
    }
    let document = "/documents/http://api.example.com/users/1";
    server.put(document, r#"{"rev":1}"#).await.is(202);
    for body in [Some("{}"), Some(" {} "), None] {
        let resumed = server.call("POST", &format!("{path}/resume"), body).await.is(200);
        assert_eq!(resumed.json()["status"], "active");
    }
    server.flare.settled(Duration::from_secs(10)).await.unwrap();
    assert_eq!(server.clients.requests().len(), 1);
    for operation in ["pause", "resume", "retry"] {
        let path = format!("{path}/{operation}");
        server.post(&path, r#"{"x":1}"#).await.refuses(400, "x");
        for body in ["[1]", "[]", "null", "7"] {
            server.post(&path, body).await.is(400);
        }
        server.send("POST", &path, &[], b"{}").await.is(415);
        server.post(&format!("{path}?x=1"), "{}").await.refuses(400, "x");
        server.get(&path).await.is(405);
    }
}

#[tokio::test]
async fn a_client_that_waits_is_tried_now_unless_it_is_held() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let path = server.subscription(&users, "http://c.example/{id}").await;
    server.clients.answer("http://c.example/1", DeliveryOutcome::answered(500));
    server.put("/documents/http://api.example.com/users/1", r#"{"rev":1}"#).await.is(202);
    let status = loop {
        let status = server.get(&format!("{path}/status")).await.is(200).json();
        if status["consecutiveFailures"].as_u64() >= Some(2) {
            break status;
        }
        tokio::task::yield_now().await;
    };
    assert!(status["lastErrorAt"].is_string() && status["nextAttemptAt"].is_string(), "{status}");
    assert_eq!(status["probing"], status["consecutiveFailures"].as_u64().unwrap() >= 5);
    server.clients.answer("http://c.example/1", DeliveryOutcome::answered(200));
    let tried = server.call("POST", &format!("{path}/retry"), None).await.is(200);
    assert_eq!(tried.json()["status"], "active");
    server.flare.settled(Duration::from_secs(10)).await.unwrap();
    let status = server.get(&format!("{path}/status")).await.is(200).json();
    assert_eq!((&status["probing"], &status["consecutiveFailures"]), (&false.into(), &0.into()));
    assert_eq!(status["delivered"], 1, "counted as soon as it is settled");

    server.call("POST", &format!("{path}/pause"), None).await.is(200);
    server.call("POST", &format!("{path}/retry"), None).await.refuses(409, "status");
}

#[tokio::test]
async fn the_status_tells_how_it_is_doing() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let path = server.subscription(&users, "http://c.example/{id}").await;
    let fresh = server.get(&format!("{path}/status")).await.is(200).json();
    assert_eq!((&fresh["lag"], &fresh["lastSuccessAt"]), (&0.into(), &().into()));
    server.put("/documents/http://api.example.com/users/1", r#"{"rev":1}"#).await.is(202);
    server.flare.settled(Duration::from_secs(10)).await.unwrap();
    let told = server.get(&format!("{path}/status")).await.is(200).json();
    assert_eq!((&told["status"], &told["lag"]), (&"active".into(), &0.into()));
    assert_eq!(told, expected(&server.flare.subscription_status(id(&path)).await.unwrap()));
}

fn id(path: &str) -> SubscriptionId {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// Everything the handle says, by the name it has in JSON.
fn expected(report: &SubscriptionReport) -> serde_json::Value {
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let rates =
        |it: WindowRates| serde_json::json!({"minute": it.minute, "fiveMinutes": it.five_minutes});
    let millis = |time: Duration| time.as_micros() as f64 / 1_000.0;
    let figures = |it: TimeFigures| {
        serde_json::json!({"count": it.count, "meanMillis": millis(it.mean), "p50Millis": millis(it.p50),
            "p99Millis": millis(it.p99)})
    };
    let all = serde_json::json!({
        "status": report.status.as_str(),
        "reason": report.reason,
        "lag": report.lag,
        "spreading": report.spreading,
        "oldestPendingSeconds": report.oldest_pending.as_secs(),
        "inFlight": report.in_flight,
        "delivered": report.delivered,
        "failed": report.failed,
        "discarded": report.discarded,
        "rates": {
            "delivered": rates(report.rates.delivered),
            "failed": rates(report.rates.failed),
            "discarded": rates(report.rates.discarded),
        },
        "times": {
            "latency": figures(report.times.latency),
            "attempts": figures(report.times.attempts),
            "dns": figures(report.times.dns),
            "connect": figures(report.times.connect),
            "tls": figures(report.times.tls),
            "firstByte": figures(report.times.first_byte),
        },
        "deadLetters": report.dead_letters,
        "lastSuccessAt": time(report.last_success_at),
        "lastError": report.last_error,
        "lastErrorAt": time(report.last_error_at),
        "probing": report.probing,
        "consecutiveFailures": report.consecutive_failures,
        "nextAttemptAt": time(report.next_attempt_at),
        "node": report.node,
        "queue": report.queue,
        "queueRestoredAt": time(report.queue_restored_at),
        "backfill": report.backfill.map(|it| it.scanned),
        "resync": report.resync.map(|it| it.scanned),
    });
    let serde_json::Value::Object(all) = all else { panic!("an object") };
    let shown =
        |(name, value): &(String, serde_json::Value)| !value.is_null() || name == "lastSuccessAt";
    all.into_iter().filter(shown).collect::<serde_json::Map<_, _>>().into()
}

#[tokio::test]
async fn dead_letters_are_listed_and_replayed() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let body = r#"{"endpoint":{"url":"http://c.example/{id}"},
        "delivery":{"retry":{"numRetries":0}}}"#;
    let path = server.post(&format!("{users}/subscriptions"), body).await.created();
    for id in ["1", "2"] {
        server.clients.answer(format!("http://c.example/{id}"), DeliveryOutcome::answered(500));
        let document = format!("/documents/http://api.example.com/users/{id}");
        server.put(&document, r#"{"rev":7}"#).await.is(202);
    }
    server.flare.settled(Duration::from_secs(20)).await.unwrap();

    let letters = format!("{path}/dead-letters");
    let list = server.get(&letters).await.is(200).json();
    assert_eq!(list["pagination"]["total"], 2);
    let first = &list["deadLetters"][0];
    assert_eq!((&first["revision"], &first["lastStatus"]), (&7.into(), &500.into()));
    assert_eq!((&first["action"], &first["reason"]), (&"create".into(), &"exhausted".into()));
    let page = server.get(&format!("{letters}?limit=1&offset=1")).await.is(200).json();
    assert_eq!(page["deadLetters"][0], list["deadLetters"][1]);
    server.get(&format!("{letters}?limit=0")).await.refuses(400, "limit");

    let replay = format!("{path}/replay");
    let id = first["id"].as_str().unwrap();
    for ids in
        [format!(r#"["{id}","0192f0e0-0000-7000-8000-000000000000"]"#), format!(r#"["{id}","x"]"#)]
    {
        server.post(&replay, &format!(r#"{{"deadLetters":{ids}}}"#)).await.is(404);
    }
    assert_eq!(server.get(&letters).await.json()["pagination"]["total"], 2, "nothing replayed");
    server.post(&replay, r#"{"deadLetters":"x"}"#).await.refuses(400, "deadLetters");
    server.post(&replay, r#"{"deadLetters":[7]}"#).await.refuses(400, "deadLetters[0]");
    server.post(&replay, "[]").await.is(400);
    server.post(&replay, r#"{"letters":[]}"#).await.refuses(400, "letters");
    server.send("POST", &replay, &[("content-type", "text/plain")], b"{}").await.is(415);

    for n in ["1", "2"] {
        server.clients.answer(format!("http://c.example/{n}"), DeliveryOutcome::answered(200));
    }
    let one = server.post(&replay, &format!(r#"{{"deadLetters":["{id}"]}}"#)).await.is(202);
    assert_eq!(one.body, r#"{"replayed":1}"#);
    let rest = server.call("POST", &replay, None).await.is(202);
    assert_eq!(rest.body, r#"{"replayed":1}"#);
    server.flare.settled(Duration::from_secs(20)).await.unwrap();
    assert_eq!(server.get(&letters).await.json()["pagination"]["total"], 0);
    assert_eq!(server.post(&replay, "{}").await.is(202).body, r#"{"replayed":0}"#);
}
