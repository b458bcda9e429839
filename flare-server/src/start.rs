//! Takes the configuration; gives a running server, and an orderly end: first no new connections,
//! then what was accepted is delivered, then the work stops and its leases are released. On stores that
//! others see too it begins to hand over at once, as they go on with what it was given.

use std::time::Duration;

use flare_core::port::{Clock, SystemClock};
use flare_core::{Error, Flare};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tracing::{error, info, warn};

use crate::bind::bind;
use crate::config::{Config, Engine};
use crate::failure::{Chain, Failure};
use crate::otlp::Telemetry;
use crate::serve::{Limits, serve};
use crate::signals::Signals;
use crate::{compose, descriptors, logging, metering, sqlite, stores, version};

/// What the work may still take after the drain timeout is used up: giving back its leases.
const LAST: Duration = Duration::from_secs(2);

pub(crate) fn start(config: &Config) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("cannot start threads", error))?;
    let telemetry = {
        let _on_it = runtime.enter();
        Telemetry::start(&config.otlp)?
    };
    logging::install(&config.log, telemetry.as_ref())?;
    let outcome = runtime.block_on(run(config, telemetry.as_ref()));
    if let Some(telemetry) = telemetry {
        telemetry.end();
    }
    // Whatever still hangs (a name lookup) must not keep the process.
    runtime.shutdown_background();
    outcome
}

async fn run(config: &Config, telemetry: Option<&Telemetry>) -> Result<(), Failure> {
    let listening = |error| Failure::because("cannot listen for signals", error);
    let mut signals = Signals::listen().map_err(listening)?;
    let metrics = metering::install(telemetry)?;
    let stores = tokio::select! {
        stores = stores::connect(config) => stores?,
        name = signals.next() => {
            info!("{name}: flare ends before it was connected to its stores");
            return Ok(());
        }
    };
    let listener = bind(config.http.server.addr).await?;
    let (flare, runtime) = compose::flare(config, stores, telemetry)?;
    let router = match compose::router(config, flare.clone(), metrics.clone()) {
        Ok(router) => match telemetry {
            Some(telemetry) => telemetry.around(router),
            None => router,
        },
        Err(failure) => {
            runtime.unused();
            return Err(failure);
        }
    };
    let limits = limits(config);
    let addr = listener.local_addr().map_err(|error| Failure::because("cannot listen", error))?;
    tokio::spawn(metering::keep_up(metrics));

    if config.repository.engine == Engine::Sqlite {
        sqlite::tell(config);
    }
    info!(version = version::VERSION, "flare listens on http://{addr}");
    warn_of(config);
    let (stop, stopped) = oneshot::channel::<()>();
    // An error means that the sender is gone, and so is whoever wanted this to run.
    let mut work = Work(tokio::spawn(runtime.run(stopped)));

    let clock = SystemClock::new();
    let drain = config.settings.drain_limit;
    let mut fault = None;
    let mut asked_at = Duration::ZERO;
    let mut stop = Some(stop);
    let asked = async {
        tokio::select! {
            name = signals.next() => info!("{name}: flare drains, for {drain:?} at most"),
            ended = work.ended() => fault = Some(ended),
        }
        // Others go on with what is in stores that they see too.
        if config.repository.engine != Engine::Memory {
            drop(stop.take());
        }
        asked_at = clock.monotonic();
        tokio::spawn(hurry(signals));
    };
    if !serve(listener, router, &limits, asked, drain).await {
        warn!("requests were still under way when worker.drain-timeout had passed");
    }
    let left = || drain.saturating_sub(clock.monotonic().saturating_sub(asked_at));
    if fault.is_none() {
        if config.worker.enable {
            deliver_the_rest(config, &flare, left()).await;
        }
        drop(stop);
    }
    if fault.is_none() {
        tokio::select! {
            ended = work.ended() => fault = Some(ended),
            () = clock.sleep(left() + LAST) => {
                warn!("the work did not end when worker.drain-timeout had passed");
            }
        }
    }
    match fault {
        Some(Err(error)) => {
            error!("flare failed: {}", Chain(&error));
            Err(Failure::Logged)
        }
        Some(Ok(())) | None => {
            info!("flare has ended");
            Ok(())
        }
    }
}

/// Whoever asks twice does not want to wait.
async fn hurry(mut signals: Signals) {
    let name = signals.next().await;
    warn!("{name} again: flare ends at once");
    std::process::exit(1);
}

/// The runtime's task.
struct Work(JoinHandle<Result<(), Error>>);

impl Work {
    async fn ended(&mut self) -> Result<(), Error> {
        (&mut self.0).await.unwrap_or_else(|panic: JoinError| {
            let fault = Error::new(flare_core::ErrorKind::Internal, "run");
            Err(fault.with_detail("the runtime panicked").with_source(panic))
        })
    }
}

/// A store that lives in this process ends with it, so what is pending would be lost.
async fn deliver_the_rest(config: &Config, flare: &Flare, limit: Duration) {
    if config.repository.engine != Engine::Memory {
        return;
    }
    if let Err(error) = flare.settled(limit).await {
        warn!(
            "changes are lost with this process's memory, for their clients did not take them \
             within worker.drain-timeout: {}",
            Chain(&error)
        );
    }
}

fn limits(config: &Config) -> Limits {
    let server = &config.http.server;
    let in_flight = if config.works() { config.settings.in_flight_limit } else { 0 };
    let in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
    Limits {
        connections: descriptors::connections(server.connection_limit, in_flight),
        header_timeout: server.header_timeout,
        header_limit: usize::try_from(server.header_limit).unwrap_or(usize::MAX),
        write_timeout: server.timeout,
    }
}

/// What works, and is probably not what was wanted.
fn warn_of(config: &Config) {
    let addr = config.http.server.addr;
    if config.http.auth.tokens.is_empty() && !addr.ip().is_loopback() {
        warn!(
            "everybody who reaches {addr} may do everything: set http.auth.tokens, or listen on \
             loopback (127.0.0.1) behind something that asks who it is"
        );
    }
    if !config.http.auth.tokens.is_empty() && !addr.ip().is_loopback() {
        warn!(
            "tokens reach {addr} in the clear, for flare speaks plain HTTP: whoever sees the network \
             between may use them. Listen on loopback (127.0.0.1) behind a proxy that speaks TLS, or \
             keep others off that network"
        );
    }
    let reserved = config.settings.pinned_slots;
    if reserved > 0 {
        warn!(
            "cluster.pinned-slots sets {reserved} slots aside that nothing in this program uses: only \
             a host that embeds Flare on the same stores can pin a subscription to one (Flare::pin). \
             Without such a host leave it at 0"
        );
    }
    if !config.worker.enable && config.repository.engine == Engine::Memory {
        warn!(
            "nothing will be delivered: worker.enable is false, and no other process sees this \
             one's memory"
        );
    }
}
