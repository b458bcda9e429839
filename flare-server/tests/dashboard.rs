//! The dashboard of `deploy/grafana`, asked of a real Prometheus that reads a server with something to show.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "other processes' time is real")]

mod common;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::inbox::Inbox;
use common::{Client, Folder, PATIENCE, raw, split};
use flare_testkit::{Service, Trials};
use serde_json::Value;

/// The program itself, as each test tells it what to read.
const PROMETHEUS: Service = Service::new("prometheus", "FLARE_TEST_PROMETHEUS");

fn main() -> ExitCode {
    Trials::on(PROMETHEUS).test("every_panel_has_data", every_panel_has_data).run()
}

async fn every_panel_has_data(program: String) {
    let inbox = Inbox::beside("dashboard");
    let server = inbox.server(&[]);
    let client = Client::start(Duration::ZERO);
    let users = server.users();
    let subscriptions = format!("/resources/{users}/subscriptions");
    // One is told, one fails on its filter, and one gives up at once.
    for wish in [
        format!(r#"{{"endpoint":{{"url":"{}/well/{{id}}"}}}}"#, client.url()),
        format!(
            r#"{{"endpoint":{{"url":"{}/none"}},"filter":"document.missing == 1"}}"#,
            client.url()
        ),
        r#"{"endpoint":{"url":"http://127.0.0.1:1"},"delivery":{"retry":{"numRetries":0}}}"#
            .to_owned(),
    ] {
        let (status, said) = server.post(&subscriptions, &wish);
        assert_eq!(status, 201, "{said}");
    }
    // One consumer pulls, and one finds no queue.
    for source in [inbox.source(), inbox.source().replace("queue\":\"", "queue\":\"no-")] {
        let (status, said) = server.consume(&users, &source);
        assert_eq!(status, 201, "{said}");
    }
    inbox.send(r#"{"id":"eve","revision":1}"#);
    inbox.send("no user at all");
    let folder = Folder::new("dashboard");
    let prometheus = Prometheus::start(&program, folder.path(), server.addr);
    let (mut without, started) = (expressions(), Instant::now());
    assert!(without.len() > 30, "{without:?}");
    let mut revision = 0;
    while !without.is_empty() {
        assert!(
            started.elapsed() < PATIENCE,
            "no data for {without:#?}\n{}",
            server.get("/metrics").1
        );
        revision += 1;
        let path = "/documents/http://api.example.com/users/ada";
        assert_eq!(server.put(path, &format!(r#"{{"revision":{revision}}}"#)).0, 202);
        without.retain(|expression| !prometheus.has(expression));
        thread::sleep(Duration::from_millis(100));
    }
    for (metric, least) in [
        ("sum(flare_delivered_total)", 1.0),
        ("sum(flare_dead_total)", 1.0),
        ("sum(flare_filter_failures_total)", 1.0),
        ("sum(flare_received_total)", 2.0),
        (r#"flare_rejected_total{reason="not-json"}"#, 1.0),
        (r#"sum(flare_consumer_failing{consumer!="others"})"#, 1.0),
    ] {
        let is_seen = || prometheus.values(metric).first().is_some_and(|value| *value >= least);
        while !is_seen() {
            assert!(started.elapsed() < PATIENCE, "{metric}\n{}", server.get("/metrics").1);
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// What the panels ask, as Grafana would ask it of all jobs and instances.
fn expressions() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/grafana/flare.json");
    let board: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions = targets.map(|target| target["expr"].as_str().unwrap());
    let filled = |expression: &str| {
        let filled = expression.replace("$job", ".*").replace("$instance", ".*");
        filled.replace("$__rate_interval", "5s")
    };
    expressions.map(filled).collect()
}

/// One that reads a server every second; ends with the test.
struct Prometheus {
    process: Child,
    addr: SocketAddr,
}

impl Prometheus {
    fn start(program: &str, folder: &Path, server: SocketAddr) -> Self {
        let config = folder.join("prometheus.yml");
        let scrape = format!(
            "global: {{scrape_interval: 1s}}\n\
             scrape_configs: [{{job_name: flare, static_configs: [{{targets: ['{server}']}}]}}]\n"
        );
        std::fs::write(&config, scrape).unwrap();
        let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let process = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={addr}"))
            .args(["--log.level=error"])
            .stdout(Stdio::null())
            .spawn();
        Self { process: process.unwrap(), addr }
    }

    /// The values of an expression now; none if there is no data, or while it starts.
    fn values(&self, expression: &str) -> Vec<f64> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        // Answers of this version come whole.
        let request =
            format!("GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: prometheus\r\n\r\n");
        if std::net::TcpStream::connect(self.addr).is_err() {
            return Vec::new();
        }
        let (status, body) = split(&raw(self.addr, &[request.as_bytes()]));
        if status == 503 {
            return Vec::new();
        }
        assert_eq!(status, 200, "{expression}: {body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let samples = answer["data"]["result"].as_array().unwrap().iter();
        samples.map(|sample| sample["value"][1].as_str().unwrap().parse().unwrap()).collect()
    }

    fn has(&self, expression: &str) -> bool {
        let values = self.values(expression);
        !values.is_empty() && values.iter().all(|value| value.is_finite())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
