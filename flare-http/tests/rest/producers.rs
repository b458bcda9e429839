//! A consumer's producers: the subscriptions of its resource, by another path.

use std::time::Duration;

use serde_json::json;

use crate::pulling::{Pulling, last};

const HOOK: &str = r#"{"endpoint":{"url":"http://c.example/{id}"}}"#;

#[tokio::test]
async fn are_the_subscriptions_of_its_resource() {
    let at = Pulling::start().await;
    let server = &at.server;
    let consumer = at.create(&at.asked()).await;
    let producers = format!("{consumer}/producers");
    assert_eq!(server.get(&producers).await.is(200).json()["producers"], json!([]));
    let created = server.post(&producers, HOOK).await.is(201);
    let path = created.header("location").unwrap().to_owned();
    assert_eq!(path, format!("{producers}/{}", created.json()["id"].as_str().unwrap()));
    assert_eq!(created.json()["resource"], at.resource());
    assert!(created.header("etag").is_some());
    // What is pulled is delivered to it.
    at.publish("users", &json!({"id": 1, "rev": 1}));
    at.until(format!("{consumer}/status"), |it| it["accepted"] == 1).await;
    server.flare.settled(Duration::from_secs(30)).await.unwrap();
    assert_eq!(server.clients.requests().len(), 1);

    let same = format!("{}/subscriptions/{}", at.users, last(&path));
    let (one, other) = (server.get(&path).await.is(200), server.get(&same).await.is(200));
    assert_eq!((one.json(), one.header("etag")), (other.json(), other.header("etag")));
    let second = server.subscription(&at.users, "http://d.example/{id}").await;
    let list = server.get(&producers).await.is(200).json();
    assert_eq!(list["pagination"]["total"], 2);
    let all = server.get(&format!("{}/subscriptions", at.users)).await.is(200).json();
    assert_eq!(list["producers"], all["subscriptions"]);
    let page = server.get(&format!("{producers}?limit=1&offset=1")).await.is(200).json();
    assert_eq!(page["producers"][0]["id"], last(&second));

    server.post(&producers, HOOK).await.refuses(409, "endpoint.url");
    server.post(&producers, r#"{"endpoint":{"url":"ftp://x"}}"#).await.refuses(400, "endpoint.url");
    server.send("POST", &producers, &[], HOOK.as_bytes()).await.is(415);
    server.get(&format!("{producers}?x=1")).await.refuses(400, "x");
    let moved = r#"{"endpoint":{"url":"http://e.example/{id}"}}"#;
    let tag = one.header("etag").unwrap();
    let json = ("content-type", "application/json");
    let put = async |tag: &str| {
        server.send("PUT", &path, &[json, ("if-match", tag)], moved.as_bytes()).await
    };
    let replaced = put(tag).await.is(200);
    assert_eq!(replaced.json()["endpoint"]["url"], "http://e.example/{id}");
    put(tag).await.refuses(412, "If-Match");
    assert_eq!(server.get(&same).await.json(), replaced.json());
    server.send("DELETE", &path, &[("if-match", tag)], b"").await.is(412);
    server.delete(&path).await.is(204);
    server.delete(&path).await.is(404);
    server.get(&same).await.is(404);
    assert_eq!(server.get(&producers).await.json()["pagination"]["total"], 1);
}

#[tokio::test]
async fn one_of_another_resource_is_not_there() {
    let at = Pulling::start().await;
    let consumer = at.create(&at.asked()).await;
    let orders = at.server.resource("orders").await;
    let other = at.server.subscription(&orders, "http://c.example/{id}").await;
    let path = format!("{consumer}/producers/{}", last(&other));
    at.server.get(&path).await.is(404);
    at.server.put(&path, HOOK).await.is(404);
    at.server.delete(&path).await.is(404);
    at.server.get(&other).await.is(200);
}
