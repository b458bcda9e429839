//! Takes a Flare among very many documents; gives how long its status takes while a client is behind, and how
//! long after a restart everybody is told again while as many rows wait as there are documents.

use std::time::Duration;

use flare_benches::measure::median;
use flare_core::Flare;
use serde_json::{Value, json};

use super::options::Options;
use super::receiver::Receiver;
use super::with_flare::{self, Running};
use super::{fill, now_nanos};
use crate::Result;
use crate::mongo::timed;

/// How far a client is behind whose status is asked for.
const LAG: usize = 1_000;
/// Times it is asked for.
const TRIES: usize = 21;
/// How long spreading may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What takes its time among very many documents.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Large {
    /// The status of a subscription with a lag of 1,000, in milliseconds (median).
    pub(super) status: f64,
    /// From opening the store with so many rows pending until each client was told of something, in seconds.
    pub(super) restart: f64,
    pub(super) pending: usize,
}

impl Large {
    /// Measures, and removes what is stored.
    pub(super) async fn measure(
        options: &Options,
        mut flare: Running,
        receiver: &mut Receiver,
    ) -> Result<Self> {
        let status = status(&mut flare, receiver).await?;
        let left = flare.stop().await;
        let documents = (options.documents / options.subscriptions).max(1);
        let pending = documents * options.subscriptions;
        let revision = left.revision + 1;
        let backend = left.store.open().await?;
        let repository = backend.repository.clone().ok_or("the store has no repository")?;
        let filled =
            fill::pending(&*repository, left.resource, &left.subscriptions, documents, revision);
        filled.await?;
        drop((repository, backend));
        // Of every subscription whatever comes first.
        receiver.expect_some(revision, options.subscriptions, 1, options.documents).await?;
        let begin = now_nanos();
        let (flare, runtime) =
            Flare::builder(left.store.open().await?).http(with_flare::http()?).build()?;
        let runtime = tokio::spawn(runtime.run(std::future::pending::<()>()));
        receiver.complete().await?;
        let received = receiver.received().await?;
        runtime.abort();
        let _ = runtime.await;
        drop(flare);
        left.store.remove().await?;
        if received.lost() > 0 {
            return Err(format!("{} clients were told nothing", received.lost()).into());
        }
        let restart = received.end().saturating_sub(begin) as f64 / 1e9;
        Ok(Self { status, restart, pending })
    }

    pub(super) fn to_json(self) -> Value {
        json!({
            "status_ms": self.status,
            "restart_seconds": self.restart,
            "pending_at_restart": self.pending,
        })
    }
}

/// How long a status takes, in milliseconds.
async fn status(running: &mut Running, receiver: &mut Receiver) -> Result<f64> {
    let Some(behind) = running.subscriptions.first().copied() else { return Ok(f64::NAN) };
    running.flare.pause(behind).await?;
    let mut times = Vec::new();
    let ask = async |running: &Running| {
        let began = now_nanos();
        while running.flare.subscription_status(behind).await?.lag != LAG as u64 {
            if u128::from(now_nanos() - began) > LIMIT.as_nanos() {
                return Err("the documents are not spread".into());
            }
            super::pause(Duration::from_millis(10)).await;
        }
        for _ in 0..TRIES {
            let (time, _) =
                timed(async { Ok(running.flare.subscription_status(behind).await?) }).await?;
            times.push(time.as_secs_f64() * 1e3);
        }
        running.flare.resume(behind).await?;
        Ok(())
    };
    running.put_some(LAG, receiver, ask).await?;
    Ok(median(times))
}
