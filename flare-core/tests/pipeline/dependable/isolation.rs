//! What clients that hang or are slow cost those that are well, by simulated time: nearly nothing.

use std::time::Duration;

use super::sim::{Sim, hook, host_of, patient, url};

const DOCUMENTS: u32 = 1_000;
const WELL: [&str; 3] = ["well0", "well1", "well2"];
/// What an answer of a client takes that is well, somewhere else on the planet.
const FAR_AWAY: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);
/// What the others may cost those that are well.
const LOSS: f64 = 1.05;

async fn put_all(sim: &Sim, rev: i64) {
    let json = format!("{{\"rev\":{rev}}}");
    let documents = (0..DOCUMENTS).map(|id| (url(id), json.clone()));
    for answer in sim.flare.put_documents(documents).await {
        answer.unwrap();
    }
}

/// A Flare with the clients that are well and others, of which each takes `slow` for an answer and
/// may have so many requests at a time.
async fn world(others: u32, slow: Duration, concurrency: Option<u32>) -> Sim {
    let mut settings = patient();
    // Everybody is told what changes long before anybody would look for it.
    settings.timeout = 10 * SECOND;
    let sim = Sim::with(settings).await;
    for host in WELL {
        sim.client_takes(host, FAR_AWAY);
        sim.subscribe(hook(host)).await;
    }
    for number in 0..others {
        let host = format!("slow{number}");
        sim.client_takes(&host, slow);
        let hook = hook(&host);
        sim.subscribe(match concurrency {
            Some(concurrency) => hook.concurrency(concurrency),
            None => hook,
        })
        .await;
    }
    sim
}

/// How long it takes until all clients that are well have all documents of a revision.
async fn time_to_tell(sim: &Sim, rev: i64) -> Duration {
    let start = sim.now();
    put_all(sim, rev).await;
    let wanted = WELL.len() * DOCUMENTS as usize;
    let well = |url: &str| WELL.contains(&host_of(url));
    for _ in 0..120 {
        sim.pass(SECOND / 2).await;
        let told = sim.delivery.requests().into_iter();
        let told = told.filter(|told| told.at >= start && well(&told.request.url));
        let mut last = start;
        if told.inspect(|told| last = last.max(told.at)).count() >= wanted {
            return last - start;
        }
    }
    panic!("not within a minute");
}

/// From a fresh start, and once more after the others have been slow for long.
async fn loss(others: u32, slow: Duration, concurrency: Option<u32>) -> [f64; 2] {
    let alone = world(0, slow, None).await;
    let disturbed = world(others, slow, concurrency).await;
    let mut losses = [0.0; 2];
    for (rev, loss) in [1, 2].into_iter().zip(&mut losses) {
        let (with, without) =
            (time_to_tell(&disturbed, rev).await, time_to_tell(&alone, rev).await);
        *loss = with.as_secs_f64() / without.as_secs_f64();
        disturbed.pass(25 * SECOND).await;
    }
    losses
}

#[tokio::test]
async fn a_client_that_hangs_with_thousands_of_requests_costs_others_nothing() {
    let losses = loss(1, 600 * SECOND, Some(2_000)).await;
    assert!(losses.iter().all(|loss| *loss < LOSS), "{losses:?}");
}

#[tokio::test]
async fn many_clients_that_take_nine_seconds_cost_others_nothing() {
    let losses = loss(32, 9 * SECOND, None).await;
    assert!(losses.iter().all(|loss| *loss < LOSS), "{losses:?}");
}

/// Many lanes of one client are one client.
#[tokio::test]
async fn a_client_that_hangs_has_no_more_for_having_many_lanes() {
    let sim = world(0, SECOND, None).await;
    sim.client_takes("slow", 600 * SECOND);
    sim.subscribe(hook("slow").concurrency(2_000).lanes(500)).await;
    time_to_tell(&sim, 1).await;
    sim.pass(SECOND).await;
    let in_flight = sim.delivery.in_flight();
    assert!(in_flight <= 512, "{in_flight}: half of all at most");
}
