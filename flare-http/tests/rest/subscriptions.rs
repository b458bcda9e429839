//! Clients' wishes: everything that can be done to one, under its own resource only.

use std::sync::Arc;

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_testkit::CountingRepository;

use crate::support::Server;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const UNKNOWN: &str = "0192f0e0-0000-7000-8000-000000000000";

#[tokio::test]
async fn is_created_read_listed_replaced_and_deleted() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let list = format!("{users}/subscriptions");
    let body = format!(
        r#"{{"endpoint":{{"url":"http://c.example/{{id}}","headers":{{"x-a":["1"]}}}},
            "data":{{"n":1.50,"list":[true,"x",12345678901234567890123]}},
            "signing":{{"secrets":["{SECRET}"]}}}}"#
    );
    let created = server.post(&list, &body).await.is(201);
    let path = created.header("location").unwrap().to_owned();
    assert!(path.starts_with(&list), "{path}");
    assert_eq!(created.header("etag"), Some(&*format!("\"{}\"", created.json()["generation"])));
    assert!(created.body.contains(r#""n":1.50"#), "numbers as they were written: {created:?}");
    assert!(created.body.contains("12345678901234567890123"), "{created:?}");
    assert!(!created.body.contains("whsec"), "{created:?}");
    let shown = created.json();
    assert_eq!(shown["signing"]["secrets"], 1);
    assert_eq!((&shown["status"], &shown["mode"]), (&"active".into(), &"active".into()));
    assert_eq!(users, format!("/resources/{}", shown["resource"].as_str().unwrap()));

    let read = server.get(&path).await.is(200);
    assert_eq!(read.json(), shown);
    assert_eq!(read.header("etag"), created.header("etag"));
    assert_eq!(server.get(&list).await.json()["subscriptions"][0], shown);

    let replaced =
        server.put(&path, r#"{"endpoint":{"url":"http://c.example/new"}}"#).await.is(200);
    assert_ne!(replaced.header("etag"), created.header("etag"));
    assert_eq!(replaced.json()["signing"]["secrets"], 1, "absent keeps");
    assert!(replaced.json().get("data").is_none(), "not given is the default again");
    let null = r#"{"endpoint":{"url":"http://c.example/new"},"signing":null}"#;
    assert!(server.put(&path, null).await.is(200).json().get("signing").is_none());

    server.delete(&path).await.is(204);
    server.get(&path).await.is(404);
    server.delete(&path).await.is(404);
    assert_eq!(server.get(&list).await.json()["pagination"]["total"], 0);
}

#[tokio::test]
async fn credentials_are_shown_to_nobody_and_kept_when_they_are_sent_back() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let list = format!("{users}/subscriptions");
    let headers = r#"{"Authorization":["Bearer t0ken"],"X-Api-Key":["k3y"],"X-Tenant":["acme"]}"#;
    let delete = r#"{"delete":{"headers":{"Cookie":["a=s1"]}}}"#;
    let body = format!(
        r#"{{"endpoint":{{"url":"http://c.example/","headers":{headers},"actions":{delete}}}}}"#
    );
    let created = server.post(&list, &body).await.is(201);
    let path = created.header("location").unwrap().to_owned();
    let pause = format!("{path}/pause");
    let answers = [
        created,
        server.get(&path).await,
        server.get(&list).await,
        server.post(&pause, "{}").await,
    ];
    for answer in answers {
        for secret in ["t0ken", "k3y", "a=s1"] {
            assert!(!answer.body.contains(secret), "{answer:?}");
        }
        assert!(answer.body.contains(r#""Authorization":["********"]"#), "{answer:?}");
        assert!(answer.body.contains(r#""Cookie":["********"]"#), "{answer:?}");
        assert!(answer.body.contains(r#""X-Tenant":["acme"]"#), "{answer:?}");
    }

    let back = body.replace("Bearer t0ken", "********").replace("a=s1", "********");
    server.put(&path, &back.replace("acme", "other")).await.is(200);
    let id = path.rsplit('/').next().unwrap().parse().unwrap();
    let stored = server.flare.subscription(id).await.unwrap().spec;
    let stored = serde_json::to_string(&stored.stored()).unwrap();
    for kept in ["Bearer t0ken", "k3y", "a=s1", "other"] {
        assert!(stored.contains(kept), "{stored}");
    }

    // There is nothing to keep: in a new one, or where none was.
    let elsewhere = back.replace("c.example", "d.example");
    server.post(&list, &elsewhere).await.refuses(400, "endpoint.headers.Authorization[0]");
    let new = back.replace("Cookie", "X-Secret");
    server.put(&path, &new).await.refuses(400, "endpoint.actions.delete.headers.X-Secret[0]");
}

#[tokio::test]
async fn if_match_protects_from_lost_changes() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let path = server.subscription(&users, "http://c.example/1").await;
    let tag = server.get(&path).await.header("etag").unwrap().to_owned();
    let body = br#"{"endpoint":{"url":"http://c.example/2"}}"#;
    let json = ("content-type", "application/json");
    let put = async |tag: &str| server.send("PUT", &path, &[json, ("if-match", tag)], body).await;
    put("\"0\"").await.refuses(412, "If-Match");
    put("W/\"1\"").await.is(412);
    put("7").await.refuses(400, "If-Match");
    let newer = put(&format!("\"0\", {tag}")).await.is(200);
    put(&tag).await.is(412);
    put("*").await.is(200);
    let delete = async |tag: &str| server.send("DELETE", &path, &[("if-match", tag)], b"").await;
    delete(newer.header("etag").unwrap()).await.is(412);
    let current = server.get(&path).await.header("etag").unwrap().to_owned();
    delete(&current).await.is(204);
    delete(&current).await.is(404);
}

#[tokio::test]
async fn is_there_under_its_own_resource_only() {
    let server = Server::start().await;
    let (users, orders) = (server.resource("users").await, server.resource("orders").await);
    let mine = server.subscription(&users, "http://c.example/1").await;
    let id = mine.rsplit('/').next().unwrap();
    let body = r#"{"endpoint":{"url":"http://c.example/2"}}"#;
    let unknown = format!("/resources/{UNKNOWN}");
    for path in [
        format!("{orders}/subscriptions/{id}"),
        format!("{unknown}/subscriptions/{id}"),
        format!("/resources/x/subscriptions/{id}"),
        format!("{users}/subscriptions/{UNKNOWN}"),
        format!("{users}/subscriptions/x"),
    ] {
        server.get(&path).await.is(404);
        server.put(&path, body).await.is(404);
        server.delete(&path).await.is(404);
        server.get(&format!("{path}/status")).await.is(404);
        server.get(&format!("{path}/dead-letters")).await.is(404);
        for operation in ["pause", "resume", "retry", "replay"] {
            server.call("POST", &format!("{path}/{operation}"), None).await.is(404);
        }
    }
    server.get(&format!("{unknown}/subscriptions")).await.is(404);
    server.post(&format!("{unknown}/subscriptions"), body).await.is(404);
    server.post(&format!("{unknown}/subscriptions"), "{}").await.is(404);
    server.get(&mine).await.is(200);
}

#[tokio::test]
async fn refusals_name_the_field() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let list = format!("{users}/subscriptions");
    for (fields, field) in [
        (r#""endpoint":{"url":"ftp://c.example/"}"#, "endpoint.url"),
        (r#""endpoint":{"url":"http://c.example/{name}"}"#, "endpoint.url"),
        (r#""endpoint":{"url":"http://c.example/","x":1}"#, "endpoint.x"),
        (r#""endpoint":{"url":"http://c.example/"},"status":"active""#, "status"),
        (r#""endpoint":{"url":"http://c.example/"},"filter":"nobody""#, "filter"),
        (r#""endpoint":{"url":"http://c.example/"},"mode":"pull""#, "mode"),
        (r#""endpoint":{"url":"http://c.example/"},"backfill":1"#, "backfill"),
        (
            r#""endpoint":{"url":"http://c.example/"},"delivery":{"minInterval":"25h"}"#,
            "delivery.minInterval",
        ),
        (r#""endpoint":{"url":"http://c.example/"},"delivery":{"lanes":0}"#, "delivery.lanes"),
        (
            r#""endpoint":{"url":"http://c.example/"},"signing":{"secrets":["x"]}"#,
            "signing.secrets[0]",
        ),
        ("", "endpoint.url"),
    ] {
        let body = format!("{{{fields}}}");
        server.post(&list, &body).await.refuses(400, field);
    }
    let path = server.subscription(&users, "http://c.example/1").await;
    server.put(&path, r#"{"endpoint":{}}"#).await.refuses(400, "endpoint.url");
    server.put(&path, "[]").await.is(400);
    server.get(&format!("{path}?x")).await.refuses(400, "x");
}

#[tokio::test]
async fn conflicts_are_409() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let (one, two) = ("http://c.example/1", "http://c.example/2");
    let path = server.subscription(&users, one).await;
    server.subscription(&users, two).await;
    let body = format!(r#"{{"endpoint":{{"url":"{two}"}}}}"#);
    server.post(&format!("{users}/subscriptions"), &body).await.is(409);
    server.put(&path, &body).await.is(409);
    let lanes = format!(r#"{{"endpoint":{{"url":"{one}"}},"delivery":{{"lanes":2}}}}"#);
    server.put(&path, &lanes).await.is(200);
}

#[tokio::test]
async fn a_conflict_names_the_field_that_clashes() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    server.subscription(&users, "http://c.example/1").await;
    let body = r#"{"endpoint":{"url":"http://c.example/2",
        "actions":{"update":{"url":"http://c.example/1"}}}}"#;
    let list = format!("{users}/subscriptions");
    server.post(&list, body).await.refuses(409, "endpoint.actions.update.url");
}

#[tokio::test]
async fn its_resource_is_read_once_before_it_is_stored_and_once_after() {
    let memory = MemoryBackend::new();
    let counted = CountingRepository::new(memory.repository());
    let builder = Flare::builder(memory).repository(Arc::new(counted.clone()));
    let server = Server::on(builder, false, |api| api).await;
    let users = server.resource("users").await;
    counted.take();
    server.subscription(&users, "http://c.example/1").await;
    // The second look is for a deletion that came between.
    assert_eq!(counted.take().of("resource").calls, 2);
    let list = format!("{users}/subscriptions");
    server
        .post(&list, r#"{"endpoint":{"url":"ftp://c.example/"}}"#)
        .await
        .refuses(400, "endpoint.url");
    server.post(&list, "[]").await.is(400);
    assert_eq!(counted.take().of("resource").calls, 2, "once each");
}
