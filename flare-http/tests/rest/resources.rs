//! Kinds of documents.

use crate::support::Server;

const USERS: &str = r#"{"endpoint":"http://api.example.com/users/{ id }/",
    "change":{"field":"updatedAt","format":"rfc3339"}}"#;

#[tokio::test]
async fn is_created_read_listed_and_deleted() {
    let server = Server::start().await;
    let created = server.post("/resources", USERS).await.is(201);
    let path = created.header("location").unwrap();
    let resource = created.json();
    assert_eq!(path, format!("/resources/{}", resource["id"].as_str().unwrap()));
    assert_eq!(resource["endpoint"], "http://api.example.com/users/{id}");
    assert_eq!(resource["change"]["format"], "rfc3339");
    assert_eq!(server.get(path).await.is(200).json(), resource);
    let list = server.get("/resources").await.is(200).json();
    assert_eq!(list["resources"][0], resource);
    assert_eq!(list["pagination"].to_string(), r#"{"limit":30,"offset":0,"total":1}"#);
    server.delete(path).await.is(204);
    server.get(path).await.is(404);
    server.delete(path).await.is(404);
    assert_eq!(server.get("/resources").await.json()["pagination"]["total"], 0);
}

#[tokio::test]
async fn lists_have_pages() {
    let server = Server::with(|api| api.default_limit(2)).await;
    for name in ["a", "b", "c"] {
        server.resource(name).await;
    }
    let endpoints = async |query: &str| {
        let list = server.get(&format!("/resources{query}")).await.is(200).json();
        assert_eq!(list["pagination"]["total"], 3);
        let names = list["resources"].as_array().unwrap().iter();
        let name = |it: &serde_json::Value| it["endpoint"].as_str().unwrap()[23..24].to_owned();
        names.map(name).collect::<String>()
    };
    assert_eq!(endpoints("").await, "ab", "the host's own limit, oldest first");
    assert_eq!(endpoints("?limit=1000").await, "abc");
    assert_eq!(endpoints("?limit=1&offset=1").await, "b");
    assert_eq!(endpoints("?offset=3").await, "");
    assert_eq!(endpoints("?offset=9223372036854775807").await, "");
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("limit=1&limit=1", "limit"),
        ("offset=-1", "offset"),
        ("sort=asc", "sort"),
    ] {
        server.get(&format!("/resources?{query}")).await.refuses(400, field);
    }
}

#[tokio::test]
async fn refusals_name_the_field() {
    let server = Server::start().await;
    for (body, field) in [
        (r#"{}"#, "endpoint"),
        (r#"{"endpoint":null,"change":{"field":"r"}}"#, "endpoint"),
        (r#"{"endpoint":"http://a.example/{id}"}"#, "change"),
        (r#"{"endpoint":"http://a.example/{id}","change":{}}"#, "change.field"),
        (r#"{"endpoint":"http://a.example/{id}","change":{"field":""}}"#, "change.field"),
        (r#"{"endpoint":"http://a.example/{id}","change":{"field":7}}"#, "change.field"),
        (r#"{"endpoint":"http://a.example/{id}","change":"r"}"#, "change"),
        (r#"{"endpoint":"http://a.example/{id}","change":["r"]}"#, "change"),
        (r#"{"endpoint":"http://a.example/{id}","change":{"field":"r","x":1}}"#, "change.x"),
        (
            r#"{"endpoint":"http://a.example/{id}","change":{"field":"r","format":"x"}}"#,
            "change.format",
        ),
        (r#"{"endpoint":"http://a.example/","change":{"field":"r"}}"#, "endpoint"),
        (r#"{"endpoint":"http://a.example/{id}","change":{"field":"r"},"id":1}"#, "id"),
    ] {
        let answer = server.post("/resources", body).await.refuses(400, field);
        assert!(answer.json()["error"]["detail"].is_string(), "{answer:?}");
    }
    let twice = r#"{"endpoint":"http://a.example/{id}","endpoint":"b","change":{"field":"r"}}"#;
    let list = r#"["http://a.example/{id}",{"field":"r"}]"#;
    for body in [twice, list, "", "x", "[]", "7", "null", "\"\"", "{", "{}{}", "\u{feff}{}"] {
        server.post("/resources", body).await.is(400);
    }
    server.post("/resources?x=1", USERS).await.refuses(400, "x");
}

#[tokio::test]
async fn conflicts_are_409() {
    let server = Server::start().await;
    let path = server.post("/resources", USERS).await.created();
    server.post("/resources", USERS).await.is(409);
    server.subscription(&path, "http://client.example/{id}").await;
    server.delete(&path).await.is(409);
}

#[tokio::test]
async fn what_is_not_an_id_is_unknown() {
    let server = Server::start().await;
    for id in [
        "1",
        "x",
        "%ff",
        "0192F0E0-0000-7000-8000-00000000000",
        "0192f0e0000070008000000000000000",
        "0192f0e0-0000-7000-8000-000000000000",
    ] {
        server.get(&format!("/resources/{id}")).await.is(404);
        server.delete(&format!("/resources/{id}")).await.is(404);
        server.get(&format!("/resources/{id}/subscriptions")).await.is(404);
    }
}
