//! The whole way: a hundred documents put at once, each told to ten clients that accept at once, until
//! everything is settled. Queue and leases are in memory, so that only the repository is measured.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_backend_mongo::{MongoConfig, MongoRepository};
use flare_benches::measure::median;
use flare_core::Flare;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::{Delivery, DeliveryOutcome, DeliveryRequest};

use super::{BATCH, timed};
use crate::Result;

const SUBSCRIPTIONS: usize = 10;
const LIMIT: Duration = Duration::from_secs(120);

/// A client that accepts everything at once.
#[derive(Debug)]
struct Accepts;

#[async_trait]
impl Delivery for Accepts {
    async fn attempt(&self, _: DeliveryRequest) -> DeliveryOutcome {
        DeliveryOutcome::answered(200)
    }
}

pub(super) async fn deliveries_per_second(config: MongoConfig, rounds: usize) -> Result<f64> {
    let repository = Arc::new(MongoRepository::connect(config).await?);
    let (flare, runtime) = Flare::builder(MemoryBackend::new())
        .repository(repository)
        .exclusive()
        .delivery(Arc::new(Accepts))
        .build()?;
    let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
    let new = NewResource::new("http://whole.example.com/items/{item}").change_field("rev");
    let resource = flare.create_resource(new).await?;
    for number in 0..SUBSCRIPTIONS {
        let spec = SubscriptionSpec::post(format!("http://client-{number}.example.com/"));
        flare.create_subscription(resource.id, spec).await?;
    }
    let mut rates = Vec::new();
    for round in 0..=rounds {
        let (time, ()) = timed(deliver(&flare, round + 1)).await?;
        // The first round makes the rows.
        if round > 0 {
            rates.push((BATCH * SUBSCRIPTIONS) as f64 / time.as_secs_f64());
        }
    }
    running.abort();
    Ok(median(rates))
}

async fn deliver(flare: &Flare, revision: usize) -> Result<()> {
    let put = |item: usize| {
        let body = format!(r#"{{"rev":{revision},"pad":"{}"}}"#, "x".repeat(180));
        (format!("http://whole.example.com/items/{item}"), body)
    };
    for answer in flare.put_documents((0..BATCH).map(put)).await {
        answer?;
    }
    Ok(flare.settled(LIMIT).await?)
}
