//! Messages that became no document: listed, and tried again.

use serde_json::{Value, json};

use crate::pulling::{Pulling, USERS};

const UNKNOWN: &str = "0192f0e0-0000-7000-8000-000000000000";

#[tokio::test]
async fn rejects_are_listed_and_retried_by_a_right_mapping() {
    let at = Pulling::start().await;
    let mut asked = at.asked();
    asked["document"] = json!({"url": format!("{USERS}/{{/number}}")});
    let path = at.create(&asked).await;
    let (rejects, retry) = (format!("{path}/rejects"), format!("{path}/rejects/retry"));
    assert_eq!(at.server.post(&retry, "{}").await.is(200).body, r#"{"stored":0,"rejected":0}"#);
    for id in 1..=3 {
        at.publish("users", &json!({"id": id, "rev": 1}));
    }
    let list = at.until(rejects.clone(), |it| it["pagination"]["total"] == 3).await;
    let first = &list["rejects"][0];
    let mut names: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["detail", "excerpt", "id", "kept", "message", "pointer", "reason", "rejectedAt", "sentAt"]
    );
    assert_eq!((&first["reason"], &first["pointer"]), (&"missing".into(), &"/number".into()));
    assert_eq!((&first["detail"], &first["kept"]), (&"is missing".into(), &true.into()));
    let known = |number: usize| list["rejects"][number]["id"].as_str().unwrap();
    let excerpts: Vec<_> =
        list["rejects"].as_array().unwrap().iter().map(|it| it["excerpt"].clone()).collect();
    assert!(excerpts.contains(&json!(r#"{"id":1,"rev":1}"#)), "{list}");
    let page = at.server.get(&format!("{rejects}?limit=1&offset=2")).await.is(200).json();
    assert_eq!(page["rejects"], json!([list["rejects"][2]]));
    assert_eq!(at.server.get(&format!("{rejects}?offset=3")).await.json()["rejects"], json!([]));
    at.server.get(&format!("{rejects}?limit=0")).await.refuses(400, "limit");

    let again = at.server.call("POST", &retry, None).await.is(200);
    assert_eq!(again.body, r#"{"stored":0,"rejected":3}"#, "the mapping is still wrong");
    let right = at.asked().to_string();
    at.server.put(&path, &right).await.is(200);
    for ids in [json!([known(0), UNKNOWN]), json!([known(0), "x"])] {
        at.server.post(&retry, &json!({"rejects": ids}).to_string()).await.is(404);
    }
    assert_eq!(at.server.get(&rejects).await.json()["pagination"]["total"], 3, "none is tried");
    for (body, field) in [
        (r#"{"rejects":"x"}"#, "rejects"),
        (r#"{"rejects":[7]}"#, "rejects[0]"),
        (r#"{"ids":[]}"#, "ids"),
    ] {
        at.server.post(&retry, body).await.refuses(400, field);
    }
    at.server.post(&retry, "[]").await.is(400);
    at.server.send("POST", &retry, &[("content-type", "text/plain")], b"{}").await.is(415);
    at.server.post(&format!("{retry}?x=1"), "{}").await.refuses(400, "x");

    let none = at.server.post(&retry, r#"{"rejects":[]}"#).await.is(200);
    assert_eq!(none.body, r#"{"stored":0,"rejected":0}"#);
    let one = json!({"rejects": [known(0), known(0)]}).to_string();
    let one = at.server.post(&retry, &one).await.is(200);
    assert_eq!(one.body, r#"{"stored":1,"rejected":0}"#);
    let left = at.server.get(&rejects).await.json();
    assert!(left["rejects"].as_array().unwrap().iter().all(|it| it["id"] != known(0)), "{left}");
    let rest = at.server.call("POST", &retry, None).await.is(200);
    assert_eq!(rest.body, r#"{"stored":2,"rejected":0}"#);
    assert_eq!(at.server.get(&rejects).await.json()["pagination"]["total"], 0);
    for id in 1..=3 {
        let document = at.server.get(&format!("/documents/{USERS}/{id}")).await.is(200).json();
        assert_eq!(document["content"], json!({"id": id, "rev": 1}));
    }
}

#[tokio::test]
async fn one_that_is_too_large_is_shown_but_not_kept() {
    let at = Pulling::start().await;
    let path = at.create(&at.asked()).await;
    let rejects = format!("{path}/rejects");
    at.publish("users", &json!({"id": 1, "x": "x".repeat(70_000)}));
    let wanted = |it: &Value| it["pagination"]["total"] == 1;
    let shown = &at.until(rejects.clone(), wanted).await["rejects"][0];
    assert_eq!((&shown["kept"], &shown["reason"]), (&false.into(), &"no-revision".into()));
    assert_eq!(shown["excerpt"].as_str().unwrap().len(), 1_024);
    let retried = at.server.post(&format!("{rejects}/retry"), "{}").await.is(200);
    assert_eq!(retried.body, r#"{"stored":0,"rejected":1}"#);
    assert_eq!(at.server.get(&rejects).await.json()["pagination"]["total"], 1);
}

#[tokio::test]
async fn what_is_left_to_the_broker_is_counted_and_not_listed() {
    let at = Pulling::start().await;
    let mut asked = at.asked();
    asked["onReject"] = json!("leave");
    let path = at.create(&asked).await;
    at.publish("users", &json!({"rev": 1}));
    at.until(format!("{path}/status"), |it| it["rejected"] == 1).await;
    while at.broker.left("users").unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(at.broker.left("users").unwrap(), [r#"{"rev":1}"#.as_bytes()]);
    assert_eq!(at.server.get(&format!("{path}/rejects")).await.json()["rejects"], json!([]));
}
