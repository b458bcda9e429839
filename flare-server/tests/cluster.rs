//! Several `flare` processes that share the work, with everything in one MongoDB database.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
mod nodes;

use std::process::ExitCode;
use std::time::Duration;

use common::{flare, run};
use flare_testkit::{Answer, HttpTarget, Service, Trials};
use nodes::{Stores, a_node_that_ends_hands_over, asked, id, is_shared_by};

const ADA: &str = "/documents/http://api.example.com/users/ada";

/// How long a lease on MongoDB lives.
const TTL: Duration = Duration::from_secs(15);

fn main() -> ExitCode {
    // One after the other, as each has the machine busy.
    Trials::on(Service::MONGODB)
        .at_a_time(1)
        .test("a_node_that_ends_hands_over", ends)
        .test("a_drained_node_goes_on_answering", a_drained_node_goes_on_answering)
        .test("nodes_have_roles", nodes_have_roles)
        .run()
}

fn leases() -> [String; 1] {
    ["lease.engine=mongodb".to_owned()]
}

async fn ends(uri: String) {
    a_node_that_ends_hands_over(&Stores::new(&uri, "ends", &leases()), TTL).await;
}

async fn a_drained_node_goes_on_answering(uri: String) {
    let stores = Stores::new(&uri, "drained", &leases());
    let client = HttpTarget::start(Answer::status(204)).await;
    let (stays, mut leaves) = (stores.node("stays", &[]), stores.node("leaves", &[]));
    is_shared_by(&stays, 2).await;
    let drain = format!("/cluster/nodes/{}/drain", id(&leaves));
    let (status, body) = stays.post(&drain, "{}");
    assert_eq!(status, 202, "{body}");
    is_shared_by(&leaves, 1).await;
    assert_eq!(stays.post(&drain, "{}").0, 404, "it is not there any more");
    let (status, why) = leaves.get("/health/ready");
    assert_eq!(status, 200, "{why}\n{}", leaves.log());
    stays.subscribe(&client.url(""));
    assert_eq!(leaves.put(ADA, r#"{"revision":1}"#).0, 202);
    while client.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    leaves.terminate();
    assert!(leaves.wait().success(), "{}", leaves.log());
    assert_eq!(asked(&stays, "/cluster/health")["status"], "green");
    let (code, shown, err) = run(&mut flare(&["status", "--url", &stays.url()]));
    assert!(code == 0 && shown.contains("cluster leader"), "{shown}{err}");
}

/// A node that does not work is one of the cluster, and one that takes no documents says so.
async fn nodes_have_roles(uri: String) {
    let stores = Stores::new(&uri, "roles", &leases());
    let client = HttpTarget::start(Answer::status(204)).await;
    let works = stores.node("works", &["cluster.roles=work,lead"]);
    is_shared_by(&works, 1).await;
    let mut takes = stores.node("takes", &["worker.enable=false"]);
    while asked(&works, "/cluster/health")["nodes"] != 2 {
        tokio::task::yield_now().await;
    }
    let listed = asked(&takes, "/cluster/nodes");
    let shown =
        |at: usize| (listed["nodes"][at]["name"].clone(), listed["nodes"][at]["roles"].to_string());
    assert_eq!(shown(0), ("works".into(), r#"["lead","work"]"#.to_owned()));
    assert_eq!(shown(1), ("takes".into(), r#"["lead","ingest"]"#.to_owned()));
    takes.subscribe(&client.url(""));
    let (status, body) = works.put(ADA, r#"{"revision":1}"#);
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("takes no documents"), "{body}");
    assert_eq!(takes.put(ADA, r#"{"revision":1}"#).0, 202);
    while client.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    takes.terminate();
    assert!(takes.wait().success(), "{}", takes.log());
    assert_eq!(asked(&works, "/cluster/health")["unassigned"], 0);
}
