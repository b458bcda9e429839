//! The example of a cluster, run as a user would, where there are etcd and MongoDB.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::process::{Command, ExitCode};

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    Trials::on(Service::ETCD)
        .test("slots_move_and_nothing_is_lost", slots_move_and_nothing_is_lost)
        .test("without_a_server_it_says_so", without_a_server_it_says_so)
        .run()
}

fn cluster(etcd: &str, namespace: &str) -> (bool, String, String) {
    let mongodb = Service::MONGODB.address().expect("the cluster needs MongoDB beside etcd");
    let mut program = Command::new(env!("CARGO_BIN_EXE_cluster"));
    program.arg(namespace).env("FLARE_MONGODB_URI", mongodb).env("FLARE_ETCD_ENDPOINTS", etcd);
    let output = program.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

async fn slots_move_and_nothing_is_lost(etcd: String) {
    let namespace = format!("flare-example-cluster-{}", std::process::id());
    // The second run begins afresh, on what the first one left.
    for _ in 0..2 {
        let (success, printed, errors) = cluster(&etcd, &namespace);
        assert!(success, "{printed}\n{errors}");
        let mut rest = printed.lines();
        for part in [
            "three nodes start",
            "every slot is worked",
            "is killed",
            "the others work its slots",
            "node b is started again",
            "it has its share",
            "told in the wrong order: 0",
            "clients without the newest version of a document: 0",
            "Every client has the newest version of every document.",
            "the nodes have left",
        ] {
            assert!(
                rest.any(|line| line.contains(part)),
                "{part:?} is missing, or out of order:\n{printed}\n{errors}"
            );
        }
    }
    drop_database(&namespace).await;
}

async fn drop_database(name: &str) {
    let uri = Service::MONGODB.address().expect("it was there");
    let client = mongodb::Client::with_uri_str(uri).await.unwrap();
    client.database(name).drop().await.unwrap();
}

async fn without_a_server_it_says_so(_etcd: String) {
    let (success, printed, errors) = cluster("http://127.0.0.1:1", "nowhere");
    assert!(!success && printed.is_empty(), "{printed}");
    assert!(errors.contains("connect"), "{errors}");
}
