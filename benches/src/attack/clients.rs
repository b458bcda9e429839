//! Takes notifications over HTTP/1.1, as clients that are well, slow or hang, and counts them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::Result;

/// More than any head has.
const HEAD: usize = 8 << 10;

/// Clients that listen on one port; the first part of a URL's path says what kind of client it is.
#[derive(Debug)]
pub struct Clients {
    port: u16,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    well: AtomicUsize,
    slow: AtomicUsize,
    waiting: AtomicUsize,
}

impl Clients {
    /// Has clients listen, those that are slow taking so long for each answer.
    pub async fn listen(slow: Duration) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let seen = Arc::<Seen>::default();
        let taken = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&taken), slow));
            }
        });
        Ok(Self { port, seen })
    }

    /// Where a client is told that answers at once.
    pub fn well(&self, number: usize) -> String {
        self.url("well", number)
    }

    /// Where a client is told that takes its time.
    pub fn slow(&self, number: usize) -> String {
        self.url("slow", number)
    }

    /// Where a client is told that never answers.
    pub fn hanging(&self) -> String {
        self.url("hang", 0)
    }

    fn url(&self, kind: &str, number: usize) -> String {
        format!("http://127.0.0.1:{}/{kind}/{number}/{{item}}", self.port)
    }

    /// What clients that are well were told so far.
    pub fn told_well(&self) -> usize {
        self.seen.well.load(Ordering::Acquire)
    }

    /// What slow clients were told so far.
    pub fn told_slow(&self) -> usize {
        self.seen.slow.load(Ordering::Acquire)
    }

    /// Requests that have no answer yet.
    pub fn waiting(&self) -> usize {
        self.seen.waiting.load(Ordering::Acquire)
    }
}

/// Serves a connection until it is closed; an error on it is the end of it, for a client too.
async fn serve(mut stream: TcpStream, seen: Arc<Seen>, slow: Duration) {
    // Small and by itself: what clients hold is no part of what is measured.
    let mut buffer = vec![0; HEAD];
    let mut filled = 0;
    loop {
        let Ok(count @ 1..) = stream.read(&mut buffer[filled..]).await else { return };
        filled += count;
        let head = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = head else { continue };
        let text = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
        let kind = text.split('/').nth(1).unwrap_or_default().to_owned();
        let length = text.split("content-length:").nth(1).and_then(|rest| rest.lines().next());
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        let mut left = length.saturating_sub(filled - end - 4);
        while left > 0 {
            let most = left.min(HEAD);
            let Ok(count @ 1..) = stream.read(&mut buffer[..most]).await else { return };
            left -= count;
        }
        filled = 0;
        match kind.as_str() {
            "well" => {
                seen.well.fetch_add(1, Ordering::AcqRel);
            }
            kind => {
                seen.waiting.fetch_add(1, Ordering::AcqRel);
                let time = if kind == "slow" { slow } else { Duration::MAX };
                let closed = wait(&mut stream, time).await;
                seen.waiting.fetch_sub(1, Ordering::AcqRel);
                if closed {
                    return;
                }
                seen.slow.fetch_add(1, Ordering::AcqRel);
            }
        }
        if stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.is_err() {
            return;
        }
    }
}

/// Lets time pass; tells whether the connection was closed meanwhile: nobody says anything more before
/// there is an answer.
#[allow(clippy::disallowed_methods, reason = "clients take real time")]
async fn wait(stream: &mut TcpStream, time: Duration) -> bool {
    let mut nothing = [0];
    tokio::select! {
        () = tokio::time::sleep(time.min(Duration::from_secs(3_600))) => false,
        _ = stream.read(&mut nothing) => true,
    }
}
