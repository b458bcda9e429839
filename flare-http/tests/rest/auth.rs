//! Tokens and what they allow.

use flare_http::auth::{Scope, Tokens};

use crate::support::{Answer, Server};

const READ: &str = "read-read-read-read";
const WRITE: &str = "write-write-write-write";
const ADMIN: &str = "admin-admin-admin-admin";

async fn guarded() -> Server {
    let tokens = Tokens::new().with(READ, Scope::Read).unwrap();
    let tokens = tokens.with(WRITE, Scope::Write).unwrap().with(ADMIN, Scope::Admin).unwrap();
    Server::with(|api| api.auth(tokens).metrics(String::new)).await
}

async fn ask(server: &Server, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    server.send(method, path, &headers, body.as_bytes()).await
}

#[tokio::test]
async fn without_a_known_token_nobody_gets_in() {
    let server = guarded().await;
    for path in ["/", "/status", "/resources", "/metrics", "/openapi.json", "/nowhere"] {
        let answer = server.get(path).await.refuses(401, "Authorization");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"flare\""));
        ask(&server, "some-other-token-here", "GET", path, "").await.is(401);
    }
    for value in ["", "Bearer", "Bearer ", "Basic eDp5", READ, "\u{e9}"] {
        server.send("GET", "/resources", &[("authorization", value)], b"").await.is(401);
    }
    let lower = format!("bearer {READ}");
    server.send("GET", "/resources", &[("authorization", &lower)], b"").await.is(200);
}

#[tokio::test]
async fn health_is_open() {
    let server = guarded().await;
    server.get("/health/live").await.is(200);
    server.get("/health/ready").await.is(200);
    server.call("POST", "/health/live", None).await.is(401);
}

#[tokio::test]
async fn a_scope_allows_what_those_before_it_do() {
    let server = guarded().await;
    let body = r#"{"endpoint":"http://api.example.com/users/{id}","change":{"field":"rev"}}"#;
    ask(&server, READ, "POST", "/resources", body).await.is(403);
    ask(&server, WRITE, "POST", "/resources", body).await.is(403);
    let users = ask(&server, ADMIN, "POST", "/resources", body).await.created();

    let document = "/documents/http://api.example.com/users/1";
    ask(&server, READ, "PUT", document, r#"{"rev":1}"#).await.is(403);
    ask(&server, WRITE, "PUT", document, r#"{"rev":1}"#).await.is(202);
    ask(&server, ADMIN, "PUT", document, r#"{"rev":2}"#).await.is(202);

    let list = format!("{users}/subscriptions");
    let body = r#"{"endpoint":{"url":"http://c.example/{id}"}}"#;
    ask(&server, READ, "POST", &list, body).await.is(403);
    let one = ask(&server, WRITE, "POST", &list, body).await.created();
    for token in [READ, WRITE, ADMIN] {
        ask(&server, token, "GET", &one, "").await.is(200);
        ask(&server, token, "GET", document, "").await.is(200);
    }
    ask(&server, READ, "DELETE", &one, "").await.is(403);
    ask(&server, WRITE, "DELETE", &one, "").await.is(204);
    ask(&server, WRITE, "DELETE", &users, "").await.is(403);
    ask(&server, ADMIN, "DELETE", &users, "").await.is(204);
}

#[test]
fn tokens_do_not_show() {
    let tokens = Tokens::new().with(ADMIN, Scope::Admin).unwrap();
    assert_eq!(format!("{tokens:?}"), r#"Tokens({"token-1": Admin})"#);
    let refused = Tokens::new().with("a b c d e f g h i j k", Scope::Read).unwrap_err();
    assert!(!format!("{refused:?}").contains("a b c"), "{refused:?}");
}
