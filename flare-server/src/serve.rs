//! Takes a listener and a router; gives answers until told to stop, then lets what is under way
//! finish. Bounded against whoever connects: number of connections, size and time of a request's
//! head, time an answer may lie about. (A body's size and a request's time are the router's.)

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use flare_core::model::duration::MAX_DURATION;
use flare_core::port::{Clock, SystemClock};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use crate::stall::Stall;

/// How long to wait after the system refused a connection, for want of descriptors mostly.
const BREATH: Duration = Duration::from_millis(100);

/// What a server bears of those who call it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Most connections at a time; further ones wait in the system's queue.
    pub connections: usize,
    /// How long a head may take to arrive, and a connection may idle.
    pub header_timeout: Duration,
    /// Bytes of a head.
    pub header_limit: usize,
    /// How long a peer may leave an answer lying.
    pub write_timeout: Duration,
}

impl Default for Limits {
    /// 4096 connections, 10 s and 32 KiB for a head, 30 s for an answer.
    fn default() -> Self {
        Self {
            connections: 4_096,
            header_timeout: Duration::from_secs(10),
            header_limit: 32 << 10,
            write_timeout: Duration::from_secs(30),
        }
    }
}

/// Serves until `shutdown` is ready, then closes the listener and idle connections, and gives
/// requests under way as long as `drain` says. Says whether all of them finished.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: &Limits,
    shutdown: impl Future<Output = ()>,
    drain: Duration,
) -> bool {
    let graceful = GracefulShutdown::new();
    tokio::select! {
        biased;
        () = shutdown => {}
        () = accept(&listener, &router, limits, &graceful) => {}
    }
    // From here on whoever connects is refused, and can go to another node at once.
    drop(listener);
    let clock = SystemClock::new();
    tokio::select! {
        biased;
        () = graceful.shutdown() => true,
        () = clock.sleep(drain) => false,
    }
}

async fn accept(
    listener: &TcpListener,
    router: &Router,
    limits: &Limits,
    graceful: &GracefulShutdown,
) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let protocol = protocol(limits);
    let clock = SystemClock::new();
    loop {
        // A permit first: beyond the limit, connections wait with the system and cost us nothing.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) if is_the_peer_s(&error) => continue,
            Err(error) => {
                warn!(%error, "no connection can be accepted for now");
                clock.sleep(BREATH).await;
                continue;
            }
        };
        let connection = graceful.watch(connection(&protocol, stream, router, limits));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
    }
}

type Connection = http1::Connection<TokioIo<Stall<TcpStream>>, TowerToHyperService<Router>>;

fn connection(
    protocol: &http1::Builder,
    stream: TcpStream,
    router: &Router,
    limits: &Limits,
) -> Connection {
    // Answers are written whole, so waiting for more to send along would only delay them.
    drop(stream.set_nodelay(true));
    let stream = TokioIo::new(Stall::new(stream, limits.write_timeout));
    protocol.serve_connection(stream, TowerToHyperService::new(router.clone()))
}

fn protocol(limits: &Limits) -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        // Longer than that is as good as never, and more than hyper can add to a time.
        .header_read_timeout(limits.header_timeout.min(MAX_DURATION))
        .max_buf_size(limits.header_limit);
    protocol
}

/// Whether the peer went away between connecting and being accepted: nothing to wait for.
fn is_the_peer_s(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn limits_that_never_end_are_no_limits() {
        let never = Duration::MAX;
        let limits = Limits { header_timeout: never, write_timeout: never, ..Limits::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            serve(listener, Router::new(), &limits, async { drop(stopped.await) }, never).await
        });
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        stop.send(()).unwrap();
        assert!(serving.await.unwrap(), "a request is still under way");
    }
}
