//! Takes what to answer; gives a server on the loopback that does, and remembers what it was asked.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A question as it came: what is asked for, and its body.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) target: String,
    pub(crate) body: Value,
}

/// A server that plays Kinesis.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    serving: JoinHandle<()>,
}

impl Script {
    /// Answers with the status and body that `answer` says, which is also told how many questions came before.
    pub(crate) async fn answering(
        answer: impl Fn(&Asked, usize) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::<Asked>::new()));
        let noted = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let question = read(&mut stream).await;
                let (status, body) = {
                    let mut noted = noted.lock().unwrap();
                    let answer = answer(&question, noted.len());
                    noted.push(question);
                    answer
                };
                let body = body.to_string();
                let answer = format!(
                    "HTTP/1.1 {status} Script\r\ncontent-type: application/x-amz-json-1.1\r\n\
                     content-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, asked, serving }
    }

    /// What it was asked.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn read(stream: &mut TcpStream) -> Asked {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let header = |name: &str| {
                let lines = head.lines().filter_map(|line| line.split_once(':'));
                let mut named = lines.filter(|(it, _)| it.eq_ignore_ascii_case(name));
                named.next().map_or("", |(_, value)| value.trim()).to_owned()
            };
            if body.len() >= header("content-length").parse().unwrap_or(0) {
                let target = header("x-amz-target").rsplit('.').next().unwrap().to_owned();
                return Asked { target, body: serde_json::from_str(body).unwrap() };
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the request ended early");
    }
}
