//! Takes what to answer; gives a server on the loopback that does, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    head: String,
    pub(crate) body: String,
}

impl Seen {
    /// The value of a header, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut named = lines.filter(|(it, _)| it.eq_ignore_ascii_case(name));
        named.next().map_or("", |(_, value)| value.trim())
    }

    /// What is asked for.
    pub(crate) fn target(&self) -> &str {
        self.header("x-amz-target").rsplit('.').next().unwrap()
    }
}

/// A server that plays SQS or STS.
#[derive(Debug)]
pub(crate) struct Stub {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    serving: JoinHandle<()>,
}

impl Stub {
    /// Answers each request with the status and body that `answer` says, which is also told how many
    /// requests for the same there were before.
    pub(crate) async fn answering(
        answer: impl Fn(&Seen, usize) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::<Seen>::new()));
        let noted = Arc::clone(&seen);
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read(&mut stream).await;
                let (status, body) = {
                    let mut noted = noted.lock().unwrap();
                    let before = noted.iter().filter(|it| it.target() == request.target()).count();
                    let answer = answer(&request, before);
                    noted.push(request);
                    answer
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} Stub\r\ncontent-type: application/x-amz-json-1.0\r\n\
                     content-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, seen, serving }
    }

    /// What it was asked.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn read(stream: &mut TcpStream) -> Seen {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let seen = Seen { head: head.to_owned(), body: body.to_owned() };
            let length: usize = seen.header("content-length").parse().unwrap_or(0);
            if body.len() >= length {
                return seen;
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the request ended early");
    }
}
