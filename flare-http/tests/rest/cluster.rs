//! Several processes on the same stores, and one without others.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::{MemoryBackend, MemoryBroker};
use flare_core::Flare;
use flare_core::Settings;
use flare_core::cluster::{ClusterSettings, Health, Roles};
use flare_core::port::{Clock, Lease, SystemClock};
use flare_testkit::{FaultPlan, FaultyLease};
use serde_json::{Value, json};

use crate::pulling::USERS;
use crate::support::Server;

const SLOTS: u32 = 16;
const NOBODY: &str = "0192f0e0-0000-7000-8000-000000000000";

/// Every route that asks the coordination store.
const QUESTIONS: [&str; 3] = ["/cluster/health", "/cluster/nodes", "/cluster/slots"];

/// Nodes that find each other at once.
fn settings(name: &str) -> ClusterSettings {
    let mut settings = ClusterSettings::default();
    settings.name = name.to_owned();
    settings.settle_after = Duration::ZERO;
    settings.move_percent = 100;
    settings.move_every = Duration::ZERO;
    settings.call_limit = Duration::from_millis(500);
    settings
}

async fn node(memory: &MemoryBackend, lease: Arc<dyn Lease>, cluster: ClusterSettings) -> Server {
    let mut settings = Settings::default();
    settings.slots = Some(SLOTS);
    let builder = Flare::builder(memory.clone()).lease(lease);
    Server::on(builder.settings(settings).cluster(cluster), true, |api| api).await
}

async fn nodes(memory: &MemoryBackend, names: &[&str]) -> Vec<Server> {
    let mut servers = Vec::new();
    for name in names {
        servers.push(node(memory, memory.lease(), settings(name)).await);
    }
    is_shared_by(&servers[0], names.len()).await;
    servers
}

/// Waits until this many nodes have an equal part of the slots, and nothing moves.
async fn is_shared_by(server: &Server, nodes: usize) {
    let clock = SystemClock::new();
    let give_up_at = clock.now() + Duration::from_secs(60);
    loop {
        let view = server.flare.cluster().await.unwrap();
        let working = view.nodes.iter().filter(|node| node.slots > 0).count();
        if view.health == Health::Green && (view.nodes.len(), working) == (nodes, nodes) {
            return;
        }
        assert!(clock.now() < give_up_at, "{view:?}");
        clock.sleep_until(clock.now() + Duration::from_millis(5)).await;
    }
}

/// The list without what depends on who is asked.
fn without_local(mut list: Value) -> Value {
    for node in list["nodes"].as_array_mut().unwrap() {
        node.as_object_mut().unwrap().remove("local");
    }
    list
}

#[tokio::test]
async fn every_node_says_the_same() {
    let memory = MemoryBackend::new();
    let [a, b] = &nodes(&memory, &["a", "b"]).await[..] else { unreachable!() };
    let health = a.get("/cluster/health").await.is(200);
    assert_eq!(health.body, b.get("/cluster/health").await.is(200).body);
    let health = health.json();
    assert_eq!((&health["status"], &health["nodes"]), (&"green".into(), &2.into()));
    assert_eq!((&health["slots"], &health["unassigned"]), (&SLOTS.into(), &0.into()));
    assert_eq!((&health["moving"], &health["draining"]), (&0.into(), &0.into()));
    assert!(health["plan"].as_u64() > Some(0), "{health}");

    let slots = a.get("/cluster/slots").await.is(200);
    assert_eq!(slots.body, b.get("/cluster/slots").await.body);
    let listed = a.get("/cluster/nodes").await.is(200).json();
    let other = b.get("/cluster/nodes").await.json();
    assert_eq!(without_local(listed.clone()), without_local(other.clone()));

    let found = listed["nodes"].as_array().unwrap();
    assert_eq!(found.iter().map(|node| &node["name"]).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(found.iter().filter(|node| node["leader"] == true).count(), 1);
    assert!(found.iter().any(|node| node["leader"] == true && node["id"] == health["leader"]));
    assert_eq!(found[0]["roles"].to_string(), r#"["lead","work","ingest"]"#);
    for (server, list) in [(a, &listed), (b, &other)] {
        let status = server.get("/status").await.is(200).json();
        assert_eq!(status["nodes"], 2);
        for node in list["nodes"].as_array().unwrap() {
            assert_eq!(node["local"] == true, node["id"] == status["node"], "{list}");
        }
    }
    let slots = slots.json();
    assert_eq!(slots["pagination"]["total"], SLOTS);
    let slots = slots["slots"].as_array().unwrap();
    for (number, slot) in slots.iter().enumerate() {
        assert_eq!((&slot["slot"], &slot["state"]), (&number.into(), &"owned".into()));
        assert!(slot["epoch"].as_u64() > Some(0), "{slot}");
    }
    for node in found {
        let its = slots.iter().filter(|slot| slot["node"] == node["id"]).count();
        assert_eq!(node["slots"], its);
    }
}

/// Eleven were once told as ten.
#[tokio::test]
async fn a_node_says_exactly_how_many_consumers_it_works() {
    let (memory, broker) = (MemoryBackend::new(), MemoryBroker::new());
    broker.create_queue("users");
    let mut cluster = settings("a");
    cluster.publish_every = Duration::from_millis(1);
    let builder = Flare::builder(memory.clone()).source(Arc::new(broker.clone()));
    let server = Server::on(builder.cluster(cluster), true, |api| api).await;
    let users = server.resource("users").await;
    let asked = json!({
        "resource": users.rsplit('/').next().unwrap(),
        "memory": {"queue": "users"},
        "document": {"url": format!("{USERS}/{{/id}}")},
    });
    for _ in 0..11 {
        server.post("/consumers", &asked.to_string()).await.is(201);
    }
    let clock = SystemClock::new();
    let give_up_at = clock.now() + Duration::from_secs(60);
    loop {
        let listed = server.get("/cluster/nodes").await.is(200).json();
        if listed["nodes"][0]["load"]["consumers"] == 11 {
            return;
        }
        assert!(clock.now() < give_up_at, "{listed}");
        clock.sleep_until(clock.now() + Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn lists_have_pages() {
    let memory = MemoryBackend::new();
    let [a, _b] = &nodes(&memory, &["a", "b"]).await[..] else { unreachable!() };
    let page = a.get("/cluster/slots?limit=3&offset=14").await.is(200).json();
    let numbers: Vec<_> = page["slots"].as_array().unwrap().iter().map(|it| &it["slot"]).collect();
    assert_eq!(numbers, [14, 15]);
    let page = a.get("/cluster/nodes?limit=1&offset=1").await.is(200).json();
    assert_eq!((&page["nodes"][0]["name"], &page["pagination"]["total"]), (&"b".into(), &2.into()));
    for list in ["nodes", "slots"] {
        let past = a.get(&format!("/cluster/{list}?offset=9223372036854775807")).await.is(200);
        assert_eq!(past.json()[list].to_string(), "[]");
        for query in ["limit=0", "limit=1001", "limit=x"] {
            a.get(&format!("/cluster/{list}?{query}")).await.refuses(400, "limit");
        }
        a.get(&format!("/cluster/{list}?state=free")).await.refuses(400, "state");
    }
}

#[tokio::test]
async fn a_drained_node_hands_over_and_goes_on_answering() {
    let memory = MemoryBackend::new();
    let [a, b] = &nodes(&memory, &["a", "b"]).await[..] else { unreachable!() };
    let users = a.resource("users").await;
    let one = a.subscription(&users, "http://c.example/{id}").await;
    let leaving = a.get("/cluster/nodes?offset=1").await.json()["nodes"][0]["id"].clone();
    let drain = format!("/cluster/nodes/{}/drain", leaving.as_str().unwrap());
    let asked = a.call("POST", &drain, None).await.is(202).json();
    assert_eq!(asked["draining"], leaving);
    is_shared_by(a, 1).await;
    // It is not there any more, whoever is asked.
    for server in [a, b] {
        server.post(&drain, "{}").await.is(404);
        let health = server.get("/cluster/health").await.is(200).json();
        assert_eq!((&health["nodes"], &health["unassigned"]), (&1.into(), &0.into()));
        assert_eq!(server.get("/status").await.is(200).json()["nodes"], 1);
    }
    let rest = b.get("/cluster/nodes").await.json();
    assert_eq!(
        (&rest["nodes"][0]["name"], &rest["nodes"][0]["local"]),
        (&"a".into(), &false.into())
    );
    b.get("/health/ready").await.is(200);
    b.put("/documents/http://api.example.com/users/1", r#"{"rev":1}"#).await.is(202);
    b.flare.settled(Duration::from_secs(60)).await.unwrap();
    assert_eq!(a.clients.requests().len(), 1, "the other one delivers");
    for server in [a, b] {
        let status = server.get(&format!("{one}/status")).await.is(200).json();
        assert_eq!(status["node"], rest["nodes"][0]["id"]);
    }
}

#[tokio::test]
async fn draining_may_be_repeated_and_knows_whom() {
    let memory = MemoryBackend::new();
    let [a, b] = &nodes(&memory, &["a", "b"]).await[..] else { unreachable!() };
    let id = b.get("/status").await.json()["node"].as_str().unwrap().to_owned();
    let path = format!("/cluster/nodes/{id}/drain");
    for wrong in ["1", "b", NOBODY] {
        a.post(&format!("/cluster/nodes/{wrong}/drain"), "{}").await.is(404);
    }
    a.post(&path, r#"{"x":1}"#).await.refuses(400, "x");
    a.send("POST", &path, &[], b"{}").await.is(415);
    a.post(&format!("{path}?x=1"), "{}").await.refuses(400, "x");
    a.get(&path).await.is(405);
    assert_eq!(a.get("/cluster/health").await.json()["nodes"], 2, "nobody was drained");
    // Whether it has left between the two or not: nobody else is.
    for _ in 0..2 {
        let answer = a.post(&path, "{}").await;
        assert!(matches!(answer.status, 202 | 404), "{answer:?}");
    }
    is_shared_by(a, 1).await;
}

#[tokio::test]
async fn the_status_of_a_subscription_names_who_works_its_slot() {
    let memory = MemoryBackend::new();
    let [a, b] = &nodes(&memory, &["a", "b"]).await[..] else { unreachable!() };
    let users = a.resource("users").await;
    let slots = a.get("/cluster/slots").await.json();
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..20 {
        let one = a.subscription(&users, &format!("http://c{number}.example/{{id}}")).await;
        let status = a.get(&format!("{one}/status")).await.is(200).json();
        let slot = status["queue"].as_str().unwrap().strip_prefix("slot-").unwrap();
        let worker = &slots["slots"][slot.parse::<usize>().unwrap()]["node"];
        assert_eq!(&status["node"], worker);
        assert_eq!(&b.get(&format!("{one}/status")).await.json()["node"], worker);
        seen.insert(worker.to_string());
    }
    assert_eq!(seen.len(), 2, "both work some");
}

#[tokio::test]
async fn a_coordination_store_that_is_away_is_503() {
    let memory = MemoryBackend::new();
    let plan = FaultPlan::seeded(1);
    let faulty = Arc::new(FaultyLease::new(memory.lease(), plan.clone()));
    let server = node(&memory, faulty, settings("a")).await;
    is_shared_by(&server, 1).await;
    let users = server.resource("users").await;
    let one = server.subscription(&users, "http://c.example/{id}").await;
    let _broken = plan.clone().with_before(1.0);
    for path in QUESTIONS {
        server.get(path).await.is(503);
    }
    server.post(&format!("/cluster/nodes/{NOBODY}/drain"), "{}").await.is(503);
    // What is no question about the cluster does not depend on it.
    assert_eq!(server.get("/status").await.is(200).json()["nodes"], 1);
    server.get(&format!("{one}/status")).await.is(200);
}

#[tokio::test]
async fn a_coordination_store_that_hangs_is_given_up_in_time() {
    let memory = MemoryBackend::new();
    let (clock, hour) = (Arc::new(SystemClock::new()), Duration::from_hours(1));
    let slow = FaultyLease::new(memory.lease(), FaultPlan::seeded(1)).delaying(1.0, hour, clock);
    let server = node(&memory, Arc::new(slow), settings("a")).await;
    for path in QUESTIONS {
        let answer = server.get(path).await.is(503);
        assert!(answer.body.contains("did not answer in time"), "{answer:?}");
    }
    server.get("/status").await.is(200);
}

#[tokio::test]
async fn a_node_that_only_works_says_so_to_whoever_brings_documents() {
    let memory = MemoryBackend::new();
    let mut only_works = settings("a");
    only_works.roles = Roles::WORKER_ONLY;
    let server = node(&memory, memory.lease(), only_works).await;
    server.resource("users").await;
    for (method, body) in [("PUT", Some(r#"{"rev":1}"#)), ("DELETE", None)] {
        let path = "/documents/http://api.example.com/users/1";
        let answer = server.call(method, path, body).await.is(503);
        assert!(answer.body.contains("to another one"), "{answer:?}");
    }
    is_shared_by(&server, 1).await;
    let listed = server.get("/cluster/nodes").await.json();
    assert_eq!(listed["nodes"][0]["roles"].to_string(), r#"["lead","work"]"#);
}

#[tokio::test]
async fn a_node_alone_is_a_cluster_of_one() {
    let server = Server::start().await;
    let health = server.get("/cluster/health").await.is(200).json();
    assert_eq!((&health["status"], &health["nodes"]), (&"green".into(), &1.into()));
    assert_eq!((&health["slots"], &health["unassigned"]), (&1_024.into(), &0.into()));
    let id = server.get("/status").await.json()["node"].clone();
    let node = &server.get("/cluster/nodes").await.is(200).json()["nodes"][0];
    assert_eq!((&node["id"], &node["slots"]), (&id, &1_024.into()));
    assert_eq!((&node["local"], &node["leader"]), (&true.into(), &true.into()));
    let slots = server.get("/cluster/slots?offset=1020&limit=9").await.is(200).json();
    assert_eq!(slots["slots"].as_array().unwrap().len(), 4);
    assert_eq!((&slots["slots"][0]["state"], &slots["slots"][0]["node"]), (&"owned".into(), &id));

    let own = format!("/cluster/nodes/{}/drain", id.as_str().unwrap());
    let refused = server.post(&own, "{}").await.is(409);
    assert!(refused.body.contains("only node that works"), "{refused:?}");
    server.post(&format!("/cluster/nodes/{NOBODY}/drain"), "{}").await.is(404);

    let idle = Server::on(Flare::builder(MemoryBackend::new()), false, |api| api).await;
    let health = idle.get("/cluster/health").await.is(200).json();
    assert_eq!((&health["status"], &health["unassigned"]), (&"red".into(), &1_024.into()));
    assert_eq!(idle.get("/cluster/slots").await.json()["slots"][0]["state"], "free");
}
