//! Takes a number of subscriptions; tells what keeping their cluster together costs etcd: at rest, and
//! while documents are put and delivered. It has to be the same, however many there are.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

use flare_core::Flare;
use flare_core::model::{NewResource, SubscriptionSpec};
use futures::{StreamExt, stream};
use serde_json::json;

use crate::client::Client;
use crate::driver::{connect, wait_until_well};
use crate::fleet::Fleet;
use crate::stores::Stores;
use crate::world::{NODES, RATE, document, endpoint};

/// Subscriptions that are told of documents, in every case, so that the load is the same.
const TOLD: usize = 100;

/// Measures with each of these numbers of subscriptions, for so long at rest and so long under load.
pub fn main(numbers: &[usize], time: Duration) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!("{NODES} nodes, {time:?} each; etcd's own counters");
    println!("subscriptions  when   writes/s  proposals/s  keep-alives/s  notifications/s");
    let mut writes = Vec::new();
    for number in numbers {
        let stores = Stores::start();
        writes.push(runtime.block_on(measure(&stores, *number, time)));
    }
    // A node's record says roughly how busy it is, so a write now and then is no growth.
    let most = |of: &[f64; 2]| of[0].max(of[1]);
    if writes.windows(2).all(|pair| (most(&pair[0]) - most(&pair[1])).abs() <= 0.5) {
        return ExitCode::SUCCESS;
    }
    println!("coordination writes grow with subscriptions");
    ExitCode::FAILURE
}

/// Writes a second at rest and under load.
async fn measure(stores: &Stores, subscriptions: usize, time: Duration) -> [f64; 2] {
    let flare = connect(stores).await;
    let mut fleet = Fleet::new(stores);
    for _ in 0..NODES {
        fleet.start().await;
    }
    let client = Client::start().await;
    subscribe(&flare, &client, subscriptions).await;
    wait_until_well(&flare, &mut fleet).await;
    // Moves that were under way, and the first records of load, are over by then.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let rest = spent(stores, &client, time, tokio::time::sleep(time)).await;
    rest.print(subscriptions, "rest");
    let load = spent(stores, &client, time, put(&flare, time)).await;
    load.print(subscriptions, "load");
    [rest.writes, load.writes]
}

/// The first of them are told of documents, the others are there.
async fn subscribe(flare: &Flare, client: &Client, subscriptions: usize) {
    for (resource, lanes) in [(0, 0..TOLD), (1, TOLD..subscriptions)] {
        let new = NewResource::new(endpoint(resource)).change_field("revision");
        let id = flare.create_resource(new).await.unwrap().id;
        let create = |lane| flare.create_subscription(id, SubscriptionSpec::post(client.url(lane)));
        let mut made = stream::iter(lanes).map(create).buffer_unordered(20);
        while let Some(made) = made.next().await {
            made.unwrap();
        }
    }
}

async fn put(flare: &Flare, time: Duration) {
    let puts = (time.as_secs_f64() * RATE) as u64;
    for revision in 1..=puts {
        let url = document(0, revision as usize % 10);
        flare.put_document(&url, &json!({ "revision": revision })).await.unwrap();
        tokio::time::sleep(Duration::from_secs_f64(1.0 / RATE)).await;
    }
}

/// What etcd did a second.
struct Spent {
    writes: f64,
    proposals: f64,
    keep_alives: f64,
    notifications: f64,
}

impl Spent {
    fn print(&self, subscriptions: usize, when: &str) {
        println!(
            "{subscriptions:>13}  {when}   {:>8.3}  {:>11.3}  {:>13.2}  {:>15.1}",
            self.writes, self.proposals, self.keep_alives, self.notifications
        );
    }
}

async fn spent(
    stores: &Stores,
    client: &Client,
    time: Duration,
    work: impl Future<Output = ()>,
) -> Spent {
    let began = std::time::Instant::now();
    let before = Counters::read(&stores.etcd);
    let told = client.notes().heard.arrivals.len();
    work.await;
    let after = Counters::read(&stores.etcd);
    let seconds = began.elapsed().max(time).as_secs_f64();
    Spent {
        writes: (after.revision - before.revision) / seconds,
        proposals: (after.proposals - before.proposals) / seconds,
        keep_alives: (after.renewed - before.renewed) / seconds,
        notifications: (client.notes().heard.arrivals.len() - told) as f64 / seconds,
    }
}

/// What etcd has counted since it started.
struct Counters {
    /// Of its whole store: every write, and every lease that ended with keys, raises it by one.
    revision: f64,
    /// Everything its members had to agree on.
    proposals: f64,
    renewed: f64,
}

impl Counters {
    fn read(etcd: &str) -> Self {
        let address = etcd.trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{name} is not among etcd's metrics")).parse().unwrap()
        };
        Self {
            revision: of("etcd_debugging_mvcc_current_revision"),
            proposals: of("etcd_server_proposals_committed_total"),
            renewed: of("etcd_debugging_lease_renewed_total"),
        }
    }
}
