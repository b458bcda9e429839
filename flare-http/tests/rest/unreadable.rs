//! What this version cannot read: shown among the others, refused what it cannot be asked, deleted.

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::model::{RecordName, WhyUnreadable};

use crate::pulling::{Pulling, last};
use crate::support::Server;

#[tokio::test]
async fn a_subscription_is_listed_shown_and_deleted() {
    let memory = MemoryBackend::new();
    let server = Server::on(Flare::builder(memory.clone()), true, |api| api).await;
    let users = server.resource("users").await;
    let list = format!("{users}/subscriptions");
    let mut paths = Vec::new();
    for number in 0..3 {
        paths.push(server.subscription(&users, &format!("http://c.example/{number}")).await);
    }
    let path = &paths[1];
    let id = last(path);
    let name = RecordName::Subscription(id.parse().unwrap());
    memory.repository().spoil(name, Some(WhyUnreadable::Newer { needs: 2 }));

    let listed = server.get(&list).await.is(200).json();
    assert_eq!(listed["pagination"]["total"], 3);
    let ids: Vec<_> =
        listed["subscriptions"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    let wanted: Vec<_> = paths.iter().map(|path| last(path)).collect();
    assert_eq!(ids, wanted, "in its place");
    let shown = &listed["subscriptions"][1];
    assert_eq!(shown["status"], "unreadable");
    assert_eq!(shown["resource"], last(&users));
    assert!(shown["reason"].as_str().unwrap().contains("format 2"), "{shown}");

    let read = server.get(path).await.is(200);
    assert_eq!((read.json(), read.header("etag")), (shown.clone(), None));
    let status = server.get(&format!("{path}/status")).await.is(200).json();
    assert_eq!((&status["status"], &status["reason"]), (&shown["status"], &shown["reason"]));
    let body = r#"{"endpoint":{"url":"http://c.example/new"}}"#;
    let refused = server.put(path, body).await.is(409).json();
    assert!(refused["error"]["detail"].as_str().unwrap().contains("format 2"), "{refused}");
    for operation in ["pause", "resume", "retry", "replay"] {
        server.post(&format!("{path}/{operation}"), "{}").await.is(409);
    }
    server.get(&format!("{path}/dead-letters")).await.is(409);
    let other = server.resource("others").await;
    server.get(&format!("{other}/subscriptions/{id}")).await.is(404);

    let node = server.get("/status").await.is(200).json();
    assert_eq!(node["unreadable"][0]["kind"], "subscription", "{node}");
    assert_eq!(node["unreadable"][0]["id"], id);
    assert_eq!(node["unreadable"][0]["newer"], true);
    server.get("/health/ready").await.is(200);

    server.send("DELETE", path, &[("if-match", "\"1\"")], b"").await.is(412);
    server.delete(path).await.is(204);
    server.delete(path).await.is(404);
    server.get(path).await.is(404);
    assert_eq!(server.get(&list).await.json()["pagination"]["total"], 2);
}

#[tokio::test]
async fn a_resource_is_listed_shown_and_deleted() {
    let memory = MemoryBackend::new();
    let server = Server::on(Flare::builder(memory.clone()), true, |api| api).await;
    let [users, notes] = [server.resource("users").await, server.resource("notes").await];
    let name = RecordName::Resource(last(&users).parse().unwrap());
    let detail = "resource is not understood".to_owned();
    memory.repository().spoil(name, Some(WhyUnreadable::Damaged { detail }));

    let listed = server.get("/resources").await.is(200).json();
    assert_eq!(listed["pagination"]["total"], 2);
    let shown = &listed["resources"][0];
    assert_eq!((&shown["id"], &shown["status"]), (&last(&users).into(), &"unreadable".into()));
    assert_eq!(listed["resources"][1]["id"], last(&notes));
    assert_eq!(server.get(&users).await.is(200).json(), *shown);
    server.get(&format!("{users}/subscriptions")).await.is(200);
    let document = "/documents/http://api.example.com/users/1";
    server.put(document, r#"{"rev":1}"#).await.is(409);
    server.put("/documents/http://api.example.com/notes/1", r#"{"rev":1}"#).await.is(202);
    server.delete(&users).await.is(204);
    server.get(&users).await.is(404);
    assert_eq!(server.get("/resources").await.json()["pagination"]["total"], 1);
}

#[tokio::test]
async fn a_consumer_is_listed_shown_and_deleted() {
    let at = Pulling::start().await;
    let paths = [at.create(&at.asked()).await, at.create(&at.asked()).await];
    let path = &paths[0];
    let name = RecordName::Consumer(last(path).parse().unwrap());
    at.memory.repository().spoil(name, Some(WhyUnreadable::Newer { needs: 2 }));

    let listed = at.server.get("/consumers").await.is(200).json();
    assert_eq!(listed["pagination"]["total"], 2);
    let ids: Vec<_> = listed["consumers"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, paths.iter().map(|path| last(path)).collect::<Vec<_>>(), "in its place");
    let shown = &listed["consumers"][0];
    assert_eq!(
        (&shown["status"], &shown["resource"]),
        (&"unreadable".into(), &at.resource().into())
    );
    let read = at.server.get(path).await.is(200);
    assert_eq!((read.json(), read.header("etag")), (shown.clone(), None));
    at.server.put(path, &at.asked().to_string()).await.is(409);
    for below in ["status", "rejects", "producers"] {
        at.server.get(&format!("{path}/{below}")).await.is(409);
    }
    for operation in ["pause", "resume", "rejects/retry"] {
        at.server.post(&format!("{path}/{operation}"), "{}").await.is(409);
    }
    let node = at.server.get("/status").await.is(200).json();
    assert_eq!(node["unreadable"][0]["kind"], "consumer", "{node}");

    at.server.send("DELETE", path, &[("if-match", "\"1\"")], b"").await.is(412);
    at.server.delete(path).await.is(204);
    at.server.get(path).await.is(404);
    assert_eq!(at.server.get("/consumers").await.json()["pagination"]["total"], 1);
}
