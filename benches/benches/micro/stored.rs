//! The steps that store, on memory and the whole way a put takes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput};
use flare_benches::world::{FIRST, World, body, ready, subscriptions, urls};
use flare_core::model::DocumentChange;
use flare_core::port::DocumentStore;

const BODY: usize = 200;
/// Documents that updates and unchanged puts take turns on.
const DOCUMENTS: usize = 1_000;

fn world() -> World {
    World::new().expect("a world")
}

/// How long `puts` puts take, each expected to be the same kind of change.
fn timed(
    world: &World,
    urls: &[String],
    bodies: &[Bytes],
    puts: u64,
    expected: DocumentChange,
) -> Duration {
    let turns = bodies.iter().flat_map(|body| urls.iter().map(move |url| (url, body)));
    let started = Instant::now();
    for (url, body) in turns.take(puts as usize) {
        let change = ready(world.put(url, body.clone())).expect("memory never waits");
        assert_eq!(black_box(change).expect("a put"), expected);
    }
    started.elapsed()
}

pub(crate) fn puts(c: &mut Criterion) {
    let mut group = c.benchmark_group("put");
    group.bench_function("created", |b| {
        b.iter_custom(|puts| {
            let (world, urls) = (world(), urls(0..puts as usize));
            timed(&world, &urls, &[body(FIRST, BODY)], puts, DocumentChange::Created)
        });
    });
    let known = urls(0..DOCUMENTS);
    group.bench_function("updated", |b| {
        b.iter_custom(|puts| {
            let world = world();
            world.fill(&known, &body(FIRST, BODY), FIRST).expect("documents");
            let revisions = puts.div_ceil(DOCUMENTS as u64) as i64;
            let bodies: Vec<_> = (1..=revisions).map(|next| body(FIRST + next, BODY)).collect();
            timed(&world, &known, &bodies, puts, DocumentChange::Updated)
        });
    });
    let world = world();
    let same = body(FIRST, BODY);
    world.fill(&known, &same, FIRST).expect("documents");
    group.bench_function("unchanged", |b| {
        b.iter_custom(|puts| {
            let bodies = vec![same.clone(); puts.div_ceil(DOCUMENTS as u64) as usize];
            timed(&world, &known, &bodies, puts, DocumentChange::Unchanged)
        });
    });
    group.finish();
}

pub(crate) fn batches(c: &mut Criterion) {
    const BATCH: usize = 100;
    let urls = urls(0..BATCH);
    let put = |world: &World, body: &Bytes| {
        let batch = async {
            let mut writes = Vec::with_capacity(BATCH);
            for url in &urls {
                writes.push(world.prepare(url, body.clone()).await.expect("a put"));
            }
            world.repository.write_documents(writes).await
        };
        ready(batch).expect("memory never waits")
    };
    let mut group = c.benchmark_group("put of 100");
    group.throughput(Throughput::Elements(BATCH as u64));
    let first = body(FIRST, BODY);
    group.bench_function("created", |b| {
        b.iter_batched_ref(world, |world| put(world, &first), BatchSize::LargeInput);
    });
    let world = world();
    put(&world, &first);
    let mut revision = FIRST;
    group.bench_function("updated", |b| {
        let next = || {
            revision += 1;
            body(revision, BODY)
        };
        b.iter_batched_ref(next, |body| put(&world, body), BatchSize::SmallInput);
    });
    let same = body(revision, BODY);
    group.bench_function("unchanged", |b| b.iter(|| put(&world, black_box(&same))));
    group.finish();
}

pub(crate) fn rows(c: &mut Criterion) {
    let mut group = c.benchmark_group("spread and settle");
    for (name, count) in [("1 subscription", 1), ("1,000 subscriptions", 1_000)] {
        let world = world();
        let subscriptions = subscriptions(count);
        let documents = world.keys(&urls(0..1)).expect("a key");
        let mut revision = FIRST;
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                revision += 1;
                world.spread(&subscriptions, &documents, revision).expect("a spread");
                world.settle(&subscriptions, &documents, revision).expect("a settlement");
            });
        });
    }
    group.finish();
}
