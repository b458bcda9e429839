//! Takes stores that all nodes reach; gives servers that share the work on them, and what has to
//! hold whatever their leases are kept in. Drops its database when it is dropped.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::print_stderr,
    reason = "figures, and a scratch database that stays, are worth a line"
)]
#![allow(clippy::disallowed_methods, reason = "other processes' time is real")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flare_testkit::{Answer, HttpTarget};
use serde_json::Value;

use crate::common::{Server, flare, request, run};

/// Longer than anything takes on a busy machine; only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(300);

/// Between two looks, so that looking is not what keeps the stores busy.
const PAUSE: Duration = Duration::from_millis(100);

const SUBSCRIPTIONS: usize = 24;
const DOCUMENTS: usize = 4;

/// A database that nobody else uses, and where leases are kept.
pub(crate) struct Stores {
    uri: String,
    name: String,
    leases: Vec<String>,
}

impl Stores {
    /// Set up, with leases as these settings say.
    pub(crate) fn new(uri: &str, name: &str, leases: &[String]) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let name = format!("flare-cluster-{name}-{now}");
        let stores = Self { uri: uri.to_owned(), name, leases: leases.to_vec() };
        let (code, out, err) = run(flare(&["setup", "--yes"]).args(stores.flags()));
        assert_eq!(code, 0, "{out}{err}");
        stores
    }

    /// The same flags for every command.
    pub(crate) fn flags(&self) -> Vec<String> {
        let settings = [
            "repository.engine=mongodb".to_owned(),
            "queue.engine=mongodb".to_owned(),
            format!("repository.mongodb.uri={}", self.uri),
            format!("repository.mongodb.database={}", self.name),
            // Tests share their machine, so a call may take long.
            "repository.mongodb.timeout=60s".to_owned(),
        ];
        settings.iter().chain(&self.leases).map(|setting| format!("--set={setting}")).collect()
    }

    /// A node of the cluster, and settings of its own.
    pub(crate) fn node(&self, name: &str, more: &[&str]) -> Server {
        let mut flags = self.flags();
        flags.push("--set=cluster.enable=true".to_owned());
        flags.push(format!("--set=cluster.name={name}"));
        flags.push("--set=http.server.timeout=60s".to_owned());
        flags.extend(more.iter().map(|setting| format!("--set={setting}")));
        Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        let (uri, name) = (self.uri.clone(), self.name.clone());
        // Dropping is not async, and the runtime it happens on may be ending.
        let dropped = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
                client.database(&name).drop().await
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("could not drop {}: {error}", self.name);
        }
    }
}

/// What a server says about the cluster; asked again while the stores are too busy to say.
pub(crate) fn asked(server: &Server, path: &str) -> Value {
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        let (status, body) = server.get(path);
        if status == 200 {
            return serde_json::from_str(&body).unwrap();
        }
        assert_eq!(status, 503, "{body}\n{}", server.log());
        assert!(Instant::now() < give_up_at, "{body}\n{}", server.log());
        thread::sleep(PAUSE);
    }
}

/// The node that a server is.
pub(crate) fn id(server: &Server) -> String {
    asked(server, "/status")["node"].as_str().unwrap().to_owned()
}

async fn until(what: &str, server: &Server, mut holds: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < give_up_at, "{what}\n{}", server.log());
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until all slots are worked by so many nodes, each with at least its part less a fifth.
pub(crate) async fn is_shared_by(server: &Server, nodes: u64) {
    let shared = || {
        let health = asked(server, "/cluster/health");
        let (slots, list) = (health["slots"].as_u64().unwrap(), asked(server, "/cluster/nodes"));
        let list = list["nodes"].as_array().unwrap();
        let fair = |node: &Value| node["slots"].as_u64().unwrap() * 10 * nodes >= slots * 8;
        health["status"] == "green" && list.len() as u64 == nodes && list.iter().all(fair)
    };
    until("the slots are shared", server, shared).await;
}

/// Two nodes share the work. One is asked to end while clients are told all the time: the other one
/// takes over before a lease could have lapsed, and every client gets the newest of everything.
pub(crate) async fn a_node_that_ends_hands_over(stores: &Stores, ttl: Duration) {
    let client = HttpTarget::start(Answer::status(204)).await;
    let (stays, mut ends) = (stores.node("stays", &[]), stores.node("ends", &[]));
    is_shared_by(&stays, 2).await;
    is_shared_by(&ends, 2).await;
    for path in ["/cluster/health", "/cluster/slots?limit=1000", "/cluster/slots?offset=1000"] {
        assert_eq!(asked(&stays, path), asked(&ends, path), "both say the same");
    }
    assert_eq!(asked(&stays, "/cluster/health")["nodes"], 2);

    let resource =
        r#"{"endpoint":"http://api.example.com/users/{id}","change":{"field":"revision"}}"#;
    let (_, resource) = stays.post("/resources", resource);
    let path = format!("/resources/{}/subscriptions", crate::common::id(&resource));
    let mut workers = BTreeMap::<String, usize>::new();
    for number in 0..SUBSCRIPTIONS {
        let url = client.url(&format!("/{number}/{{id}}"));
        // From either of them, as both know of all.
        let server = if number % 2 == 0 { &stays } else { &ends };
        let (status, made) = server.post(&path, &format!(r#"{{"endpoint":{{"url":"{url}"}}}}"#));
        assert_eq!(status, 201, "{made}");
        let status = asked(&stays, &format!("{path}/{}/status", crate::common::id(&made)));
        *workers.entry(status["node"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(workers.len(), 2, "both work: {workers:?}");

    let over = Arc::new(AtomicBool::new(false));
    let (writing, addr) = (Arc::clone(&over), stays.addr);
    let writer = thread::spawn(move || {
        let mut revision = 0;
        while !writing.load(Ordering::Relaxed) {
            revision += 1;
            for document in 0..DOCUMENTS {
                let path = format!("/documents/http://api.example.com/users/{document}");
                let body = format!(r#"{{"revision":{revision}}}"#);
                assert_eq!(request(addr, "PUT", &path, &body).0, 202);
            }
        }
        revision
    });
    let all_told = || told(&client).len() == SUBSCRIPTIONS * DOCUMENTS;
    until("everybody was told something", &stays, all_told).await;

    ends.terminate();
    let began = Instant::now();
    until("the other one has all slots", &stays, || {
        let health = asked(&stays, "/cluster/health");
        health["nodes"] == 1 && health["unassigned"] == 0 && health["moving"] == 0
    })
    .await;
    let took = began.elapsed();
    assert!(ends.wait().success(), "{}", ends.log());
    assert!(!ends.log().contains("in time"), "{}", ends.log());
    assert!(took < ttl, "{took:?}\n{}", ends.log());

    over.store(true, Ordering::Relaxed);
    let newest = writer.join().unwrap();
    until("everybody has the newest", &stays, || {
        let told = told(&client);
        told.values().filter(|revisions| revisions.last() == Some(&newest)).count()
            == SUBSCRIPTIONS * DOCUMENTS
    })
    .await;
    let mut again = 0;
    for (path, revisions) in told(&client) {
        assert!(revisions.is_sorted(), "{path} was told {revisions:?}");
        again += revisions.windows(2).filter(|pair| pair[0] == pair[1]).count();
    }
    eprintln!(
        "handed over in {took:?}; {} requests, {again} of them a second time, {newest} revisions",
        client.requests().len()
    );
    assert_eq!(again, 0, "nothing is told twice by nodes that part in good order");
}

/// The revisions each client was told of each document, in order.
fn told(client: &HttpTarget) -> BTreeMap<String, Vec<i64>> {
    let mut told = BTreeMap::<String, Vec<i64>>::new();
    for request in client.requests() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        told.entry(request.target).or_default().push(body["revision"].as_i64().unwrap());
    }
    told
}
