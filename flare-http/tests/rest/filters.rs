//! Filters: tried on a document, refused where they are wrong, and seen in who has which version.

use std::time::Duration;

use crate::support::Server;
use serde_json::json;

#[tokio::test]
async fn a_filter_is_tried_on_a_document() {
    let server = Server::start().await;
    let test = async |body: &str| server.post("/filters/test", body).await;
    let cases = [
        (r#"{"filter":"document.a > 9007199254740992","document":{"a":9007199254740993}}"#, true),
        (r#"{"filter":"document.a > 9007199254740992","document":{"a":9007199254740992}}"#, false),
        (r#"{"filter":"params.id == '1'","document":{},"params":{"id":"1"}}"#, true),
    ];
    for (body, matches) in cases {
        assert_eq!(test(body).await.is(200).json(), json!({"matches": matches}), "{body}");
    }
    let failed = test(r#"{"filter":"document.a > 1","document":{}}"#).await.is(200).json();
    assert_eq!(failed, json!({"matches": false, "error": "there is no document.a"}));
    for (body, field) in [
        (r#"{"filter":"document.a >","document":{}}"#, "filter"),
        (r#"{"filter":"","document":{}}"#, "filter"),
        (r#"{"filter":"true","document":[]}"#, "document"),
        (r#"{"filter":"true","document":{},"params":{"a":1}}"#, "params.a"),
        (r#"{"filter":"true","document":{},"x":1}"#, "x"),
    ] {
        test(body).await.refuses(400, field);
    }
    let refused = test(r#"{"filter":"true &&\n nobody","document":{}}"#).await.is(400).json();
    let detail = refused["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("line 2, column 2: there is no variable nobody"), "{detail}");
}

#[tokio::test]
async fn a_client_is_told_what_its_filter_wants_and_the_rest_is_explained() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let body = r#"{"endpoint":{"url":"http://f.example/{id}"},"filter":"document.public"}"#;
    let path = server.post(&format!("{users}/subscriptions"), body).await.is(201).created();
    assert_eq!(server.get(&path).await.is(200).json()["filter"], "document.public");
    let put = async |revision: u32, public: bool| {
        let body = json!({"rev": revision, "public": public}).to_string();
        server.put("/documents/http://api.example.com/users/1", &body).await.is(202);
        server.flare.settled(Duration::from_secs(10)).await.unwrap();
        let answer = server.get("/deliveries/http://api.example.com/users/1").await;
        answer.is(200).json()["deliveries"].clone()
    };
    assert_eq!(put(1, false).await, json!([]), "it was never told");
    let delivered = put(2, true).await;
    assert_eq!(
        (&delivered[0]["present"], &delivered[0]["filtered"]),
        (&json!("yes"), &json!(null))
    );
    let taken = put(3, false).await;
    assert_eq!((&taken[0]["present"], &taken[0]["filtered"]), (&json!("no"), &json!(true)));
    let actions: Vec<_> = server.clients.requests().iter().map(|it| it.request.action).collect();
    assert_eq!(actions.len(), 2, "{actions:?}");
}
