//! Clients that take changes when they like, documents that are there already, and who has which version.

use std::time::Duration;

use crate::support::Server;
use serde_json::{Value, json};

async fn passive(server: &Server, users: &str) -> String {
    let body = r#"{"endpoint":{"url":"http://p.example/{id}"},"mode":"passive"}"#;
    server.post(&format!("{users}/subscriptions"), body).await.is(201).created()
}

async fn put(server: &Server, id: u32, revision: u32) {
    let path = format!("/documents/http://api.example.com/users/{id}");
    server.put(&path, &format!(r#"{{"rev":{revision}}}"#)).await.is(202);
}

async fn pull(server: &Server, path: &str) -> Vec<Value> {
    let body = r#"{"max":10,"waitSeconds":10,"leaseSeconds":60}"#;
    let pulled = server.post(&format!("{path}/pull"), body).await.is(200).json();
    pulled["notifications"].as_array().unwrap().clone()
}

#[tokio::test]
async fn what_waits_is_pulled_and_settled() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let path = passive(&server, &users).await;
    put(&server, 1, 7).await;
    let pulled = pull(&server, &path).await;
    assert_eq!(pulled.len(), 1);
    let told = &pulled[0]["notification"];
    assert_eq!((&told["action"], &told["revision"]), (&json!("create"), &json!(7)));
    assert!(told["webhookId"].as_str().unwrap().starts_with("msg_"));
    let settle = |outcome: &str| {
        json!({"receipts": [{"receipt": pulled[0]["receipt"], "outcome": outcome}]}).to_string()
    };
    for expected in ["settled", "expired"] {
        let body = settle("success");
        let settled = server.post(&format!("{path}/settle"), &body).await.is(200).json();
        assert_eq!(settled["receipts"][0]["result"], expected);
        assert_eq!(settled["receipts"][0]["receipt"], pulled[0]["receipt"]);
    }
    server.post(&format!("{path}/settle"), &settle("maybe")).await.is(400);
    let wrong = r#"{"receipts":[{"receipt":"x","outcome":"success"}]}"#;
    server.post(&format!("{path}/settle"), wrong).await.refuses(400, "receipts[0].receipt");

    for (body, field) in [
        (r#"{"max":0}"#, "max"),
        (r#"{"max":1,"waitSeconds":21}"#, "waitSeconds"),
        (r#"{"max":1,"leaseSeconds":0}"#, "leaseSeconds"),
        (r#"{"max":1,"x":1}"#, "x"),
    ] {
        server.post(&format!("{path}/pull"), body).await.refuses(400, field);
    }
    server.post(&format!("{path}/pull"), "{}").await.is(400);
    assert!(server.clients.requests().is_empty());
}

#[tokio::test]
async fn what_waits_is_sent_on_demand() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let path = passive(&server, &users).await;
    put(&server, 1, 1).await;
    let demand = format!("{path}/demand");
    loop {
        let demanded = server.post(&demand, r#"{"quantity":5}"#).await.is(202).json();
        if demanded["delivering"] == 1 {
            break;
        }
    }
    server.flare.settled(Duration::from_secs(10)).await.unwrap();
    assert_eq!(server.clients.requests().len(), 1);
    server.post(&demand, r#"{"quantity":-1}"#).await.refuses(400, "quantity");

    let active = server.subscription(&users, "http://c.example/{id}").await;
    for operation in ["demand", "pull"] {
        let body = if operation == "pull" { r#"{"max":1}"# } else { r#"{"quantity":1}"# };
        server.post(&format!("{active}/{operation}"), body).await.refuses(409, "mode");
        server.call("POST", &format!("{path}/pause"), None).await.is(200);
        server.post(&format!("{path}/{operation}"), body).await.refuses(409, "status");
    }
}

#[tokio::test]
async fn what_is_there_is_delivered_and_delivered_again() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    for id in 1..=20 {
        put(&server, id, 1).await;
    }
    let body = r#"{"endpoint":{"url":"http://c.example/{id}"},"backfill":true}"#;
    let path = server.post(&format!("{users}/subscriptions"), body).await.is(201).created();
    let done = async |kind: &str| loop {
        let status = server.get(&format!("{path}/status")).await.is(200).json();
        if status[kind]["done"] == true {
            return status[kind].clone();
        }
    };
    assert_eq!(done("backfill").await, json!({"scanned": 20, "total": 20, "done": true}));
    assert_eq!(server.clients.requests().len(), 20);
    for (body, expected) in
        [(None, 40), (Some(r#"{"prefix":"http://api.example.com/users/1"}"#), 51)]
    {
        let begun = server.call("POST", &format!("{path}/resync"), body).await.is(202).json();
        assert_eq!(begun["resync"]["done"], false);
        done("resync").await;
        assert_eq!(server.clients.requests().len(), expected);
    }
    server.call("POST", &format!("{path}/backfill"), None).await.is(202);
    server.post(&format!("{path}/backfill"), r#"{"prefix":"x"}"#).await.refuses(400, "prefix");
    for kind in ["backfill", "resync"] {
        server.delete(&format!("{path}/{kind}")).await.is(204);
        server.delete(&format!("{path}/{kind}")).await.is(204);
        server.get(&format!("{path}/{kind}")).await.is(405);
    }
}

#[tokio::test]
async fn who_has_which_version_is_listed() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let waiting = passive(&server, &users).await;
    let has = server.subscription(&users, "http://c.example/{id}").await;
    put(&server, 1, 3).await;
    let list = async |query: &str| {
        let path = format!("/deliveries/http://api.example.com/users/1{query}");
        server.get(&path).await.is(200).json()
    };
    let all = loop {
        let all = list("").await;
        let settled = all["deliveries"].as_array().unwrap().iter();
        if settled.filter(|it| it["settled"] != Value::Null).count() == 1 {
            break all;
        }
    };
    let of = |path: &str| {
        let id = path.rsplit('/').next().unwrap();
        let found = all["deliveries"].as_array().unwrap().iter();
        found.clone().find(|it| it["subscription"] == id).unwrap().clone()
    };
    assert_eq!(of(&has)["settled"], json!({"revision": 3, "gone": false}));
    assert_eq!((&of(&has)["present"], &of(&has)["pending"]), (&json!("yes"), &json!(false)));
    assert_eq!(
        (&of(&waiting)["waitsFor"], &of(&waiting)["pending"]),
        (&json!("demand"), &json!(true))
    );
    let page = list("?limit=1&offset=1").await;
    assert_eq!(
        (&page["pagination"]["total"], page["deliveries"].as_array().unwrap().len()),
        (&json!(2), 1)
    );
    server.get("/deliveries/http://nobody.example/1").await.is(404);
    server.get("/deliveries/nonsense").await.refuses(400, "url");
    server.get("/deliveries/http://api.example.com/users/1?limit=0").await.refuses(400, "limit");
}

#[tokio::test]
async fn a_client_that_only_pulls_needs_no_url() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let list = format!("{users}/subscriptions");
    let path = server.post(&list, r#"{"mode":"passive"}"#).await.is(201).created();
    server.post(&list, r#"{"mode":"passive","endpoint":{}}"#).await.is(201);
    put(&server, 1, 1).await;
    assert_eq!(pull(&server, &path).await.len(), 1);
    server.post(&format!("{path}/demand"), r#"{"quantity":1}"#).await.refuses(409, "endpoint.url");
    server.put(&path, r#"{"mode":"active"}"#).await.refuses(400, "endpoint.url");
    server.put(&path, r#"{"endpoint":{"url":"http://c.example/"}}"#).await.is(200);
}
