//! Documents, by URLs of every spelling.

use std::time::Duration;

use crate::support::{Server, read};

const USER: &str = "/documents/http://api.example.com/users/ada";

#[tokio::test]
async fn is_put_read_and_deleted() {
    let server = Server::start().await;
    server.resource("users").await;
    let change = async |method: &str, revision: u32| {
        let answer = match method {
            "PUT" => server.put(USER, &format!(r#"{{"rev":{revision}, "n":1.00}}"#)).await,
            _ => server.delete(USER).await,
        };
        let answer = answer.is(202);
        assert_eq!(answer.body, "");
        answer.header("flare-change").unwrap().to_owned()
    };
    server.get(USER).await.is(404);
    assert_eq!(change("DELETE", 0).await, "unchanged");
    assert_eq!(change("PUT", 5).await, "created");
    assert_eq!(change("PUT", 7).await, "updated");
    assert_eq!(change("PUT", 7).await, "unchanged");
    assert_eq!(change("PUT", 6).await, "stale");
    let read = server.get(USER).await.is(200);
    assert!(read.body.ends_with(r#""content":{"rev":7, "n":1.00}}"#), "byte for byte: {read:?}");
    assert_eq!(read.json()["revision"], 7);
    assert_eq!(read.json()["id"], "http://api.example.com/users/ada");
    let at = async |revision: &str| {
        server.send("DELETE", USER, &[("flare-revision", revision)], b"").await
    };
    assert_eq!(at("6").await.is(202).header("flare-change"), Some("stale"));
    at("x").await.is(400);
    at("\u{e9}").await.refuses(400, "Flare-Revision");
    assert_eq!(at("7").await.is(202).header("flare-change"), Some("deleted"));
    server.get(USER).await.is(404);
}

/// Which action each client was told, in their order.
async fn told(server: &Server, client: &str) -> Vec<String> {
    server.flare.settled(Duration::from_secs(20)).await.unwrap();
    let requests = server.clients.requests().into_iter().map(|recorded| recorded.request);
    let its = requests.filter(|request| request.url.starts_with(client));
    its.map(|request| format!("{:?} {}", request.action, request.version)).collect()
}

#[tokio::test]
async fn a_more_specific_resource_swallows_no_deletion() {
    let server = Server::start().await;
    let wide = server.resource("{kind}").await;
    server.subscription(&wide, "http://wide.example/").await;
    server.put(USER, r#"{"rev":5}"#).await.is(202);
    let narrow = server.resource("users").await;
    server.subscription(&narrow, "http://narrow.example/").await;
    assert_eq!(server.get(USER).await.is(200).json()["revision"], 5, "it is still there");
    assert_eq!(server.delete(USER).await.is(202).header("flare-change"), Some("deleted"));
    server.get(USER).await.is(404);
    assert_eq!(told(&server, "http://wide.example/").await, ["Create live(5)", "Delete gone(5)"]);
    assert_eq!(told(&server, "http://narrow.example/").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_put_moves_a_document_to_the_more_specific_resource() {
    let server = Server::start().await;
    let wide = server.resource("{kind}").await;
    server.subscription(&wide, "http://wide.example/").await;
    server.put(USER, r#"{"rev":5}"#).await.is(202);
    // Its revisions have nothing to do with those of the other.
    let narrow = r#"{"endpoint":"http://api.example.com/users/{id}",
        "change":{"field":"at","format":"unix"}}"#;
    let narrow = server.post("/resources", narrow).await.created();
    server.subscription(&narrow, "http://narrow.example/").await;
    server.put(USER, r#"{"rev":5}"#).await.refuses(400, "at");
    assert_eq!(server.get(USER).await.is(200).json()["revision"], 5, "it has not moved");
    let put = server.put(USER, r#"{"at":2}"#).await.is(202);
    assert_eq!(put.header("flare-change"), Some("created"));
    assert_eq!(server.get(USER).await.json()["revision"], "1970-01-01T00:00:02Z");
    assert_eq!(told(&server, "http://wide.example/").await, ["Create live(5)", "Delete gone(5)"]);
    let at_narrow = told(&server, "http://narrow.example/").await;
    assert_eq!(at_narrow, ["Create live(2000000000)"]);
    assert_eq!(server.delete(USER).await.is(202).header("flare-change"), Some("deleted"));
    assert_eq!(told(&server, "http://narrow.example/").await.len(), 2);
    assert_eq!(told(&server, "http://wide.example/").await.len(), 2, "told once");
}

#[tokio::test]
async fn the_url_is_taken_raw_or_decoded_once() {
    let server = Server::start().await;
    server.resource("users").await;
    for (path, id) in [
        ("http://api.example.com/users/1", "1"),
        ("http%3A%2F%2Fapi.example.com%2Fusers%2F2", "2"),
        ("http:%2f%2fapi.example.com/users/3", "3"),
        ("HTTP://API.example.com:80/users/4", "4"),
        ("http://api.example.com/users/a%20b", "a%20b"),
        ("http%3A%2F%2Fapi.example.com%2Fusers%2Fa%2520c", "a%20c"),
        ("http://api.example.com/users/5?ignored=1&x", "5"),
    ] {
        server.put(&format!("/documents/{path}"), r#"{"rev":1}"#).await.is(202);
        let shown = server.get(&format!("/documents/{path}")).await.is(200).json();
        assert_eq!(shown["id"], format!("http://api.example.com/users/{id}"), "{path}");
    }
    for path in ["users/1", "ftp://a.example/1", "http:/api.example.com/users/1", "%ff", "%4"] {
        server.put(&format!("/documents/{path}"), r#"{"rev":1}"#).await.is(400);
        server.get(&format!("/documents/{path}")).await.is(400);
        server.delete(&format!("/documents/{path}")).await.is(400);
    }
    for path in ["http://api.example.com/orders/1", "https://api.example.com/users/1"] {
        server.put(&format!("/documents/{path}"), r#"{"rev":1}"#).await.is(404);
        server.get(&format!("/documents/{path}")).await.is(404);
        server.delete(&format!("/documents/{path}")).await.is(404);
    }
    server.get("/documents/").await.is(404);
    server.get("/documents").await.is(404);
}

#[tokio::test]
async fn a_revision_with_a_format_is_shown_as_a_time() {
    let server = Server::start().await;
    let resource = r#"{"endpoint":"http://api.example.com/users/{id}",
        "change":{"field":"at","format":"unix"}}"#;
    server.post("/resources", resource).await.is(201);
    server.put(USER, r#"{"at":1700000000}"#).await.is(202);
    assert_eq!(server.get(USER).await.json()["revision"], "2023-11-14T22:13:20Z");
}

#[tokio::test]
async fn refuses_what_is_no_document() {
    let server = Server::start().await;
    server.resource("users").await;
    for body in ["", "x", "[]", "{}", r#"{"rev":"x"}"#, r#"{"rev":1.5}"#, r#"{"rev":1,"rev":2}"#] {
        server.put(USER, body).await.is(400);
    }
    for kind in ["text/plain", "application/xml", "multipart/form-data", "json", "application/"] {
        let answer = server.send("PUT", USER, &[("content-type", kind)], br#"{"rev":1}"#).await;
        answer.refuses(415, "Content-Type");
    }
    server.send("PUT", USER, &[], br#"{"rev":1}"#).await.is(415);
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/merge+json"] {
        server.send("PUT", USER, &[("content-type", kind)], br#"{"rev":1}"#).await.is(202);
    }
    server.post(USER, "{}").await.is(405);
}

#[tokio::test]
async fn a_valid_trace_is_told_to_clients_and_any_other_ignored() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let server = Server::start().await;
    let users = server.resource("users").await;
    server.subscription(&users, "http://c.example/{id}").await;
    let json = ("content-type", "application/json");
    for (n, trace) in [("1", TRACE), ("2", "00-nonsense")] {
        let path = format!("/documents/http://api.example.com/users/{n}");
        let headers = [json, ("traceparent", trace)];
        server.send("PUT", &path, &headers, br#"{"rev":1}"#).await.is(202);
    }
    server.flare.settled(Duration::from_secs(10)).await.unwrap();
    let headers = [("traceparent", TRACE)];
    let path = "/documents/http://api.example.com/users/2";
    server.send("DELETE", path, &headers, b"").await.is(202);
    server.flare.settled(Duration::from_secs(10)).await.unwrap();
    let traced: Vec<bool> = server
        .clients
        .requests()
        .iter()
        .map(|told| told.request.headers.iter().any(|(_, value)| value == TRACE))
        .collect();
    assert_eq!(traced.iter().filter(|traced| **traced).count(), 2, "{traced:?}");
    assert_eq!(traced.len(), 3);
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    use tokio::io::AsyncWriteExt;
    let server = Server::start().await;
    server.resource("users").await;
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let put = |n: u32, more: &str| {
        let body = format!(r#"{{"rev":{n}}}"#);
        format!(
            "PUT {USER} HTTP/1.1\r\nhost: x\r\n{more}content-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let both = put(1, "") + &put(2, "connection: close\r\n");
    stream.write_all(both.as_bytes()).await.unwrap();
    let answers = read(&mut stream).await;
    assert!(answers.body.contains("flare-change: updated"), "{answers:?}");
}
