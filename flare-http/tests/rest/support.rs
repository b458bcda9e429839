//! A server on loopback with Flare on memory, and a client that knows every byte it sends.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use flare_backend_memory::MemoryBackend;
use flare_core::cluster::Health;
use flare_core::port::SystemClock;
use flare_core::{Flare, FlareBuilder};
use flare_http::Api;
use flare_testkit::RecordingDelivery;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::schema::Spec;

/// A server with Flare behind it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) flare: Flare,
    pub(crate) clients: RecordingDelivery,
    spec: Spec,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|api| api).await
    }

    /// With options of its own; works all slots.
    pub(crate) async fn with(options: impl FnOnce(Api) -> Api) -> Self {
        let server = Self::on(Flare::builder(MemoryBackend::new()), true, options).await;
        while server.flare.cluster().await.unwrap().health != Health::Green {
            tokio::task::yield_now().await;
        }
        server
    }

    /// On a Flare of its own; `runs` says whether its runtime does.
    pub(crate) async fn on(
        builder: FlareBuilder,
        runs: bool,
        options: impl FnOnce(Api) -> Api,
    ) -> Self {
        let clients = RecordingDelivery::new(Arc::new(SystemClock::new()));
        let (flare, runtime) = builder.delivery(Arc::new(clients.clone())).build().unwrap();
        if runs {
            tokio::spawn(runtime.run(std::future::pending::<()>()));
            while !flare.node().running {
                tokio::task::yield_now().await;
            }
        }
        let address = serve(options(Api::new(flare.clone())).router()).await;
        Self { address, flare, clients, spec: Spec::load() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.call("POST", path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> Answer {
        self.call("PUT", path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, None).await
    }

    /// A request with a body of JSON, or none.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let json: &[(&str, &str)] =
            if body.is_some() { &[("content-type", "application/json")] } else { &[] };
        self.send(method, path, json, body.unwrap_or_default().as_bytes()).await
    }

    /// A request with these headers and this body, whatever they are.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let answer = send(self.address, method, path, headers, body).await;
        self.spec.check(method, path, &answer);
        answer
    }

    /// A resource with an integer revision in `rev`; its path.
    pub(crate) async fn resource(&self, name: &str) -> String {
        let endpoint = format!("http://api.example.com/{name}/{{id}}");
        let body = format!(r#"{{"endpoint":"{endpoint}","change":{{"field":"rev"}}}}"#);
        self.post("/resources", &body).await.created()
    }

    /// A subscription of that resource; its path.
    pub(crate) async fn subscription(&self, resource: &str, url: &str) -> String {
        let body = format!(r#"{{"endpoint":{{"url":"{url}"}}}}"#);
        self.post(&format!("{resource}/subscriptions"), &body).await.created()
    }
}

/// Serves a router on a port of its own.
pub(crate) async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// Insists on a status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Insists on an error at a field.
    #[track_caller]
    pub(crate) fn refuses(self, status: u16, field: &str) -> Self {
        let answer = self.is(status);
        assert_eq!(answer.json()["error"]["field"], field, "{answer:?}");
        answer
    }

    /// Insists on 201; gives the `Location`.
    #[track_caller]
    pub(crate) fn created(self) -> String {
        let answer = self.is(201);
        answer.header("location").unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("cut: {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            (name.to_ascii_lowercase(), value.to_owned())
        };
        Self { status, headers: lines.map(header).collect(), body: body.to_owned() }
    }
}

pub(crate) async fn send(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        head += &format!("content-length: {}\r\n", body.len());
    }
    let mut bytes = (head + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    let mut stream = TcpStream::connect(to).await.unwrap();
    // Who refuses early may close while we still send.
    let _ = stream.write_all(&bytes).await;
    read(&mut stream).await
}

/// Reads an answer up to its end.
pub(crate) async fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16_384];
    // A connection that is reset after the answer has answered.
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        bytes.extend_from_slice(&buffer[..count]);
    }
    Answer::parse(&bytes)
}
