//! A file that is worked on for long stops growing, and what retention removes makes it smaller. Both by a clock
//! that the test moves.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_sqlite::SqliteBackend;
use flare_core::Flare;
use flare_core::Settings;
use flare_core::cluster::ClusterSettings;
use flare_core::model::subscription::RetryPolicy;
use flare_core::model::{NewResource, SubscriptionSpec, Timestamp};
use flare_core::port::{Clock, DeliveryOutcome};
use flare_testkit::{ManualClock, RecordingDelivery};

use crate::support::Scratch;

const HOUR: Duration = Duration::from_hours(1);
/// Turns that everything gets before time moves: more than the longest chain of wake-ups.
const TURNS: u32 = 40;

/// A Flare on a file that goes by a clock of the test's, its work done by whoever calls.
struct Simulation {
    clock: ManualClock,
    flare: Flare,
    scratch: Scratch,
    running: tokio::task::JoinHandle<flare_core::Result<()>>,
}

impl Simulation {
    async fn start() -> Self {
        let scratch = Scratch::fleeting();
        let clock = ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000));
        let config = scratch.config().clock(Arc::new(clock.clone())).inline();
        let stores = SqliteBackend::with_config(&config).unwrap();
        let client = RecordingDelivery::new(Arc::new(clock.clone())).keeping(1).answering(|it| {
            // Some documents are given up on, and more are not, so that the client is no one who is down.
            let refuses = it.url.starts_with("http://refuses.example/") && it.url.ends_with("-3");
            DeliveryOutcome::answered(if refuses { 500 } else { 204 })
        });
        let mut settings = Settings::default();
        settings.slots = Some(8);
        settings.tombstone_retention = HOUR;
        settings.dead_letter_retention = HOUR;
        settings.expire_every = Duration::from_mins(5);
        // A day has few moments at which nothing happens but that somebody looks.
        settings.reconcile_every = Duration::from_mins(2);
        settings.rederive_every = Duration::from_mins(10);
        settings.jobs_every = Duration::from_mins(2);
        settings.sample_every = Duration::from_mins(2);
        let mut cluster = ClusterSettings::default();
        cluster.ttl = Duration::from_mins(10);
        cluster.hand_over_limit = cluster.ttl;
        cluster.sweep_every = cluster.ttl;
        cluster.publish_every = cluster.ttl;
        let builder = Flare::builder(stores).delivery(Arc::new(client)).settings(settings);
        let builder = builder.cluster(cluster);
        let builder = builder.clock(Arc::new(clock.clone())).seed(7);
        let (flare, runtime) = builder.build().unwrap();
        let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
        let this = Self { clock, flare, scratch, running };
        let docs = NewResource::new("http://api.example/docs/{id}").change_field("rev");
        let docs = this.in_time(this.flare.create_resource(docs)).await.unwrap();
        for client in ["takes", "refuses"] {
            let spec = SubscriptionSpec::post(format!("http://{client}.example/{{id}}"));
            let retry = RetryPolicy::builder().num_retries(1).build().unwrap();
            let spec = spec.retry(retry);
            this.in_time(this.flare.create_subscription(docs.id, spec)).await.unwrap();
        }
        this
    }

    async fn turns(&self) {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    }

    /// Lets as much time pass as something takes.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.turns() => {}
            }
            if let Some(next) = self.clock.next_deadline() {
                self.clock.advance_to(next);
            }
        }
    }

    /// Lets time pass, from deadline to deadline.
    async fn pass(&self, time: Duration) {
        let end = self.clock.now() + time;
        loop {
            self.turns().await;
            if self.clock.now() >= end {
                return;
            }
            let next = self.clock.next_deadline().map_or(end, |deadline| deadline.min(end));
            self.clock.advance_to(next);
        }
    }

    async fn put(&self, name: &str, revision: usize, bytes: usize) {
        let json = format!("{{\"rev\":{revision},\"x\":\"{}\"}}", "x".repeat(bytes));
        let url = format!("http://api.example/docs/{name}");
        self.in_time(self.flare.put_json(&url, json)).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        let url = format!("http://api.example/docs/{name}");
        self.in_time(self.flare.delete_document(&url)).await.unwrap();
    }

    /// How many records each table has. What one process writes once a moment to be found alive is left out.
    fn records(&self) -> Vec<(String, i64)> {
        let connection = self.scratch.connect();
        let list = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
                    AND name NOT LIKE 'lease_%' ORDER BY name";
        let mut tables = connection.prepare(list).unwrap();
        let tables = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let tables: Vec<String> = tables.map(Result::unwrap).collect();
        let count = |table: &String| {
            let sql = format!("SELECT count(*) FROM {table}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        tables.iter().map(|table| (table.clone(), count(table))).collect()
    }

    /// Pages of the file, whether or not they have left the log.
    fn pages(&self) -> i64 {
        self.scratch.connect().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap()
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Half an hour's worth: some documents change all the time, others come, and go two hours later.
async fn work(simulation: &Simulation, turn: usize) {
    const AT_A_TIME: usize = 10;
    const KEPT: usize = 4;
    for number in 0..AT_A_TIME {
        let bytes = 500 + 37 * ((turn * 7 + number * 13) % 50);
        simulation.put(&format!("hot-{number}"), turn + 1, bytes).await;
        simulation.put(&format!("{turn}-{number}"), 1, bytes).await;
        if let Some(old) = turn.checked_sub(KEPT) {
            simulation.delete(&format!("{old}-{number}")).await;
        }
    }
    simulation.pass(HOUR / 2).await;
}

#[tokio::test]
async fn a_file_that_is_worked_on_for_a_day_stops_growing() {
    let simulation = Simulation::start().await;
    let mut hours = Vec::new();
    for turn in 0..24 * 2 {
        work(&simulation, turn).await;
        if turn % 2 == 1 {
            hours.push((simulation.records(), simulation.pages()));
        }
    }
    // Documents live for two hours, what is left of them for another one, and more for the next expiry. From
    // then on there are as many records of each kind as ever, on about as many pages.
    let (records, pages): (Vec<_>, Vec<_>) = hours.into_iter().unzip();
    assert_eq!(records.last(), records.get(8), "{records:?}");
    let (early, late) = pages.split_at(8);
    let (most, later) = (early.iter().max().unwrap(), late.iter().max().unwrap());
    assert!(*later <= most + most / 10, "{pages:?}");
    let log = std::fs::metadata(format!("{}-wal", simulation.scratch.path().display())).unwrap();
    assert!(log.len() < 64 << 20, "the log has {} bytes", log.len());
}

#[tokio::test]
async fn what_retention_removes_makes_the_file_smaller() {
    let simulation = Simulation::start().await;
    for number in 0..100 {
        simulation.put(&format!("big-{number}"), 1, 60_000).await;
    }
    simulation.pass(HOUR / 6).await;
    let full = simulation.pages();
    for number in 0..100 {
        simulation.delete(&format!("big-{number}")).await;
    }
    simulation.pass(2 * HOUR).await;
    let left = simulation.pages();
    // A megabyte is kept for what comes next.
    assert!(full > 1_000 && left < full / 2, "{full} pages became {left}");
}
