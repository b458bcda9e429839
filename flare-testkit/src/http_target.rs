//! Takes a script; gives a client to deliver to: an HTTP/1.1 server on loopback that answers as
//! scripted, well or badly, and keeps every request as it came.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::http_answer::{Answer, Manner};

/// Longest request that is read; beyond it the connection is closed.
const LONGEST: usize = 16 << 20;

/// A client on 127.0.0.1, gone when it is dropped.
///
/// ```
/// use flare_testkit::{Answer, HttpTarget};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let target = HttpTarget::start(Answer::status(204)).await;
/// target.on("/busy", Answer::status(503).header("Retry-After", "120"));
/// target.on("/slow", Answer::hang());
/// assert!(target.url("/busy").starts_with("http://127.0.0.1:"));
/// assert!(target.requests().is_empty());
/// # });
/// ```
#[derive(Debug)]
pub struct HttpTarget {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    otherwise: Answer,
    always: BTreeMap<String, Answer>,
    next: BTreeMap<String, VecDeque<Answer>>,
    requests: Vec<RawRequest>,
    connections: usize,
}

/// A request as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawRequest {
    /// The method.
    pub method: String,
    /// The path and query, untouched.
    pub target: String,
    /// The headers, in order, names as they were written.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl RawRequest {
    /// All values of a header, in order.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }
}

impl HttpTarget {
    /// Starts a client that gives every request this answer, unless told otherwise.
    pub async fn start(otherwise: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(Mutex::new(State {
            otherwise,
            always: BTreeMap::new(),
            next: BTreeMap::new(),
            requests: Vec::new(),
            connections: 0,
        }));
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, task }
    }

    /// A URL nobody listens at.
    pub async fn refusing() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        drop(listener);
        format!("http://{address}/")
    }

    /// Gives requests to this path and query this answer.
    pub fn on(&self, target: impl Into<String>, answer: Answer) {
        lock(&self.state).always.insert(target.into(), answer);
    }

    /// Gives the next request to this path and query this answer; several are given in turn.
    pub fn on_next(&self, target: impl Into<String>, answer: Answer) {
        lock(&self.state).next.entry(target.into()).or_default().push_back(answer);
    }

    /// The URL of a path and query.
    pub fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    /// The complete requests so far.
    pub fn requests(&self) -> Vec<RawRequest> {
        lock(&self.state).requests.clone()
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        lock(&self.state).connections
    }
}

impl Drop for HttpTarget {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        lock(&state).connections += 1;
        connections.spawn(serve(stream, Arc::clone(&state)));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers the requests of one connection, one after another, until one ends it.
async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        let answer = {
            let mut state = lock(&state);
            let queued = state.next.get_mut(&request.target).and_then(VecDeque::pop_front);
            let answer = queued.or_else(|| state.always.get(&request.target).cloned());
            let answer = answer.unwrap_or_else(|| state.otherwise.clone());
            state.requests.push(request);
            answer
        };
        if !give(&mut stream, &answer).await.unwrap_or(false) {
            return;
        }
    }
}

/// The next request of a connection, if a whole one comes.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<RawRequest> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        read_more(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    let mut request = RawRequest { method, target, headers, body: Vec::new() };
    let length = request.values("content-length").first().map_or(Ok(0), |length| length.parse());
    let length: usize = length.ok().filter(|length| *length <= LONGEST)?;
    while buffer.len() < length {
        read_more(stream, buffer).await?;
    }
    request.body = buffer.drain(..length).collect();
    Some(request)
}

async fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let read = stream.read_buf(buffer).await.ok()?;
    (read > 0 && buffer.len() <= 2 * LONGEST).then_some(())
}

/// Gives an answer; tells whether the connection can be used again.
#[allow(clippy::disallowed_methods, reason = "a client that is slow is slow in real time")]
async fn give(stream: &mut TcpStream, answer: &Answer) -> std::io::Result<bool> {
    match &answer.manner {
        Manner::Whole => {
            stream.write_all(&answer.bytes()).await?;
            return Ok(true);
        }
        Manner::Close => {}
        Manner::Cut => stream.write_all(&answer.half()).await?,
        Manner::Raw(bytes) => stream.write_all(bytes).await?,
        Manner::Hang => std::future::pending().await,
        Manner::HangAfterHead => {
            stream.write_all(&answer.half()).await?;
            std::future::pending().await
        }
        Manner::Drip(pause) => {
            stream.write_all(&answer.endless_head()).await?;
            loop {
                stream.write_all(b"drip").await?;
                tokio::time::sleep(*pause).await;
            }
        }
        Manner::Flood => {
            stream.write_all(&answer.endless_head()).await?;
            let wave = [b'~'; 8192];
            loop {
                stream.write_all(&wave).await?;
            }
        }
    }
    stream.shutdown().await?;
    // Closing with unread bytes would reset the connection before the answer was read.
    let _rest = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut [0; 1024])).await;
    Ok(false)
}
