//! What documents are pulled from: created, replaced, paused, and what becomes of its messages.

use serde_json::{Value, json};

use crate::pulling::{Pulling, USERS, last};
use crate::support::Server;

const UNKNOWN: &str = "0192f0e0-0000-7000-8000-000000000000";

#[tokio::test]
async fn is_created_read_listed_replaced_and_deleted() {
    let at = Pulling::start().await;
    let server = &at.server;
    let created = server.post("/consumers", &at.asked().to_string()).await.is(201);
    let path = created.header("location").unwrap().to_owned();
    let shown = created.json();
    assert_eq!(path, format!("/consumers/{}", shown["id"].as_str().unwrap()));
    assert_eq!(created.header("etag"), Some("\"1\""));
    let mut wanted = json!({
        "id": last(&path), "resource": at.resource(), "generation": 1, "status": "active",
        "memory": {"queue": "users"}, "document": {"url": format!("{USERS}/{{/id}}")},
        "onReject": "keep", "createdAt": shown["createdAt"], "updatedAt": shown["createdAt"],
    });
    assert_eq!(shown, wanted);
    let read = server.get(&path).await.is(200);
    assert_eq!((read.json(), read.header("etag")), (shown.clone(), Some("\"1\"")));

    let other = at.create(&at.asked()).await;
    let list = server.get("/consumers").await.is(200).json();
    assert_eq!(list["pagination"], json!({"limit": 30, "offset": 0, "total": 2}));
    assert_eq!(
        (&list["consumers"][0], &list["consumers"][1]["id"]),
        (&shown, &json!(last(&other)))
    );
    let page = server.get("/consumers?limit=1&offset=1").await.is(200).json();
    assert_eq!(page["consumers"], json!([list["consumers"][1]]));
    assert_eq!(server.get("/consumers?offset=2").await.json()["consumers"], json!([]));

    let mapping = json!({
        "preset": "sns", "url": format!("{USERS}/{{/user/id}}"), "content": "/user",
        "delete": {"pointer": "/op", "equals": "d"}, "revision": "/ts", "split": "/all",
    });
    let mut replacement = json!({
        "memory": {"stream": "events", "from": "latest"}, "document": mapping, "onReject": "leave",
    });
    server.put(&path, &replacement.to_string()).await.refuses(400, "onReject");
    replacement["memory"] = json!({"queue": "events"});
    let replaced = server.put(&path, &replacement.to_string()).await.is(200);
    assert_eq!(replaced.header("etag"), Some("\"2\""));
    wanted["generation"] = json!(2);
    wanted["updatedAt"] = replaced.json()["updatedAt"].clone();
    for name in ["memory", "document", "onReject"] {
        wanted[name] = replacement[name].clone();
    }
    assert_eq!(replaced.json(), wanted);
    assert_eq!(server.get(&path).await.json(), wanted);

    // Its resource may be said again, and what is left out is the default again.
    replacement["resource"] = json!(at.resource());
    replacement["document"]["delete"] = json!("document.op == 'd'");
    replacement["onReject"] = json!(null);
    let again = server.put(&path, &replacement.to_string()).await.is(200).json();
    assert_eq!(
        (&again["onReject"], &again["document"]["delete"]),
        (&json!("keep"), &json!("document.op == 'd'"))
    );
    let orders = server.resource("orders").await;
    for another in [last(&orders), UNKNOWN, "x"] {
        replacement["resource"] = json!(another);
        server.put(&path, &replacement.to_string()).await.refuses(400, "resource");
    }

    server.delete(&path).await.is(204);
    server.get(&path).await.is(404);
    server.delete(&path).await.is(404);
    assert_eq!(server.get("/consumers").await.json()["pagination"]["total"], 1);
}

#[tokio::test]
async fn if_match_protects_from_lost_changes() {
    let at = Pulling::start().await;
    let path = at.create(&at.asked()).await;
    let body = at.asked().to_string();
    let json = ("content-type", "application/json");
    let put = async |tag: &str| {
        at.server.send("PUT", &path, &[json, ("if-match", tag)], body.as_bytes()).await
    };
    put("\"0\"").await.refuses(412, "If-Match");
    put("7").await.refuses(400, "If-Match");
    assert_eq!(put("\"1\"").await.is(200).header("etag"), Some("\"2\""));
    put("\"1\"").await.is(412);
    put("*").await.is(200);
    let delete = async |tag: &str| at.server.send("DELETE", &path, &[("if-match", tag)], b"").await;
    delete("\"2\"").await.refuses(412, "If-Match");
    delete("\"3\"").await.is(204);
    delete("\"3\"").await.is(404);
}

#[tokio::test]
async fn messages_become_documents_and_are_counted() {
    let at = Pulling::start().await;
    let path = at.create(&at.asked()).await;
    let status = format!("{path}/status");
    let fresh = at.server.get(&status).await.is(200).json();
    assert_eq!((&fresh["received"], &fresh["reasons"]), (&json!(0), &json!({})));
    assert!(fresh.get("lastMessageAt").is_none(), "{fresh}");
    for rev in [1, 1, 2] {
        at.publish("users", &json!({"id": "a/b", "rev": rev}));
    }
    at.publish("users", &json!({"id": {}, "rev": 1}));
    at.publish("users", &json!([]));
    let done = |it: &Value| it["rejected"] == 2 && it["accepted"] == 2;
    let told = at.until(status.clone(), done).await;
    assert_eq!((&told["received"], &told["unchanged"]), (&json!(5), &json!(1)));
    assert_eq!(told["reasons"], json!({"no-scalar": 1, "not-json": 1}));
    assert_eq!(told["status"], "active");
    assert!(told["lastMessageAt"].is_string() && told.get("lastError").is_none(), "{told}");
    let document = at.server.get(&format!("/documents/{USERS}/a%2Fb")).await.is(200).json();
    assert_eq!(document["content"], json!({"id": "a/b", "rev": 2}));

    let node = at.server.get("/status").await.is(200).json();
    assert_eq!((&node["consumers"], &node["node"]), (&json!(1), &told["node"]));
    let rated = |it: &Value| it["rates"]["received"]["minute"].as_f64() > Some(0.0);
    let rates = &at.until(status.clone(), rated).await["rates"];
    assert!(rates["rejected"]["fiveMinutes"].as_f64() > Some(0.0), "{rates}");
    let lag = at.until(status, |it| it.get("lag").is_some()).await;
    assert!(lag["lag"]["messages"].is_u64(), "{lag}");
}

#[tokio::test]
async fn a_stream_shows_its_place_and_a_broker_that_is_away() {
    let at = Pulling::start().await;
    let mut asked = at.asked();
    asked["memory"] = json!({"stream": "events", "from": "oldest"});
    let status = format!("{}/status", at.create(&asked).await);
    at.publish("events", &json!({"id": 1, "rev": 1}));
    let places = |it: &Value| -> u64 {
        let all = it["checkpoints"].as_array().into_iter().flatten();
        all.map(|it| it["position"].as_str().unwrap().parse::<u64>().unwrap()).sum()
    };
    let told = at.until(status.clone(), |it| places(it) == 1).await;
    assert_eq!(told["checkpoints"].as_array().unwrap().len(), 4);
    at.broker.set_away(true);
    let told = at.until(status.clone(), |it| it.get("lastError").is_some()).await;
    assert!(told["lastError"].as_str().unwrap().contains("away"), "{told}");
    assert!(told["lastErrorAt"].is_string(), "{told}");
    at.broker.set_away(false);
    at.publish("events", &json!({"id": 2, "rev": 1}));
    at.until(status, |it| it.get("lastError").is_none() && it["accepted"] == 2).await;
}

#[tokio::test]
async fn pause_and_resume_may_be_repeated() {
    let at = Pulling::start().await;
    let path = at.create(&at.asked()).await;
    let worked = |number: u64| move |it: &Value| it["consumers"] == number;
    at.until("/status".to_owned(), worked(1)).await;
    for _ in 0..2 {
        let paused = at.server.call("POST", &format!("{path}/pause"), None).await.is(200);
        assert_eq!(
            (&paused.json()["status"], paused.header("etag")),
            (&"paused".into(), Some("\"2\""))
        );
    }
    assert_eq!(at.server.get(&format!("{path}/status")).await.json()["status"], "paused");
    at.until("/status".to_owned(), worked(0)).await;
    at.publish("users", &json!({"id": 1, "rev": 1}));
    let document = format!("/documents/{USERS}/1");
    at.server.get(&document).await.is(404);
    for body in [Some("{}"), Some(" {} "), None] {
        let resumed = at.server.call("POST", &format!("{path}/resume"), body).await.is(200);
        assert_eq!(
            (&resumed.json()["status"], &resumed.json()["generation"]),
            (&"active".into(), &3.into())
        );
    }
    at.until(format!("{path}/status"), |it| it["accepted"] == 1).await;
    at.server.get(&document).await.is(200);
    for operation in ["pause", "resume"] {
        let path = format!("{path}/{operation}");
        at.server.post(&path, r#"{"x":1}"#).await.refuses(400, "x");
        at.server.post(&path, "[]").await.is(400);
        at.server.send("POST", &path, &[], b"{}").await.is(415);
        at.server.post(&format!("{path}?x=1"), "{}").await.refuses(400, "x");
    }
}

/// Each row: what is put in place of a field of a good one, and the field that is refused.
#[tokio::test]
async fn refusals_name_the_field() {
    let at = Pulling::start().await;
    let path = at.create(&at.asked()).await;
    let absent = Value::Null;
    for (field, value, refused) in [
        ("memory", &absent, "memory"),
        ("memory", &json!("users"), "memory"),
        ("memory", &json!([]), "memory"),
        ("memory", &json!({}), "memory.queue"),
        ("memory", &json!({"queue": ""}), "memory.queue"),
        ("memory", &json!({"queue": "users", "x": 1}), "memory.x"),
        ("memory", &json!({"queue": "x".repeat(20_000)}), "memory"),
        ("document", &absent, "document"),
        ("document", &json!("x"), "document"),
        ("document", &json!({}), "document.url"),
        ("document", &json!({"url": "http://a/{id}"}), "document.url"),
        ("document", &json!({"url": "http://a/{/id}"}), "document.url"),
        ("document", &json!({"url": format!("{USERS}/{{/id}}"), "x": 1}), "document.x"),
        ("document", &json!({"url": format!("{USERS}/{{/id}}"), "preset": "x"}), "document.preset"),
        ("document", &json!({"url": format!("{USERS}/{{/id}}"), "delete": 7}), "document.delete"),
        (
            "document",
            &json!({"url": format!("{USERS}/{{/id}}"), "delete": "document.a >"}),
            "document.delete",
        ),
        ("onReject", &json!("drop"), "onReject"),
        ("onReject", &json!(1), "onReject"),
        ("resource", &json!(7), "resource"),
        ("id", &json!("x"), "id"),
        ("status", &json!("active"), "status"),
        ("status", &absent, "status"),
        ("generation", &json!(1), "generation"),
        ("createdAt", &json!("2024-05-01T10:00:00Z"), "createdAt"),
        ("updatedAt", &json!("2024-05-01T10:00:00Z"), "updatedAt"),
        // Beside `memory`, which comes first.
        ("x", &json!({}), "x"),
        ("sqs", &json!({"queue": "users"}), "sqs"),
    ] {
        let mut asked = at.asked();
        asked[field] = value.clone();
        let asked = asked.to_string();
        at.server.post("/consumers", &asked).await.refuses(400, refused);
        at.server.put(&path, &asked).await.refuses(400, refused);
    }
    assert_eq!(at.server.get(&path).await.json()["generation"], 1);
    assert_eq!(at.server.get("/consumers").await.json()["pagination"]["total"], 1);
}

#[tokio::test]
async fn a_consumer_has_one_source_of_a_known_kind() {
    let at = Pulling::start().await;
    let without = |name: &str| {
        let mut asked = at.asked();
        asked.as_object_mut().unwrap().remove(name);
        asked
    };
    let path = at.create(&at.asked()).await;
    for (method, path) in [("POST", "/consumers"), ("PUT", path.as_str())] {
        let asked = without("memory").to_string();
        let none = at.server.call(method, path, Some(&asked)).await.refuses(400, "source");
        assert!(
            none.body.contains("names no source: give one of sqs, rabbitmq, kinesis"),
            "{none:?}"
        );
        let mut other = without("memory");
        other["pigeon"] = json!({"queue": "users"});
        let other = other.to_string();
        let other = at.server.call(method, path, Some(&other)).await.refuses(400, "pigeon");
        assert!(other.body.contains("known are memory"), "{other:?}");
        let asked = without("document").to_string();
        at.server.call(method, path, Some(&asked)).await.refuses(400, "document");
        for body in ["", "[]", "null", "7", "{", r#"{"memory":{"queue":"users","queue":"x"}}"#] {
            at.server.call(method, path, Some(body)).await.is(400);
        }
    }
    let twice = at.asked().to_string().replace(r#""queue""#, r#""queue":"x","queue""#);
    at.server.post("/consumers", &twice).await.refuses(400, "memory.queue");
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let deep = at.asked().to_string().replace(r#""queue":"users""#, &format!(r#""queue":{deep}"#));
    at.server.post("/consumers", &deep).await.refuses(400, "memory.queue");
    let long = format!(r#"{{"{}":{{}},"b":1}}"#, "a".repeat(100_000));
    let long = at.server.post("/consumers", &long).await.refuses(400, "b");
    assert!(long.body.len() < 4_096, "{}", long.body.len());

    at.server.post("/consumers", &without("resource").to_string()).await.refuses(400, "resource");
    for unknown in [UNKNOWN, "x"] {
        let mut asked = at.asked();
        asked["resource"] = json!(unknown);
        at.server.post("/consumers", &asked.to_string()).await.refuses(404, "resource");
    }
    let plain = Server::start().await;
    let users = plain.resource("users").await;
    let mut asked = at.asked();
    asked["resource"] = json!(last(&users));
    let refused = plain.post("/consumers", &asked.to_string()).await.refuses(400, "memory");
    assert!(refused.body.contains("no sources here"), "{refused:?}");
}

#[tokio::test]
async fn what_is_not_there_is_404_and_what_cannot_be_done_405() {
    let at = Pulling::start().await;
    let server = &at.server;
    for id in [UNKNOWN, "x", "%ff"] {
        let path = format!("/consumers/{id}");
        server.get(&path).await.is(404);
        server.put(&path, &at.asked().to_string()).await.is(404);
        server.put(&path, "{}").await.is(404);
        server.delete(&path).await.is(404);
        server.get(&format!("{path}/status")).await.is(404);
        server.get(&format!("{path}/rejects")).await.is(404);
        for operation in ["pause", "resume", "rejects/retry"] {
            server.call("POST", &format!("{path}/{operation}"), None).await.is(404);
        }
        server.get(&format!("{path}/producers")).await.is(404);
        server.post(&format!("{path}/producers"), "{}").await.is(404);
        for producer in [UNKNOWN, "x"] {
            let path = format!("{path}/producers/{producer}");
            server.get(&path).await.is(404);
            server.put(&path, "{}").await.is(404);
            server.delete(&path).await.is(404);
        }
    }
    let path = at.create(&at.asked()).await;
    for (path, allowed) in [
        ("/consumers".to_owned(), "GET,HEAD,POST"),
        ("/consumers/test".to_owned(), "POST"),
        (path.clone(), "GET,HEAD,PUT,DELETE"),
        (format!("{path}/status"), "GET,HEAD"),
        (format!("{path}/pause"), "POST"),
        (format!("{path}/resume"), "POST"),
        (format!("{path}/rejects"), "GET,HEAD"),
        (format!("{path}/rejects/retry"), "POST"),
        (format!("{path}/producers"), "GET,HEAD,POST"),
        (format!("{path}/producers/{UNKNOWN}"), "GET,HEAD,PUT,DELETE"),
    ] {
        let refused = server.call("PATCH", &path, None).await.is(405);
        assert_eq!(refused.header("allow"), Some(allowed), "{path}");
    }
    server.get(&format!("{path}/x")).await.is(404);
}
