//! A server on 127.0.0.1 that keeps what it is sent and answers as it is told.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What to do once a request is there.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Write this and wait for the next request.
    Keep(String),
    /// Write this and close.
    Close(String),
    /// Write this and then nothing, for ever.
    Hang(String),
    /// Write this, then go on writing for as long as anybody reads.
    Flood(String),
}

impl Answer {
    /// A whole answer with this body; the connection stays.
    pub(crate) fn ok(body: &str) -> Self {
        Self::Keep(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
    }
}

pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<String>>,
    connections: AtomicUsize,
    flooded: AtomicU64,
}

impl Server {
    /// Answers everything the same way.
    pub(crate) async fn start(answer: Answer) -> Self {
        Self::scripted(move |_| answer.clone()).await
    }

    /// Answers by the number of the request, from 0, over all connections.
    pub(crate) async fn scripted(script: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), None, script).await
    }

    /// As [`Server::start`], secured.
    pub(crate) async fn secured(tls: TlsAcceptor, answer: Answer) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), Some(tls), move |_| answer.clone()).await
    }

    pub(crate) async fn at(
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        script: impl Fn(usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let script = Arc::new(script);
        let accepting = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    seen.connections.fetch_add(1, Ordering::SeqCst);
                    let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                    let tls = tls.clone();
                    tokio::spawn(async move {
                        match tls {
                            None => serve(stream, &seen, &*script).await,
                            Some(tls) => {
                                if let Ok(stream) = tls.accept(stream).await {
                                    serve(stream, &seen, &*script).await;
                                }
                            }
                        }
                    });
                }
            }
        });
        Self { address, seen, accepting }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many bytes a flood got rid of.
    pub(crate) fn flooded(&self) -> u64 {
        self.seen.flooded.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Seen,
    script: &(impl Fn(usize) -> Answer + ?Sized),
) {
    while let Some(request) = read(&mut stream).await {
        let number = {
            let mut requests = seen.requests.lock().unwrap();
            requests.push(request);
            requests.len() - 1
        };
        let answer = script(number);
        let (Answer::Keep(text) | Answer::Close(text) | Answer::Hang(text) | Answer::Flood(text)) =
            &answer;
        if stream.write_all(text.as_bytes()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        match answer {
            Answer::Keep(_) => {}
            Answer::Close(_) => return stream.shutdown().await.unwrap_or_default(),
            Answer::Hang(_) => std::future::pending().await,
            Answer::Flood(_) => {
                while let Ok(written) = stream.write(&[b'x'; 4096]).await {
                    seen.flooded.fetch_add(written as u64, Ordering::SeqCst);
                }
                return;
            }
        }
    }
}

/// One request, by its content-length; none once the other side has closed.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text);
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(read @ 1..) => bytes.extend_from_slice(&buffer[..read]),
            _ => return None,
        }
    }
}
