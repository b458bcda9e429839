//! The log of what was done, by whom; and the long work that is stored.

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_http::auth::{Caller, Scope, Tokens};
use serde_json::{Value, json};

use crate::support::{Answer, Server, serve};

const READ: &str = "read-read-read-read";
const ADMIN: &str = "admin-admin-admin-admin";
const NEXT: &str = "the-next-token-of-ann";

async fn named() -> Server {
    let tokens = Tokens::new().with_named("dashboard", READ, Scope::Read).unwrap();
    let tokens = tokens.with_named("ann", ADMIN, Scope::Admin).unwrap();
    // Both hold while one takes the other's place.
    let tokens = tokens.with_named("ann", NEXT, Scope::Admin).unwrap();
    let tokens = tokens.with("token-without-a-name", Scope::Admin).unwrap();
    Server::with(|api| api.auth(tokens)).await
}

async fn ask(server: &Server, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    server.send(method, path, &headers, body.as_bytes()).await
}

/// Who did what to what, newest first, but for what nodes did.
async fn told(server: &Server, query: &str) -> Vec<(Value, Value, Value)> {
    let log = ask(server, READ, "GET", &format!("/log{query}"), "").await.is(200).json();
    let entries = log["entries"].as_array().unwrap().iter();
    let entries = entries.filter(|entry| entry["by"]["kind"] != "node");
    entries
        .map(|it| (it["by"]["name"].clone(), it["action"].clone(), it["subject"].clone()))
        .collect()
}

#[tokio::test]
async fn the_log_names_the_token_that_was_used() {
    let server = named().await;
    let body = r#"{"endpoint":"http://api.example.com/users/{id}","change":{"field":"rev"}}"#;
    let users = ask(&server, ADMIN, "POST", "/resources", body).await.created();
    let list = format!("{users}/subscriptions");
    let body = r#"{"endpoint":{"url":"http://c.example/{id}"}}"#;
    let one = ask(&server, NEXT, "POST", &list, body).await.created();
    ask(&server, "token-without-a-name", "POST", &format!("{one}/pause"), "").await.is(200);
    ask(&server, READ, "POST", &format!("{one}/resume"), "").await.is(403);
    ask(&server, NEXT, "DELETE", &one, "").await.is(204);

    let resource = format!("resource/{}", users.rsplit('/').next().unwrap());
    let subscription = format!("subscription/{}", one.rsplit('/').next().unwrap());
    let told_of = |by: &str, action: &str, subject: &str| {
        (Value::from(by), Value::from(action), Value::from(subject))
    };
    let deleted = told_of("ann", "deleted", &subscription);
    let paused = told_of("token-4", "paused", &subscription);
    let created = told_of("ann", "created", &subscription);
    let first = told_of("ann", "created", &resource);
    let all = [deleted.clone(), paused.clone(), created.clone(), first.clone()];
    assert_eq!(told(&server, "").await, all);
    let its = told(&server, &format!("?subject={subscription}")).await;
    assert_eq!(its, [deleted, paused.clone(), created]);
    assert_eq!(told(&server, &format!("?subject={subscription}&limit=1&offset=1")).await, [paused]);

    let page = format!("/log?subject={resource}");
    let page = ask(&server, READ, "GET", &page, "").await.is(200);
    assert!(!page.body.contains(ADMIN) && !page.body.contains(NEXT), "{page:?}");
    let page = page.json();
    assert_eq!(page["pagination"], json!({"limit": 30, "offset": 0, "total": 1}));
    let entry = &page["entries"][0];
    assert_eq!((&entry["count"], &entry["by"]["kind"]), (&1.into(), &"named".into()));
    assert_eq!(entry["detail"], "http://api.example.com/users/{id}");
}

#[tokio::test]
async fn what_is_asked_of_the_log_is_checked() {
    let server = Server::start().await;
    let past = server.get("/log?offset=9223372036854775807").await.is(200).json();
    assert_eq!(past["entries"].to_string(), "[]");
    for (query, field) in [
        ("limit=0", "limit"),
        ("offset=x", "offset"),
        ("limit=1&limit=2", "limit"),
        ("subject=x", "subject"),
        ("subject=", "subject"),
        ("subject=slot/1&subject=slot/2", "subject"),
        ("since=1", "since"),
    ] {
        server.get(&format!("/log?{query}")).await.refuses(400, field);
    }
    let none = server.get("/log?subject=slot%2F7").await.is(200).json();
    assert_eq!(none["pagination"]["total"], 0);
}

#[tokio::test]
async fn refused_sign_ins_are_told_and_no_token_with_them() {
    let server = named().await;
    for _ in 0..20 {
        server.get("/resources").await.is(401);
        ask(&server, "guessed-guessed-guessed", "GET", "/resources", "").await.is(401);
    }
    server.get("/health/live").await.is(200);
    let log = ask(&server, READ, "GET", "/log", "").await.is(200);
    assert!(!log.body.contains("guessed"), "{log:?}");
    let mut counts = [0, 0];
    for entry in log.json()["entries"].as_array().unwrap() {
        match entry["subject"].as_str().unwrap() {
            "sign-in/no-token" => counts[0] += entry["count"].as_u64().unwrap(),
            "sign-in/unknown-token" => counts[1] += entry["count"].as_u64().unwrap(),
            _ => continue,
        }
        assert_eq!(entry["action"], "refused");
    }
    assert_eq!(counts, [20, 20]);
    let entries = log.json()["pagination"]["total"].as_u64().unwrap();
    assert!(entries < 10, "told together: {entries}");
}

#[tokio::test]
async fn a_host_says_itself_who_asks() {
    let server = Server::on(Flare::builder(MemoryBackend::new()), false, |api| api).await;
    let host = axum::Router::new().merge(flare_http::router(server.flare.clone()));
    let host = host.layer(axum::middleware::from_fn(
        async |mut request: axum::extract::Request, next: axum::middleware::Next| {
            request.extensions_mut().insert(Caller::new("tenant 7"));
            next.run(request).await
        },
    ));
    let address = serve(host).await;
    let body = br#"{"endpoint":"http://api.example.com/users/{id}","change":{"field":"rev"}}"#;
    let json = [("content-type", "application/json")];
    crate::support::send(address, "POST", "/resources", &json, body).await.is(201);
    assert_eq!(server.get("/log").await.json()["entries"][0]["by"]["name"], "tenant 7");
}

#[tokio::test]
async fn jobs_are_listed_with_their_progress() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let one = server.subscription(&users, "http://c.example/{id}").await;
    server.put("/documents/http://api.example.com/users/1", r#"{"rev":1}"#).await.is(202);
    server.post(&format!("{one}/resync"), "{}").await.is(202);
    server.flare.settled(std::time::Duration::from_secs(600)).await.unwrap();
    let jobs = server.get("/jobs").await.is(200).json();
    let all = jobs["jobs"].as_array().unwrap();
    assert_eq!(jobs["pagination"]["total"], all.len());
    let resync = all.iter().find(|job| job["kind"] == "resync").unwrap();
    assert_eq!(resync["subject"], one.rsplit('/').next().unwrap());
    assert_eq!(resync["progress"], json!({"scanned": 1, "total": 1, "done": true}));
    assert!(all.iter().any(|job| job["kind"] == "expire" && job.get("progress").is_none()));

    let ids: Vec<_> = all.iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted(), "oldest first: {ids:?}");
    let page = server.get("/jobs?limit=1&offset=1").await.is(200).json();
    assert_eq!(page["jobs"][0]["id"], ids[1]);
    for (query, field) in [("limit=0", "limit"), ("kind=resync", "kind")] {
        server.get(&format!("/jobs?{query}")).await.refuses(400, field);
    }
}
