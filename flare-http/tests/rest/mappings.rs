//! Mappings: tried on a message, refused where they are wrong.

use serde_json::{Value, json};

use crate::support::Server;

const USERS: &str = "http://api.example.com/users";

async fn test(server: &Server, document: Value, message: Value) -> Value {
    let body = json!({"document": document, "message": message}).to_string();
    server.post("/consumers/test", &body).await.is(200).json()
}

#[tokio::test]
async fn a_mapping_is_tried_on_a_message() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let resource = users.rsplit('/').next().unwrap();
    let document = json!({
        "url": format!("{USERS}/{{/user/id}}"), "content": "/user",
        "delete": {"pointer": "/op", "equals": "d"}, "revision": "/ts",
    });
    let put = test(&server, document.clone(), json!({"user": {"id": "a/b", "rev": 3}})).await;
    assert_eq!(
        put,
        json!({
            "put": [{
                "url": format!("{USERS}/a%2Fb"), "resource": resource, "revision": 3,
                "content": {"id": "a/b", "rev": 3},
            }],
            "deleted": [],
            "rejects": [],
        })
    );
    let gone = json!({"op": "d", "ts": 7, "user": {"id": 1}});
    let deleted = test(&server, document.clone(), gone).await;
    let expected = json!([{"url": format!("{USERS}/1"), "resource": resource, "revision": 7}]);
    assert_eq!(deleted["deleted"], expected);
    let rejected = test(&server, document, json!({"user": {"rev": 3}})).await;
    let expected = json!([{"reason": "missing", "pointer": "/user/id", "detail": "is missing"}]);
    assert_eq!((&rejected["put"], &rejected["rejects"]), (&json!([]), &expected));
    server.get(&format!("/documents/{USERS}/1")).await.is(404);
}

#[tokio::test]
async fn expressions_presets_and_splits_are_tried() {
    let server = Server::start().await;
    server.resource("users").await;
    let url = format!("{USERS}/{{/id}}");
    let document = json!({"url": url, "delete": "document.op == 'd'", "split": "/all"});
    let message = json!({"all": [
        {"id": 1, "rev": 1, "op": "u"}, {"id": 2, "op": "d"}, {"id": 3, "rev": 1},
        {"id": {}, "rev": 1, "op": "u"},
    ]});
    let tested = test(&server, document, message).await;
    assert_eq!(tested["put"][0]["url"], format!("{USERS}/1"));
    assert_eq!(tested["deleted"][0]["url"], format!("{USERS}/2"));
    let reasons: Vec<_> = tested["rejects"].as_array().unwrap().iter().collect();
    assert_eq!(reasons.len(), 2, "{tested}");
    assert_eq!(
        (&reasons[0]["reason"], &reasons[0]["pointer"]),
        (&json!("expression"), &json!("/all/2"))
    );
    assert_eq!(
        (&reasons[1]["reason"], &reasons[1]["pointer"]),
        (&json!("no-scalar"), &json!("/all/3/id"))
    );
    let sns = json!({"Type": "Notification", "Message": r#"{"id":9,"rev":1}"#});
    let tested = test(&server, json!({"url": url, "preset": "sns"}), sns).await;
    assert_eq!(tested["put"][0]["content"], json!({"id": 9, "rev": 1}));
}

#[tokio::test]
async fn a_document_of_no_resource_is_a_reject() {
    let server = Server::start().await;
    let tested = test(&server, json!({"url": "http://x.example/{/id}"}), json!({"id": 1})).await;
    assert_eq!(tested["rejects"][0]["reason"], "other-resource");
}

#[tokio::test]
async fn a_wrong_mapping_is_refused_by_its_field() {
    let server = Server::start().await;
    for (document, field) in [
        (json!({"url": "http://a/{id}"}), "document.url"),
        (json!({"content": "/a"}), "document.url"),
        (json!({"url": "http://a/{/id}", "preset": "x"}), "document.preset"),
        (json!({"url": "http://a/{/id}", "content": "a"}), "document.content"),
        (json!({"url": "http://a/{/id}", "delete": 7}), "document.delete"),
        (json!({"url": "http://a/{/id}", "delete": "document.a >"}), "document.delete"),
        (
            json!({"url": "http://a/{/id}", "delete": {"pointer": "a", "equals": 1}}),
            "document.delete.pointer",
        ),
        (
            json!({"url": "http://a/{/id}", "delete": {"pointer": "/a", "equals": []}}),
            "document.delete.equals",
        ),
        (json!({"url": "http://a/{/id}", "delete": {"pointer": "/a"}}), "document.delete.equals"),
        (
            json!({"url": "http://a/{/id}", "delete": {"pointer": "/a", "equals": 1, "x": 1}}),
            "document.delete.x",
        ),
        (json!({"url": "http://a/{/id}", "other": 7}), "document.other"),
    ] {
        let body = json!({"document": document, "message": {}}).to_string();
        server.post("/consumers/test", &body).await.refuses(400, field);
    }
}
