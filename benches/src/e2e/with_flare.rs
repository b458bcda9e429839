//! Takes documents; puts them into a Flare with default settings and gives what it took until
//! every client had every one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_backend_memory::MemoryBackend;
use flare_benches::world::body;
use flare_core::Flare;
use flare_core::http::{Guard, HttpConfig};
use flare_core::model::subscription::BatchOptions;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::Delivery;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::options::Options;
use super::receiver::Receiver;
use super::rest::Rest;
use super::round::{Round, Start};
use crate::Result;

/// Tasks that put at the same time.
const PUTTERS: usize = 4;
const BODY: usize = 300;
/// How long notifications wait for others that go with them.
const GATHERED: Duration = Duration::from_millis(20);
/// How long what is in flight to clients that answer may take to be stored.
const STORED: Duration = Duration::from_millis(50);
const SETTLED: Duration = Duration::from_secs(60);
/// What requests are signed with, if they are.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// How both sides make requests.
pub(crate) fn http() -> Result<HttpConfig> {
    Ok(HttpConfig::new().guard(Guard::default().allow("127.0.0.0/8")?))
}

/// A Flare that runs.
pub(super) struct Running {
    options: Options,
    flare: Flare,
    rest: Option<Rest>,
    stop: oneshot::Sender<()>,
    runtime: JoinHandle<flare_core::Result<()>>,
    round: i64,
}

impl Running {
    /// Starts one with its subscriptions, delivering over HTTP unless told otherwise.
    pub(super) async fn new(
        options: &Options,
        receiver: &Receiver,
        delivery: Option<Arc<dyn Delivery>>,
    ) -> Result<Self> {
        let mut builder = Flare::builder(MemoryBackend::new()).http(http()?);
        if let Some(delivery) = delivery {
            builder = builder.delivery(delivery);
        }
        let (flare, runtime) = builder.build()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::spawn(runtime.run(async move {
            let _ = stopped.await;
        }));
        let new = NewResource::new("http://api.example.com/items/{item}").change_field("rev");
        let resource = flare.create_resource(new).await?;
        for number in 0..options.subscriptions {
            let mut spec = match options.batch {
                None => SubscriptionSpec::post(receiver.url("{revision}", number, "{item}")),
                Some(most) => {
                    let batch = BatchOptions::of(most).wait(GATHERED);
                    SubscriptionSpec::post(receiver.batch_url(number)).batch(batch)
                }
            };
            if options.signing {
                spec = spec.signing([SECRET]);
            }
            if let Some(rate) = options.rate {
                spec = spec.rate(rate, Duration::from_secs(1));
            }
            flare.create_subscription(resource.id, spec).await?;
        }
        let rest = match options.rest {
            true => Some(Rest::start(&flare).await?),
            false => None,
        };
        Ok(Self { options: options.clone(), flare, rest, stop, runtime, round: 1 })
    }

    /// Changes every document once and waits until everybody was told.
    pub(super) async fn round(&mut self, receiver: &mut Receiver) -> Result<Round> {
        self.round += 1;
        receiver.expect(self.round, self.options.healthy(), self.options.documents).await?;
        let start = Start::now(receiver)?;
        let put_at = self.put_all(self.round).await?;
        receiver.complete().await?;
        match self.options.is_disturbed() {
            false => self.settled().await?,
            // What hangs or fails is never settled, and what does not is stored at once.
            true => super::pause(STORED).await,
        }
        let (mut round, received) = start.end(receiver).await?;
        // A delivery may overtake the answer to its put.
        let latency = |(place, at): (usize, &u64)| {
            at.saturating_sub(put_at[place % self.options.documents]) as f64 / 1e6
        };
        let arrived = received.arrivals.iter().enumerate().filter(|(_, at)| **at > 0);
        round.latencies = arrived.map(latency).collect();
        round.latencies.sort_unstable_by(f64::total_cmp);
        Ok(round)
    }

    /// Puts every document at a revision; gives when each put returned.
    pub(super) async fn put_all(&self, revision: i64) -> Result<Vec<u64>> {
        let content = body(revision, BODY);
        let putters: Vec<_> = (0..PUTTERS)
            .map(|first| {
                let numbers = (first..self.options.documents).step_by(PUTTERS);
                match &self.rest {
                    None => tokio::spawn(put(self.flare.clone(), numbers, content.clone())),
                    Some(rest) => tokio::spawn(rest.clone().put(numbers, content.clone())),
                }
            })
            .collect();
        let mut put_at = vec![0; self.options.documents];
        for putter in putters {
            for (number, at) in putter.await?? {
                put_at[number] = at;
            }
        }
        Ok(put_at)
    }

    pub(super) async fn settled(&self) -> Result<()> {
        Ok(self.flare.settled(SETTLED).await?)
    }

    /// Lets it finish; what hangs is dropped.
    pub(super) async fn end(self) {
        if self.options.hang > 0 {
            self.runtime.abort();
        }
        let _ = self.stop.send(());
        let _ = self.runtime.await;
    }
}

async fn put(
    flare: Flare,
    numbers: impl Iterator<Item = usize>,
    content: Bytes,
) -> Result<Vec<(usize, u64)>> {
    let mut put_at = Vec::new();
    for number in numbers {
        let url = format!("http://api.example.com/items/{number}");
        flare.put_json(&url, content.clone()).await?;
        put_at.push((number, super::now_nanos()));
    }
    Ok(put_at)
}
