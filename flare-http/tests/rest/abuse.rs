//! What nobody should send.

use std::time::Duration;

use flare_http::Api;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{Answer, Server, read, send};

const USER: &str = "/documents/http://api.example.com/users/1";
const LIMIT: usize = 10_000;

async fn small() -> Server {
    let server = Server::with(|api: Api| api.body_limit(LIMIT)).await;
    server.resource("users").await;
    server
}

#[tokio::test]
async fn a_body_at_the_limit_is_taken_and_one_above_refused() {
    let server = small().await;
    let body = |size: usize| format!(r#"{{"rev":1,"x":"{}"}}"#, "x".repeat(size - 16));
    assert_eq!(body(LIMIT).len(), LIMIT);
    server.put(USER, &body(LIMIT)).await.is(202);
    server.put(USER, &body(LIMIT + 1)).await.is(413);
    server.post("/resources", &body(LIMIT + 1)).await.is(413);
}

/// Sends a head, then whatever `more` makes until somebody closes.
async fn upload(server: &Server, framing: &str, more: &[u8]) -> (usize, Answer) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "PUT {USER} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{framing}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let sending = async {
        let mut sent = 0;
        while !more.is_empty() && sent < (256 << 20) && writer.write_all(more).await.is_ok() {
            sent += more.len();
        }
        sent
    };
    let reading = async {
        use tokio::io::AsyncReadExt;
        let mut bytes = Vec::new();
        let mut buffer = [0; 4_096];
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            bytes.extend_from_slice(&buffer[..count]);
        }
        Answer::parse(&bytes)
    };
    tokio::join!(sending, reading)
}

#[tokio::test]
async fn an_endless_upload_is_refused_at_the_limit() {
    let server = small().await;
    let mut chunk = b"1000\r\n".to_vec();
    chunk.extend_from_slice(&[b' '; 0x1000]);
    chunk.extend_from_slice(b"\r\n");
    let (sent, answer) = upload(&server, "transfer-encoding: chunked", &chunk).await;
    answer.is(413);
    assert!(sent < 64 << 20, "{sent} bytes were taken: what the sockets hold is far less");
}

#[tokio::test]
async fn a_terabyte_that_is_announced_is_refused_at_once() {
    let server = small().await;
    let (sent, answer) = upload(&server, "content-length: 1099511627776", b"").await;
    answer.is(413);
    assert_eq!(sent, 0);
}

#[tokio::test]
async fn a_body_that_never_comes_is_given_up() {
    let server =
        Server::with(|api| api.timeout(Duration::from_millis(100)).body_limit(LIMIT)).await;
    server.resource("users").await;
    let (_, answer) = upload(&server, "content-length: 10", b"").await;
    answer.is(408);
    server.get("/health/live").await.is(200);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_refused_or_the_connection_closed() {
    let server = small().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "PUT {USER} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\nnot a length\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    read(&mut stream).await.is(400);
    server.get(USER).await.is(404);
}

#[tokio::test]
async fn large_headers_are_refused_and_harm_nobody() {
    let server = small().await;
    let large = "x".repeat(100_000);
    let answer = send(server.address, "GET", "/status", &[("x-large", &large)], b"").await;
    assert!(matches!(answer.status, 200 | 431), "{}", answer.status);
    let many: Vec<(String, &str)> = (0..1_000).map(|n| (format!("x-{n}"), "y")).collect();
    let many: Vec<(&str, &str)> =
        many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let answer = send(server.address, "GET", "/status", &many, b"").await;
    assert_eq!(answer.status, 431);
    server.get("/health/live").await.is(200);
}

#[tokio::test]
async fn deep_json_is_an_ordinary_body() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let depth = 1_000_000;
    let deep = |open: &str, close: &str| open.repeat(depth) + &close.repeat(depth);
    for nested in [deep("[", "]"), deep(r#"{"a":"#, "}").replace("a\":}", "a\":1}")] {
        server.post("/resources", &nested).await.is(400);
        let field = format!(r#"{{"endpoint":"http://a.example/{{id}}","change":{nested}}}"#);
        server.post("/resources", &field).await.is(400);
        server.post(&format!("{users}/subscriptions"), &nested).await.is(400);
        let data =
            format!(r#"{{"endpoint":{{"url":"http://c.example/"}},"data":{{"x":{nested}}}}}"#);
        server.post(&format!("{users}/subscriptions"), &data).await.is(400);
        let document = format!(r#"{{"rev":1,"deep":{nested}}}"#);
        let put = server.put(USER, &document).await;
        assert!(matches!(put.status, 202 | 400), "{}", put.status);
        if put.status == 202 {
            let shown = send(server.address, "GET", USER, &[], b"").await.is(200);
            assert!(shown.body.contains(&nested));
        }
    }
    server.get("/health/live").await.is(200);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused() {
    let server = small().await;
    let json = [("content-type", "application/json")];
    for path in [USER, "/resources"] {
        let method = if path == USER { "PUT" } else { "POST" };
        for body in [&b"\xff\xfe"[..], b"{\"rev\":1,\"x\":\"\xff\"}", b"\0", b"{\"\xc3\":1}"] {
            server.send(method, path, &json, body).await.is(400);
        }
    }
}

#[tokio::test]
async fn a_long_name_is_not_sent_back_whole() {
    let server = Server::start().await;
    let name = "n".repeat(1_000_000);
    let answer = server.post("/resources", &format!(r#"{{"{name}":1}}"#)).await.is(400);
    assert!(answer.body.len() < 4_096, "{}", answer.body.len());
    let long = format!("/resources?{}=1", "n".repeat(50_000));
    let answer = server.get(&long).await.is(400);
    assert!(answer.body.len() < 4_096, "{}", answer.body.len());
    let long = format!("/resources/{}", "n".repeat(50_000));
    let answer = server.get(&long).await.is(404);
    assert!(answer.body.len() < 4_096, "{}", answer.body.len());
}

/// A connection that has sent the head of a put and `sent` bytes of a body of `length`.
async fn half_way(server: &Server, length: usize, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "PUT {USER} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&b" ".repeat(sent)).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

#[tokio::test]
async fn many_bodies_at_once_are_told_to_come_back_and_small_ones_still_fit() {
    const ALL: usize = 10 * LIMIT;
    let server = Server::with(|api: Api| api.body_limit(LIMIT).bodies_limit(ALL)).await;
    server.resource("users").await;
    let mut open = Vec::new();
    for _ in 0..9 {
        open.push(half_way(&server, LIMIT, LIMIT - 1).await);
    }
    // What was sent is read at some time.
    let large = format!(r#"{{"rev":1,"x":"{}"}}"#, "x".repeat(LIMIT - 16));
    let refused = loop {
        let answer = server.put(USER, &large).await;
        if answer.status != 202 {
            break answer;
        }
    };
    let refused = refused.is(429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    server.put(USER, r#"{"rev":2}"#).await.is(202);
    // Whoever breaks off makes room.
    open.clear();
    while server.put(USER, &large).await.status != 202 {}
}
