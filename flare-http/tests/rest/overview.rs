//! Who is behind: the subscriptions of all resources, in the order asked for.

use std::time::Duration;

use flare_core::port::DeliveryOutcome;
use serde_json::Value;

use crate::support::Server;

fn ids(list: &Value) -> Vec<&str> {
    list["subscriptions"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect()
}

fn id_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

#[tokio::test]
async fn those_that_are_behind_come_first_whatever_their_resource() {
    let server = Server::start().await;
    let empty = server.get("/subscriptions").await.is(200).json();
    assert_eq!((&empty["pagination"]["total"], &empty["totals"]["lag"]), (&0.into(), &0.into()));
    let (users, notes) = (server.resource("users").await, server.resource("notes").await);
    let well = server.subscription(&users, "http://well.example/{id}").await;
    let behind = server.subscription(&notes, "http://behind.example/{id}").await;
    let paused = server.subscription(&notes, "http://paused.example/{id}").await;
    server.call("POST", &format!("{paused}/pause"), None).await.is(200);
    for id in 1..=3 {
        let url = format!("http://behind.example/{id}");
        server.clients.answer(url, DeliveryOutcome::answered(404));
    }
    for id in 1..=3 {
        server
            .put(&format!("/documents/http://api.example.com/notes/{id}"), r#"{"rev":1}"#)
            .await
            .is(202);
    }
    server.put("/documents/http://api.example.com/users/1", r#"{"rev":1}"#).await.is(202);
    let all = loop {
        let all = server.get("/subscriptions").await.is(200).json();
        let first = &all["subscriptions"][0];
        let delivered = &all["totals"]["rates"]["delivered"]["minute"];
        if first["lag"] == 3 && all["totals"]["failing"] == 1 && delivered.as_f64() > Some(0.0) {
            break all;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(all["totals"]["subscriptions"], 3);
    let first =
        all["subscriptions"].as_array().unwrap().iter().find(|it| it["id"] == id_of(&behind));
    let first = first.unwrap();
    assert_eq!(first["url"], "http://behind.example/{id}");
    assert_eq!(first["resource"], id_of(&notes));
    assert!(first["lastError"].as_str().unwrap().contains("404"), "{first}");
    assert!(
        first["consecutiveFailures"].as_u64() > Some(0) && first["node"].is_string(),
        "{first}"
    );
    assert!(first["rates"]["failed"]["minute"].as_f64() > Some(0.0), "{first}");
    let by =
        async |query: &str| server.get(&format!("/subscriptions?{query}")).await.is(200).json();
    assert_eq!(ids(&by("order=failures&limit=1").await), [id_of(&behind)]);
    assert_eq!(ids(&by("order=lag").await)[2], id_of(&well), "nothing is pending there");
    assert_eq!(ids(&by("status=paused").await), [id_of(&paused)]);
    let second = by("limit=1&offset=1&order=oldest").await;
    assert_eq!((ids(&second).len(), &second["pagination"]["total"]), (1, &3.into()));
    assert_eq!(ids(&by("offset=3").await), Vec::<&str>::new());

    server.call("DELETE", &behind, None).await.is(204);
    server.delete(&paused).await.is(204);
    loop {
        let all = by("order=rate").await;
        if all["totals"]["subscriptions"] == 1 {
            assert_eq!(ids(&all), [id_of(&well)]);
            break;
        }
        tokio::task::yield_now().await;
    }
    server.flare.settled(Duration::from_secs(60)).await.unwrap();
    let status = server.get(&format!("{well}/status")).await.is(200).json();
    assert!(status["rates"]["delivered"]["fiveMinutes"].as_f64() > Some(0.0), "{status}");
    assert_eq!(status["times"]["latency"]["count"], 1, "{status}");
    assert_eq!(status["times"]["attempts"]["count"], 1, "{status}");
    let node = server.get("/status").await.is(200).json();
    assert!(node["puts"]["changed"]["minute"].as_f64() > Some(0.0), "{node}");
}

#[tokio::test]
async fn what_is_no_order_and_no_status_is_refused_by_name() {
    let server = Server::start().await;
    for (query, field) in [
        ("order=age", "order"),
        ("order=", "order"),
        ("order=lag&order=lag", "order"),
        ("status=deleting", "status"),
        ("status=Active", "status"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("offset=-1", "offset"),
        ("page=2", "page"),
    ] {
        server.get(&format!("/subscriptions?{query}")).await.refuses(400, field);
    }
    server.post("/subscriptions", "{}").await.is(405);
}
