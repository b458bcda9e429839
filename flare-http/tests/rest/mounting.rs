//! Mounted in somebody else's router: under prefixes, beside other state, behind other layers.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use flare_backend_memory::MemoryBackend;
use flare_core::Flare;

use crate::support::{send, serve};

#[derive(Clone)]
struct Host(&'static str);

fn flare() -> Flare {
    Flare::builder(MemoryBackend::new()).build().unwrap().0
}

const RESOURCE: &[u8] =
    br#"{"endpoint":"http://api.example.com/users/{id}","change":{"field":"rev"}}"#;
const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn a_host_with_state_mounts_it_under_prefixes() {
    let app = Router::new()
        .route("/mine", get(async |State(host): State<Host>| host.0))
        .nest("/flare", flare_http::router(flare()))
        .nest("/tenants/{id}/documents/flare", flare_http::router(flare()))
        .with_state(Host("mine"));
    let address = serve(app).await;
    assert_eq!(send(address, "GET", "/mine", &[], b"").await.body, "mine");
    for prefix in ["/flare", "/tenants/x/documents/flare"] {
        let call = async |method: &str, path: &str, body: &[u8]| {
            send(address, method, &format!("{prefix}{path}"), &[JSON], body).await
        };
        let users = call("POST", "/resources", RESOURCE).await.created();
        assert!(users.starts_with(&format!("{prefix}/resources/")), "{users}");
        send(address, "GET", &users, &[], b"").await.is(200);
        let hook = br#"{"endpoint":{"url":"http://c.example/{id}"}}"#;
        let one = send(address, "POST", &format!("{users}/subscriptions"), &[JSON], hook).await;
        send(address, "GET", &one.created(), &[], b"").await.is(200);

        for document in
            ["http://api.example.com/users/1", "http%3A%2F%2Fapi.example.com%2Fusers%2F2"]
        {
            call("PUT", &format!("/documents/{document}"), br#"{"rev":1}"#).await.is(202);
            call("GET", &format!("/documents/{document}"), b"").await.is(200);
        }
        call("GET", "", b"").await.is(200);
        let lost = call("GET", "/nowhere", b"").await.is(404);
        assert_eq!(lost.json()["error"]["status"], 404, "{lost:?}");
        let other = call("PATCH", "/resources", b"").await.is(405);
        assert_eq!(other.header("allow"), Some("GET,HEAD,POST"));
        assert_eq!(other.json()["error"]["title"], "Method Not Allowed");
    }
}

#[tokio::test]
async fn two_in_one_process_share_nothing() {
    let app = Router::new()
        .nest("/a", flare_http::router(flare()))
        .nest("/b", flare_http::router(flare()));
    let address = serve(app).await;
    send(address, "POST", "/a/resources", &[JSON], RESOURCE).await.is(201);
    let list = send(address, "GET", "/b/resources", &[], b"").await.is(200).json();
    assert_eq!(list["pagination"]["total"], 0);
}
