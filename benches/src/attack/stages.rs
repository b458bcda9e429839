//! Many partitions on a slow store, a burst of changes and then one change in 10 s: how many rows are
//! written for those that are needed, and what is left waiting. Simulated time, so that minutes of it
//! take seconds.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Settings;
use flare_core::model::{NewResource, SubscriptionSpec, Timestamp};
use flare_core::port::{Clock, DocumentStore, Queue, QueueName};
use flare_core::{Backend, Flare};
use flare_testkit::{CountingRepository, ManualClock, RecordingDelivery};

use super::{Finding, Result, Run, Size};

pub(super) const RUN: Run = Run {
    name: "stages",
    about: "a burst of changes to 400 partitions on a slow store, then one in 10 s",
    make,
};

const BURST: u64 = 30;
const EVERY: Duration = Duration::from_secs(10);
/// What a change takes one node, whose four workers make three calls for each partition.
const CHANGE: Duration = Duration::from_millis(8_400);

/// What is attacked, and how.
#[derive(Debug, Clone, Copy)]
struct Attack {
    nodes: u64,
    partitions: u32,
    /// Changes after the burst.
    single: u64,
    /// How long the store stands still in between.
    still: Duration,
}

fn make(size: Size) -> Result<Vec<Finding>> {
    let (nodes, partitions, single): (&[u64], u32, u64) = match size {
        Size::Short => (&[1, 3], 80, 8),
        Size::Full => (&[1, 3, 10], 400, 29),
    };
    let mut findings = Vec::new();
    for nodes in nodes {
        for still in [Duration::ZERO, Duration::from_secs(60)] {
            let attack = Attack { nodes: *nodes, partitions, single, still };
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            findings.extend(runtime.block_on(attack.run())?);
        }
    }
    Ok(findings)
}

impl Attack {
    async fn run(self) -> Result<Vec<Finding>> {
        let clock = ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000));
        let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
        let slow = CHANGE * 4 / 3 / self.partitions;
        let store = CountingRepository::new(memory.repository());
        let store = store.slowed(slow, Arc::new(clock.clone()));
        let calm = self.flare(&clock, Backend::from(memory.clone()), u64::MAX)?.0;
        self.subscribe(&calm).await?;
        let mut nodes = Vec::new();
        for seed in 0..self.nodes {
            let mut backend = Backend::from(memory.clone());
            backend.repository = Some(Arc::new(store.clone()));
            let (flare, runtime) = self.flare(&clock, backend, seed)?;
            tokio::spawn(runtime.run(std::future::pending::<()>()));
            nodes.push(flare);
        }
        clock.advance(Duration::from_secs(20)).await;
        let put = |number: u64, revision: u64| {
            let flare = nodes[number as usize % nodes.len()].clone();
            let url = format!("http://api.example.com/users/{}", number % BURST);
            tokio::spawn(
                async move { flare.put_json(&url, format!(r#"{{"rev":{revision}}}"#)).await },
            )
        };
        let mut puts: Vec<_> = (0..BURST).map(|number| put(number, 1)).collect();
        for number in 0..self.single {
            if number == 2 {
                store.stand_still(clock.now() + self.still);
            }
            clock.advance(EVERY).await;
            puts.push(put(number, 2 + number));
        }
        // Enough for what is left, and for what may wait twice.
        clock.advance(Duration::from_secs(180)).await;
        for put in puts {
            put.await??;
        }
        let needed = (BURST + self.single) * u64::from(self.partitions);
        let written = store.tally().of("spread_rows").items;
        let mut left = memory.repository().count_undispatched(None).await?;
        for queue in [QueueName::Partition, QueueName::Spread] {
            let depth = memory.queue().depth(&queue).await?;
            left += depth.ready + depth.delayed + depth.in_flight;
        }
        let Self { nodes, still, .. } = self;
        let what =
            |figure| format!("{figure}, {nodes} nodes, store still for {} s", still.as_secs());
        Ok(vec![
            Finding::at_most(
                what("rows written / needed"),
                written as f64 / needed as f64,
                1.05,
                "",
            ),
            Finding::at_most(what("left waiting"), left as f64, 0.0, ""),
        ])
    }

    fn flare(
        self,
        clock: &ManualClock,
        backend: Backend,
        seed: u64,
    ) -> flare_core::Result<(Flare, flare_core::Runtime)> {
        let mut settings = Settings::default();
        settings.partition_limit = 1;
        settings.slots = Some(2);
        Flare::builder(backend)
            .delivery(Arc::new(RecordingDelivery::new(Arc::new(clock.clone()))))
            .clock(Arc::new(clock.clone()))
            .settings(settings)
            .seed(seed)
            .build()
    }

    /// Paused clients: rows are written, and nothing is sent.
    async fn subscribe(self, flare: &Flare) -> flare_core::Result<()> {
        let users = NewResource::new("http://api.example.com/users/{id}").change_field("rev");
        let users = flare.create_resource(users).await?;
        for number in 0..self.partitions {
            let hook = SubscriptionSpec::post(format!("http://client{number}.example.com/{{id}}"));
            let client = flare.create_subscription(users.id, hook).await?;
            flare.pause(client.id).await?;
        }
        Ok(())
    }
}
