//! What a collector of OpenTelemetry is sent: figures, asked of a real VictoriaMetrics, and traces, decoded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "other processes' time is real")]

mod common;

use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::inbox::Inbox;
use common::{Folder, PATIENCE, Server, raw, split};
use flare_testkit::{Answer, HttpTarget, RawRequest, Service, Trials};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message;
use serde_json::Value;

/// The program itself.
const VICTORIA_METRICS: Service = Service::new("victoria-metrics", "FLARE_TEST_VICTORIA_METRICS");

const ADA: &str = "/documents/http://api.example.com/users/ada";

fn main() -> ExitCode {
    Trials::on(VICTORIA_METRICS)
        .test("a_collector_has_the_figures", a_collector_has_the_figures)
        .test("a_trace_goes_from_the_put_to_the_client", a_trace_goes_from_the_put_to_the_client)
        .test("a_trace_goes_from_a_batch_to_the_client", a_trace_goes_from_a_batch_to_the_client)
        .test("a_collector_that_is_away_stops_nothing", a_collector_that_is_away_stops_nothing)
        .run()
}

async fn a_collector_has_the_figures(program: String) {
    let folder = Folder::new("victoria-metrics");
    let victoria = VictoriaMetrics::start(&program, &folder);
    let client = HttpTarget::start(Answer::status(204)).await;
    let endpoint = format!("otlp.endpoint=http://{}/opentelemetry", victoria.addr);
    let server = Server::start(&[
        "--set",
        &endpoint,
        "--set=otlp.signals=[\"metrics\"]",
        "--set=otlp.interval=1s",
        "--set=otlp.service=orders",
    ]);
    server.subscribe(&client.url(""));
    for revision in 1..=3 {
        let (status, said) = server.put(ADA, &format!(r#"{{"revision":{revision}}}"#));
        assert_eq!(status, 202, "{said}");
    }
    for (expression, least) in [
        (r#"flare_accepted_total{service\.name="orders",service\.instance\.id!=""}"#, 3.0),
        ("flare_delivered_total", 1.0),
        ("flare_dead_total", 0.0),
        (r#"flare_cluster_slots{state="owned"}"#, 1.0),
        // Within ten seconds, which is a bound that only our own buckets have beside a minute.
        (r#"flare_delivery_latency_seconds_bucket{le="60"}"#, 1.0),
    ] {
        let started = Instant::now();
        while !victoria.value(expression).is_some_and(|value| value >= least) {
            assert!(started.elapsed() < PATIENCE, "no {expression}\n{}", server.log());
            thread::sleep(Duration::from_millis(100));
        }
    }
    // Prometheus has them all the same.
    assert!(server.get("/metrics").1.contains("flare_accepted_total 3"));
}

async fn a_trace_goes_from_the_put_to_the_client(_: String) {
    let collector = HttpTarget::start(Answer::status(200)).await;
    let client = HttpTarget::start(Answer::status(204)).await;
    let mut server = Server::start(&[
        "--set",
        &format!("otlp.endpoint={}", collector.url("")),
        "--set=otlp.signals=[\"traces\"]",
        "--set=otlp.headers=[\"x-team: orders\"]",
    ]);
    server.subscribe(&client.url(""));
    // One put without a trace, and one in the trace of whoever sends it.
    assert_eq!(server.put(ADA, r#"{"revision":1}"#).0, 202);
    let given = "0af7651916cd43dd8448eb211c80319c";
    let head = format!(
        "PUT /documents/http://api.example.com/users/eve HTTP/1.1\r\nHost: flare\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\
         traceparent: 00-{given}-b7ad6b7169203331-01\r\n\r\n{{\"revision\":1}}"
    );
    assert_eq!(split(&raw(server.addr, &[head.as_bytes()])).0, 202);
    let started = Instant::now();
    while client.requests().len() < 2 {
        assert!(started.elapsed() < PATIENCE, "{}", server.log());
        tokio::task::yield_now().await;
    }
    // Its end sends what is left.
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    let sent = collector.requests();
    assert!(sent.iter().all(|it| it.target == "/v1/traces" && it.values("x-team") == ["orders"]));
    let spans: Vec<Span> = sent.iter().flat_map(decoded).collect();
    for told in client.requests() {
        let traceparent = told.values("traceparent")[0].to_owned();
        let (trace, parent) = (&traceparent[3..35], &traceparent[36..52]);
        assert_eq!(told.target == "/eve", trace == given, "{traceparent}");
        let of_trace: Vec<&Span> = spans.iter().filter(|it| hex(&it.trace_id) == trace).collect();
        let one = |name: &str| {
            let named: Vec<_> = of_trace.iter().filter(|it| it.name == name).collect();
            assert_eq!(named.len(), 1, "{name} in {of_trace:#?}");
            *named[0]
        };
        let (request, put, attempt) = (one("PUT"), one("flare.put"), one("flare.attempt"));
        assert_eq!(request.kind, SpanKind::Server as i32);
        assert_eq!(hex(&request.span_id), parent);
        let from = if told.target == "/eve" { "b7ad6b7169203331" } else { "" };
        assert_eq!(hex(&request.parent_span_id), from);
        assert_eq!(put.parent_span_id, request.span_id);
        assert_eq!(attempt.parent_span_id, request.span_id);
        assert_eq!(attempt.kind, SpanKind::Client as i32);
        assert!(attempt.attributes.iter().any(|it| it.key == "document"), "{attempt:#?}");
        assert!(put.end_time_unix_nano >= put.start_time_unix_nano);
        assert!(attempt.end_time_unix_nano >= put.start_time_unix_nano);
    }
    // What lasts as long as a lane or a node is in no trace.
    assert!(!spans.iter().any(|it| it.name == "flare.lane" || it.name == "flare.member"));
}

/// What is pulled has no request that it came with: each batch is a trace.
async fn a_trace_goes_from_a_batch_to_the_client(_: String) {
    let collector = HttpTarget::start(Answer::status(200)).await;
    let client = HttpTarget::start(Answer::status(204)).await;
    let inbox = Inbox::beside("otlp");
    let endpoint = format!("--set=otlp.endpoint={}", collector.url(""));
    let mut server = inbox.server(&[&endpoint, "--set=otlp.signals=[\"traces\"]"]);
    let subscription = server.subscribe(&client.url(""));
    let (status, said) = server.consume(subscription.split('/').nth(2).unwrap(), &inbox.source());
    assert_eq!(status, 201, "{said}");
    inbox.send(r#"{"id":"ada","revision":1}"#);
    let started = Instant::now();
    while client.requests().is_empty() {
        assert!(started.elapsed() < PATIENCE, "{}", server.log());
        tokio::task::yield_now().await;
    }
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    let spans: Vec<Span> = collector.requests().iter().flat_map(decoded).collect();
    let told = client.requests().remove(0);
    let traceparent = told.values("traceparent")[0].to_owned();
    let of_trace = |it: &&Span| hex(&it.trace_id) == traceparent[3..35];
    let of_trace: Vec<&Span> = spans.iter().filter(of_trace).collect();
    let one = |name: &str| {
        let named: Vec<_> = of_trace.iter().filter(|it| it.name == name).collect();
        assert_eq!(named.len(), 1, "{name} in {of_trace:#?}");
        *named[0]
    };
    let (batch, put, attempt) = (one("flare.consume"), one("flare.put"), one("flare.attempt"));
    assert_eq!((batch.kind, &*batch.parent_span_id), (SpanKind::Consumer as i32, &[][..]));
    assert_eq!(hex(&batch.span_id), traceparent[36..52]);
    assert_eq!((&put.parent_span_id, &attempt.parent_span_id), (&batch.span_id, &batch.span_id));
    assert!(!spans.iter().any(|it| it.name == "flare.consumer"));
}

async fn a_collector_that_is_away_stops_nothing(_: String) {
    let client = HttpTarget::start(Answer::status(204)).await;
    let away = HttpTarget::refusing().await;
    let endpoint = format!("otlp.endpoint={away}");
    let mut server = Server::start(&["--set", &endpoint, "--set=otlp.interval=1s"]);
    server.subscribe(&client.url(""));
    assert_eq!(server.put(ADA, r#"{"revision":1}"#).0, 202);
    let started = Instant::now();
    while client.requests().is_empty() || !server.log().contains("opentelemetry") {
        assert!(started.elapsed() < PATIENCE, "{}", server.log());
        tokio::task::yield_now().await;
    }
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
}

fn decoded(request: &RawRequest) -> Vec<Span> {
    let export = ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap();
    let scopes = export.resource_spans.into_iter().flat_map(|it| it.scope_spans);
    scopes.flat_map(|it| it.spans).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One that keeps what it is sent in a folder; ends with the test.
struct VictoriaMetrics {
    process: Child,
    addr: SocketAddr,
}

impl VictoriaMetrics {
    fn start(program: &str, folder: &Folder) -> Self {
        let addr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let process = Command::new(program)
            .arg(format!("-storageDataPath={}", folder.path().join("data").display()))
            .arg(format!("-httpListenAddr={addr}"))
            // What was just sent is to be found.
            .args(["-search.latencyOffset=0s", "-loggerLevel=ERROR"])
            .stdout(Stdio::null())
            .spawn();
        let started = Instant::now();
        while std::net::TcpStream::connect(addr).is_err() {
            assert!(started.elapsed() < PATIENCE, "VictoriaMetrics does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Self { process: process.unwrap(), addr }
    }

    /// The sum of an expression's values now.
    fn value(&self, expression: &str) -> Option<f64> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let request =
            format!("GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: victoria\r\n\r\n");
        let (status, body) = split(&raw(self.addr, &[request.as_bytes()]));
        assert_eq!(status, 200, "{expression}: {body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let samples = answer["data"]["result"].as_array().unwrap();
        let value = |sample: &Value| sample["value"][1].as_str().unwrap().parse::<f64>().unwrap();
        samples.iter().map(value).reduce(|sum, value| sum + value)
    }
}

impl Drop for VictoriaMetrics {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
