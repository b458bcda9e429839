//! The `flare` program with its leases on etcd, and everything else in MongoDB.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;
mod nodes;

use std::process::ExitCode;
use std::time::Duration;

use common::{Server, flare, run};
use flare_testkit::{Answer, HttpTarget, Service, Trials};
use nodes::{Stores, a_node_that_ends_hands_over};

fn main() -> ExitCode {
    // One after the other, as each has the machine busy.
    Trials::on(Service::ETCD)
        .at_a_time(1)
        .test("a_node_that_ends_hands_over", ends)
        .test("two_share_the_work_and_one_goes_on", two_share_the_work_and_one_goes_on)
        .test("there_is_nothing_to_set_up", there_is_nothing_to_set_up)
        .test("a_server_that_cannot_be_reached", a_server_that_cannot_be_reached)
        .test("passwords_are_never_printed", passwords_are_never_printed)
        .run()
}

fn mongodb() -> String {
    std::env::var("FLARE_TEST_MONGODB_URI").expect("it needs MongoDB beside etcd")
}

/// Keys of etcd that nobody else uses.
fn leases(endpoints: &str, name: &str) -> [String; 3] {
    [
        "lease.engine=etcd".to_owned(),
        format!("lease.etcd.endpoints={endpoints}"),
        format!("lease.etcd.prefix=server-{name}-{}/", std::process::id()),
    ]
}

async fn ends(endpoints: String) {
    let stores = Stores::new(&mongodb(), "etcd", &leases(&endpoints, "ends"));
    a_node_that_ends_hands_over(&stores, Duration::from_secs(15)).await;
}

async fn two_share_the_work_and_one_goes_on(endpoints: String) {
    const ADA: &str = "/documents/http://api.example.com/users/ada";
    let stores = Stores::new(&mongodb(), "alone", &leases(&endpoints, "alone"));
    let client = HttpTarget::start(Answer::status(204)).await;
    let flags = stores.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (mut works, waits) = (Server::start(&flags), Server::start(&flags));
    works.subscribe(&client.url(""));
    for (server, revision) in [(&works, 1), (&waits, 2)] {
        assert_eq!(server.put(ADA, &format!(r#"{{"revision":{revision}}}"#)).0, 202);
        while client.requests().len() < revision {
            tokio::task::yield_now().await;
        }
    }
    works.terminate();
    assert!(works.wait().success(), "{}", works.log());
    assert_eq!(waits.put(ADA, r#"{"revision":3}"#).0, 202);
    while client.requests().len() < 3 {
        tokio::task::yield_now().await;
    }
}

async fn there_is_nothing_to_set_up(endpoints: String) {
    let stores = Stores::new(&mongodb(), "setup", &leases(&endpoints, "setup"));
    let flags = stores.flags();
    for command in ["setup", "fixup", "cleanup"] {
        let (code, out, err) = run(flare(&[command, "lease", "--plan"]).args(&flags));
        assert_eq!(code, 0, "{err}");
        assert!(out.starts_with("lease (etcd): nothing to "), "{out}");
    }
}

async fn a_server_that_cannot_be_reached(endpoints: String) {
    let nobody = HttpTarget::refusing().await;
    let stores = Stores::new(&mongodb(), "nowhere", &leases(&endpoints, "nowhere"));
    let mut flags = stores.flags();
    flags.push(format!("--set=lease.etcd.endpoints={nobody}"));
    for command in [&["start", "--addr", "127.0.0.1:0"][..], &["setup", "lease", "--plan"]] {
        let (code, _, err) = run(flare(command).args(&flags));
        assert_eq!(code, 1, "{err}");
        assert!(err.contains("is it running? lease.etcd.endpoints say where"), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}

async fn passwords_are_never_printed(endpoints: String) {
    let stores = Stores::new(&mongodb(), "secret", &leases(&endpoints, "secret"));
    let mut flags = stores.flags();
    flags.push("--set=lease.etcd.username=ada".to_owned());
    flags.push("--set=lease.etcd.password=secret-word".to_owned());
    let (code, out, err) = run(flare(&["config"]).args(&flags));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("password = \"***\"") && !out.contains("secret-word"), "{out}");
    // Nobody is called that here.
    let (code, out, err) = run(flare(&["start", "--addr", "127.0.0.1:0"]).args(&flags));
    assert_eq!(code, 1, "{out}{err}");
    assert!(!err.contains("secret-word"), "{err}");
    // A file that is not there is named with its key.
    let mut tls = stores.flags();
    tls.push("--set=lease.etcd.endpoints=https://127.0.0.1:1".to_owned());
    tls.push("--set=lease.etcd.ca-file=/nowhere/ca.pem".to_owned());
    let (code, _, err) = run(flare(&["start"]).args(tls));
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("lease.etcd.ca-file: cannot read /nowhere/ca.pem"), "{err}");
}
