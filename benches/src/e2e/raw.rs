//! Takes the very requests Flare makes; sends them with the very client it uses, and nothing
//! else: as fast as it can be done.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use flare_core::http::HttpDelivery;
use flare_core::port::{Delivery, DeliveryOutcome, DeliveryRequest, SystemClock};

use super::options::Options;
use super::receiver::Receiver;
use super::round::{Round, Start};
use super::with_flare::{self, Running};
use crate::Result;

/// How many connections are tried.
pub(super) const CONNECTIONS: [usize; 3] = [16, 64, 256];
/// The round the requests name.
const ROUND: i64 = 1;

/// Requests and a client.
pub(super) struct Raw {
    options: Options,
    delivery: HttpDelivery,
    requests: Vec<DeliveryRequest>,
}

impl Raw {
    /// Records what Flare would send in a round.
    pub(super) async fn new(options: &Options, receiver: &Receiver) -> Result<Self> {
        let recorder = Arc::new(Recorder::default());
        let running = Running::new(&options.recorded(), receiver, Some(recorder.clone())).await?;
        running.put_all(ROUND).await?;
        running.settled().await?;
        running.end().await?;
        let requests = std::mem::take(&mut *recorder.lock());
        if requests.len() != options.subscriptions * options.changes {
            return Err(format!("Flare made {} requests", requests.len()).into());
        }
        // What clients that hang or fail are told is not sent: it counts for neither side.
        let unwell: Vec<String> = (options.healthy()..options.subscriptions)
            .map(|number| receiver.url(&ROUND.to_string(), number, ""))
            .collect();
        let counted = |request: &DeliveryRequest| {
            !unwell.iter().any(|prefix| request.url.starts_with(prefix))
        };
        let requests = requests.into_iter().filter(counted).collect();
        let delivery = HttpDelivery::new(with_flare::http()?, Arc::new(SystemClock::new()))?;
        Ok(Self { options: options.clone(), delivery, requests })
    }

    /// Sends all requests over that many connections.
    pub(super) async fn round(&self, connections: usize, receiver: &mut Receiver) -> Result<Round> {
        receiver.expect(ROUND, self.options.healthy(), self.options.changes).await?;
        let requests = Arc::new(Mutex::new(self.requests.clone().into_iter()));
        let start = Start::now(receiver)?;
        let senders: Vec<_> = (0..connections)
            .map(|_| {
                let (delivery, requests) = (self.delivery.clone(), Arc::clone(&requests));
                tokio::spawn(async move {
                    let next = || requests.lock().unwrap_or_else(PoisonError::into_inner).next();
                    while let Some(request) = next() {
                        delivery.attempt(request).await;
                    }
                })
            })
            .collect();
        for sender in senders {
            sender.await?;
        }
        receiver.complete().await?;
        Ok(start.end(receiver).await?.0)
    }
}

/// Keeps requests instead of sending them.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<DeliveryRequest>>);

impl Recorder {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<DeliveryRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Delivery for Recorder {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        self.lock().push(request);
        DeliveryOutcome::answered(200)
    }
}
