//! The steps that decide: no store, no future.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use flare_benches::world::{FIRST, body, subscriptions, url, urls};
use flare_core::internals::{DocumentVersion, Task};
use flare_core::model::{
    Action, ChangeRule, Content, ContentOptions, Document, DocumentKey, DocumentUrl, Endpoint,
    EndpointIndex, Epoch, IdSource, LaneId, Layout, Notification, Present, ResourceId, Takeover,
    Target, Timestamp, Version, decide,
};
use serde_json::Value;

const RESOURCES: usize = 10_000;

fn document_url(text: &str) -> DocumentUrl {
    DocumentUrl::parse(text).expect("a URL")
}

/// Ten thousand resources on a hundred hosts, every tenth of them a wildcard where its
/// neighbours have a literal.
fn index() -> EndpointIndex<usize> {
    let mut index = EndpointIndex::new();
    for number in 0..RESOURCES {
        let (host, kind) = (number % 100, number / 100);
        let pattern = match kind % 10 {
            0 => format!("http://h{host}.example.com/v{kind}/{{kind}}/items/{{item}}"),
            _ => format!("http://h{host}.example.com/v{}/k{kind}/items/{{item}}", kind / 10 * 10),
        };
        let endpoint = Endpoint::parse(&pattern).expect("an endpoint");
        assert!(index.insert(&endpoint, number).is_ok(), "{pattern} conflicts");
    }
    index
}

pub(crate) fn matching(c: &mut Criterion) {
    let index = index();
    let mut group = c.benchmark_group("match among 10,000");
    for (name, text, found) in [
        ("most specific", "http://h42.example.com/v70/k73/items/4711", Some(7342)),
        ("wildcard", "http://h42.example.com/v70/other/items/4711", Some(7042)),
        ("miss", "http://h42.example.com/v70/k73/things/4711", None),
    ] {
        let url = document_url(text);
        assert_eq!(index.find(&url).copied(), found, "{text}");
        group.bench_function(name, |b| b.iter(|| index.find(black_box(&url))));
    }
    group.finish();
    let text = url(4711);
    c.bench_function("document URL", |b| b.iter(|| DocumentUrl::parse(black_box(&text))));
}

pub(crate) fn layouts(c: &mut Criterion) {
    let mut group = c.benchmark_group("layout");
    for (name, layout, text) in [
        ("rfc3339-like", "2006-01-02T15:04:05Z07:00", "2024-05-01T14:30:00.25+02:00"),
        ("named month", "Mon, 02 Jan 2006 15:04:05 -0700", "Wed, 01 May 2024 14:30:00 +0200"),
    ] {
        let compiled = Layout::parse(layout).expect("a layout");
        compiled.parse_nanos(text).expect("a time in the layout");
        group.bench_function(format!("parse {name}"), |b| {
            b.iter(|| compiled.parse_nanos(black_box(text)));
        });
        group.bench_function(format!("compile {name}"), |b| {
            b.iter(|| Layout::parse(black_box(layout)));
        });
    }
    group.finish();
}

pub(crate) fn reading(c: &mut Criterion) {
    let rule = ChangeRule::new("rev", None).expect("a rule");
    let body = body(FIRST, 200);
    rule.read(&body).expect("a revision");
    let mut group = c.benchmark_group("200-byte body");
    group.throughput(Throughput::Bytes(200));
    group.bench_function("revision", |b| b.iter(|| rule.read(black_box(&body))));
    group.bench_function("serde_json value", |b| {
        b.iter(|| serde_json::from_slice::<Value>(black_box(&body)));
    });
    group.finish();
}

pub(crate) fn deciding(c: &mut Criterion) {
    let takeover = Takeover { epoch: Epoch::new(7), at: Timestamp::from_unix_seconds(100) };
    let since = Timestamp::from_unix_seconds(99);
    c.bench_function("decision", |b| {
        b.iter(|| {
            let present = takeover.holding(
                black_box(Present::No),
                black_box(Epoch::new(6)),
                black_box(since),
            );
            decide(black_box(Target::Present), present)
        });
    });

    let rule = ChangeRule::new("rev", None).expect("a rule");
    let (revision, content) = Content::parse(&rule, body(FIRST, 1024)).expect("a document");
    let key = DocumentKey::new(resource(), document_url(&url(1)));
    let now = Timestamp::from_unix_seconds(1_700_000_000);
    let mut document = Document::new(key, Version::live(revision), now);
    document.content = Some(content);
    let options = ContentOptions::default();
    c.bench_function("notification body of 1 KiB", |b| {
        b.iter(|| Notification::new(&rule, black_box(&document), Action::Update).body(options));
    });
}

pub(crate) fn tasks(c: &mut Criterion) {
    let revision = ChangeRule::new("rev", None).and_then(|rule| rule.read(&body(FIRST, 200)));
    let version = Version::live(revision.expect("a revision"));
    let documents = |count| {
        let urls = urls(0..count);
        urls.iter().map(|url| DocumentVersion { url: document_url(url), version }).collect()
    };
    let mut group = c.benchmark_group("task");
    for (name, task) in [
        ("wake", Task::Wake { lanes: vec![LaneId::new(subscriptions(1)[0], 0)] }),
        ("partition of 1", Task::Partition { resource: resource(), documents: documents(1) }),
        ("partition of 100", Task::Partition { resource: resource(), documents: documents(100) }),
    ] {
        let bytes = task.encode().expect("a task");
        group.bench_function(format!("encode {name}"), |b| b.iter(|| black_box(&task).encode()));
        group.bench_function(format!("decode {name}"), |b| {
            b.iter(|| Task::decode(black_box(&bytes)));
        });
    }
    group.finish();
}

fn resource() -> ResourceId {
    IdSource::seeded(1).next(Timestamp::EPOCH).into()
}
