//! Slots given to nodes, and subscriptions given slots of their own.

use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::cluster::{ClusterSettings, Health};
use flare_core::{Flare, Settings};
use flare_http::auth::{Scope, Tokens};

use crate::support::Server;

const SLOTS: u32 = 8;
const RESERVED: u32 = 1;

/// A node with its own name, that takes part in the cluster of these stores.
async fn node(memory: &MemoryBackend, name: &str) -> Server {
    let mut settings = Settings::default();
    (settings.slots, settings.pinned_slots) = (Some(SLOTS), RESERVED);
    let mut cluster = ClusterSettings::default();
    cluster.name = name.to_owned();
    cluster.settle_after = Duration::ZERO;
    cluster.move_percent = 100;
    cluster.move_every = Duration::ZERO;
    let builder = Flare::builder(memory.clone()).settings(settings).cluster(cluster);
    Server::on(builder, true, |api| api).await
}

/// Two nodes that have all slots between them.
async fn two() -> (Server, Server) {
    let memory = MemoryBackend::new();
    let both = (node(&memory, "a").await, node(&memory, "b").await);
    loop {
        let view = both.0.flare.cluster().await.unwrap();
        if view.health == Health::Green && view.nodes.iter().all(|node| node.slots > 0) {
            return both;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_slot_goes_to_the_node_that_is_named() {
    let (a, b) = two().await;
    let nodes = a.get("/cluster/nodes").await.is(200).json();
    for node in nodes["nodes"].as_array().unwrap() {
        let body = format!(r#"{{"node":{}}}"#, node["name"]);
        let pinned = a.put("/cluster/slots/3/pin", &body).await.is(200).json();
        assert_eq!((&pinned["slot"], &pinned["pin"]), (&3.into(), &node["name"]));
        let again = b.put("/cluster/slots/3/pin", &body).await.is(200).json();
        assert_eq!(again["pin"], node["name"], "it may be repeated");
        loop {
            let slots = b.get("/cluster/slots").await.is(200).json();
            let pins = slots["slots"].as_array().unwrap().iter();
            let pinned: Vec<_> = pins.filter(|slot| slot.get("pin").is_some()).collect();
            assert_eq!((pinned.len(), &pinned[0]["pin"]), (1, &node["name"]));
            if pinned[0]["node"] == node["id"] && pinned[0]["state"] == "owned" {
                break;
            }
        }
    }
    for server in [&a, &b] {
        server.delete("/cluster/slots/3/pin").await.is(204);
        let slots = server.get("/cluster/slots").await.is(200);
        assert!(!slots.body.contains("\"pin\""), "{slots:?}");
    }
}

#[tokio::test]
async fn what_is_no_slot_or_no_node_is_refused() {
    let (a, _b) = two().await;
    let body = r#"{"node":"a"}"#;
    for slot in ["9", "4294967296", "-1", "03", "x", "%ff"] {
        let path = format!("/cluster/slots/{slot}/pin");
        a.put(&path, body).await.is(404);
        a.delete(&path).await.is(404);
    }
    let path = "/cluster/slots/0/pin";
    let refused = a.put(path, r#"{"node":"c"}"#).await.refuses(400, "node");
    assert!(refused.body.contains("there are a, b"), "{refused:?}");
    for (body, field) in [("{}", "node"), (r#"{"node":7}"#, "node"), (r#"{"node":"a","x":1}"#, "x")]
    {
        a.put(path, body).await.refuses(400, field);
    }
    a.call("PUT", path, None).await.is(415);
    a.put(&format!("{path}?x=1"), body).await.refuses(400, "x");
    let slots = a.get("/cluster/slots").await.is(200);
    assert!(!slots.body.contains("\"pin\""), "nothing was changed: {slots:?}");
}

#[tokio::test]
async fn a_subscription_gets_a_slot_of_its_own() {
    let (a, b) = two().await;
    let users = a.resource("users").await;
    let orders = a.resource("orders").await;
    let one = a.subscription(&users, "http://c.example/{id}").await;
    let other = a.subscription(&users, "http://d.example/{id}").await;
    let (pin, rival) = (format!("{one}/pin"), format!("{other}/pin"));
    for body in [None, Some("{}")] {
        let pinned = b.call("PUT", &pin, body).await.is(200).json();
        assert_eq!(pinned, serde_json::json!({ "slot": SLOTS }), "the reserved one");
    }
    a.call("PUT", &rival, None).await.refuses(409, "slot");
    a.put("/documents/http://api.example.com/users/1", r#"{"rev":1}"#).await.is(202);
    a.flare.settled(Duration::from_secs(600)).await.unwrap();
    for _ in 0..2 {
        a.delete(&pin).await.is(204);
    }
    assert_eq!(a.call("PUT", &rival, None).await.is(200).json()["slot"], SLOTS);

    for body in [r#"{"lane":0}"#, r#"{"lane":"x"}"#] {
        a.put(&pin, body).await.refuses(400, "lane");
    }
    a.put(&pin, r#"{"slot":1}"#).await.refuses(400, "slot");
    a.put(&format!("{pin}?x=1"), "{}").await.refuses(400, "x");
    let id = one.rsplit('/').next().unwrap();
    let unknown = "0192f0e0-0000-7000-8000-000000000000";
    for nowhere in [
        format!("{orders}/subscriptions/{id}/pin"),
        format!("{users}/subscriptions/{unknown}/pin"),
        format!("{users}/subscriptions/x/pin"),
    ] {
        a.put(&nowhere, "{}").await.is(404);
        a.delete(&nowhere).await.is(404);
    }
}

#[tokio::test]
async fn only_an_admin_gives_slots_away() {
    const WRITE: &str = "write-write-write-write";
    const ADMIN: &str = "admin-admin-admin-admin";
    let tokens = Tokens::new().with(WRITE, Scope::Write).unwrap();
    let tokens = tokens.with(ADMIN, Scope::Admin).unwrap();
    let server = Server::with(|api| api.auth(tokens)).await;
    let name = server.flare.cluster().await.unwrap().nodes[0].record.as_ref().unwrap().name.clone();
    let body = serde_json::json!({ "node": name }).to_string();
    let path = "/cluster/slots/0/pin";
    for (token, put, delete) in [(WRITE, 403, 403), (ADMIN, 200, 204)] {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        server.send("PUT", path, &headers, body.as_bytes()).await.is(put);
        server.send("DELETE", path, &headers, b"").await.is(delete);
    }
}
