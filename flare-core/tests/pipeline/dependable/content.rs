//! What lanes hold of documents in memory, by simulated time: no more than is allowed, however
//! slow their clients are, and nothing that is too old to be sent.

use std::time::Duration;

use super::sim::{Sim, hook, patient, url};

const SECOND: Duration = Duration::from_secs(1);
const DOCUMENTS: u32 = 300;
const MIB: usize = 1 << 20;
/// What all lanes together may hold beside a document each, unless said otherwise.
const LIMIT: usize = 32 * MIB;

async fn put_all(sim: &Sim, rev: i64, bytes: usize) {
    for id in 0..DOCUMENTS {
        let json = format!("{{\"rev\":{rev},\"text\":\"{}\"}}", "x".repeat(bytes));
        sim.flare.put_json(&url(id), json).await.unwrap();
    }
}

/// So many clients that take nine seconds for an answer.
async fn slow_clients(count: usize) -> Sim {
    let sim = Sim::start().await;
    for number in 0..count {
        let host = format!("slow{number}");
        sim.client_takes(&host, 9 * SECOND);
        sim.subscribe(hook(&host)).await;
    }
    sim
}

/// Bytes of requests that have no answer.
fn in_flight(sim: &Sim, bytes: usize) -> usize {
    sim.delivery.in_flight() * bytes
}

#[tokio::test]
async fn lanes_of_slow_clients_hold_no_more_than_is_allowed() {
    const CLIENTS: usize = 40;
    for bytes in [64 << 10, MIB] {
        let sim = slow_clients(CLIENTS).await;
        put_all(&sim, 1, bytes).await;
        let (mut most, mut told) = (0, 0);
        for _ in 0..40 {
            sim.pass(SECOND / 2).await;
            most = most.max(sim.far.most_held() + in_flight(&sim, bytes));
            told = sim.delivery.total();
        }
        // Read anew, or copied into its request: each may be there twice for a moment.
        let allowed = LIMIT + 2 * CLIENTS * bytes;
        assert!(most <= allowed, "{} of {} MiB", most / MIB, allowed / MIB);
        assert!(told >= 2 * CLIENTS as u64, "{told}: everybody gets on");
    }
}

#[tokio::test]
async fn what_grew_old_is_let_go_while_nothing_can_be_sent() {
    let sim = slow_clients(1).await;
    put_all(&sim, 1, 1_000).await;
    sim.pass(SECOND / 4).await;
    assert_eq!(sim.delivery.in_flight(), 32, "as many as it takes");
    assert!(sim.far.held() > 1_000, "some wait to be next");
    sim.pass(SECOND).await;
    assert_eq!(sim.far.held(), 0, "the client answers in eight seconds");
    // And nothing is read in vain until then.
    sim.far.most_held();
    sim.pass(7 * SECOND).await;
    assert_eq!(sim.far.most_held(), 0);
    put_all(&sim, 2, 1_000).await;
    sim.pass(2 * SECOND).await;
    assert_eq!(sim.delivery.in_flight(), 32);
    let newest = sim.delivery.requests().into_iter().rev().take(32);
    for told in newest {
        assert!(told.request.url.ends_with("/2"), "{}: read just before", told.request.url);
    }
    sim.pass(200 * SECOND).await;
    sim.flare.settled(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn one_large_document_among_small_ones_is_told() {
    let mut settings = patient();
    settings.content_limit = 10_000;
    let sim = Sim::with(settings).await;
    sim.subscribe(hook("a")).await;
    put_all(&sim, 1, 10).await;
    let large = format!("{{\"rev\":2,\"text\":\"{}\"}}", "x".repeat(MIB));
    sim.flare.put_json(&url(7), large).await.unwrap();
    for id in 100..200 {
        sim.put(id, 3).await;
    }
    sim.pass(60 * SECOND).await;
    sim.flare.settled(Duration::ZERO).await.unwrap();
    assert_eq!(sim.far.held(), 0);
}
