//! Takes requests over real sockets; gives how many came, when, and how many there were at once.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// How long a test waits for requests before it fails.
const LIMIT: Duration = Duration::from_secs(60);

/// A client on 127.0.0.1 that takes its time over every answer.
#[derive(Clone)]
pub(crate) struct Gauge {
    port: u16,
    answer_after: Option<Duration>,
    seen: Arc<Mutex<Seen>>,
    arrived: Arc<Notify>,
}

#[derive(Default)]
struct Seen {
    arrivals: Vec<Instant>,
    in_flight: usize,
    most: usize,
}

impl Gauge {
    /// Answers after that time; never, if there is none.
    pub(crate) async fn start(answer_after: Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let gauge = Self { port, answer_after, seen: Arc::default(), arrived: Arc::default() };
        let serving = gauge.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                // Ends with the connection, whatever ended that.
                tokio::spawn(async move { drop(serving.serve(stream).await) });
            }
        });
        gauge
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{{id}}", self.port)
    }

    /// When requests came.
    pub(crate) fn arrivals(&self) -> Vec<Instant> {
        self.seen.lock().unwrap().arrivals.clone()
    }

    /// The most requests there were at once.
    pub(crate) fn most(&self) -> usize {
        self.seen.lock().unwrap().most
    }

    /// Waits until so many requests have come; fails if they don't.
    pub(crate) async fn wait_for(&self, count: usize) {
        tokio::select! {
            () = self.reaches(count) => {}
            () = pause(LIMIT) => panic!("{} of {count} requests came", self.arrivals().len()),
        }
    }

    async fn reaches(&self, count: usize) {
        loop {
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if self.seen.lock().unwrap().arrivals.len() >= count {
                return;
            }
            arrived.await;
        }
    }

    async fn serve(self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut length = 0;
            let mut line = String::new();
            while stream.read_line(&mut line).await? > 2 {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            if line.is_empty() {
                return Ok(());
            }
            stream.read_exact(&mut vec![0; length]).await?;
            let _flight = self.arrives();
            match self.answer_after {
                Some(time) => pause(time).await,
                None => std::future::pending().await,
            }
            drop(_flight);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
        }
    }

    #[allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
    fn arrives(&self) -> Flight {
        let mut seen = self.seen.lock().unwrap();
        seen.arrivals.push(Instant::now());
        seen.in_flight += 1;
        seen.most = seen.most.max(seen.in_flight);
        drop(seen);
        self.arrived.notify_waiters();
        Flight(Arc::clone(&self.seen))
    }
}

/// One request that is being answered.
struct Flight(Arc<Mutex<Seen>>);

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.lock().unwrap().in_flight -= 1;
    }
}

#[allow(clippy::disallowed_methods, reason = "a client that takes its time takes real time")]
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
