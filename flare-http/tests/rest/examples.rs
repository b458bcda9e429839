//! The examples of the description do what it says they do.

use std::sync::Arc;

use flare_backend_memory::{MemoryBackend, MemoryBroker};
use flare_core::cluster::ClusterSettings;
use flare_core::{Flare, Settings};
use serde_json::Value;

use crate::schema::Spec;
use crate::support::Server;

/// The example of an operation's body, its own or its schema's.
fn example(spec: &Spec, method: &str, path: &str) -> String {
    let operation = &spec.0["paths"][path][method];
    let content = &operation["requestBody"]["content"]["application/json"];
    if content["example"].is_object() {
        return content["example"].to_string();
    }
    let name = content["schema"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
    let schema = &spec.0["components"]["schemas"][name];
    let example = &schema["example"];
    assert!(example.is_object(), "{method} {path} has no example");
    spec.fits(schema, example).unwrap();
    example.to_string()
}

/// The status of success that is described.
fn success(spec: &Spec, method: &str, path: &str) -> u16 {
    let responses = spec.0["paths"][path][method]["responses"].as_object().unwrap();
    responses.keys().find(|status| status.starts_with('2')).unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_example_gives_the_documented_status() {
    let memory = MemoryBackend::new();
    let settings = Settings::default().pinned_slots(1);
    // The name that the example of a pin has.
    let mut cluster = ClusterSettings::default();
    cluster.name = "big-machine".to_owned();
    let builder = Flare::builder(memory.clone()).source(Arc::new(MemoryBroker::new()));
    let builder = builder.settings(settings.clone()).cluster(cluster);
    let (server, spec) = (Server::on(builder, true, |api| api).await, Spec::load());
    // Somebody has to be there who takes its slots over.
    let other = Server::on(Flare::builder(memory).settings(settings), true, |api| api).await;
    while other.flare.cluster().await.unwrap().nodes.len() < 2 {
        tokio::task::yield_now().await;
    }
    let node = loop {
        match server.flare.member().node() {
            Some(node) => break node.to_string(),
            None => tokio::task::yield_now().await,
        }
    };
    let mut made = (String::new(), String::new());
    let (mut consumer, mut producer) = (String::new(), String::new());
    let mut tried = 0;
    for (method, path) in [
        ("post", "/resources"),
        ("post", "/resources/{rid}/subscriptions"),
        ("put", "/documents/{url}"),
        ("put", "/resources/{rid}/subscriptions/{id}"),
        ("post", "/resources/{rid}/subscriptions/{id}/pause"),
        ("post", "/resources/{rid}/subscriptions/{id}/resume"),
        ("post", "/resources/{rid}/subscriptions/{id}/retry"),
        ("post", "/resources/{rid}/subscriptions/{id}/replay"),
        ("post", "/resources/{rid}/subscriptions/{id}/backfill"),
        ("post", "/resources/{rid}/subscriptions/{id}/resync"),
        ("post", "/resources/{rid}/subscriptions/{id}/settle"),
        ("post", "/resources/{rid}/subscriptions/{id}/demand"),
        ("post", "/resources/{rid}/subscriptions/{id}/pull"),
        ("post", "/filters/test"),
        ("post", "/consumers/test"),
        ("post", "/consumers"),
        ("put", "/consumers/{id}"),
        ("post", "/consumers/{id}/pause"),
        ("post", "/consumers/{id}/resume"),
        ("post", "/consumers/{id}/rejects/retry"),
        ("post", "/consumers/{cid}/producers"),
        ("put", "/consumers/{cid}/producers/{id}"),
        ("put", "/resources/{rid}/subscriptions/{id}/pin"),
        ("put", "/cluster/slots/{slot}/pin"),
        ("post", "/cluster/nodes/{id}/drain"),
    ] {
        let url = &spec.0["paths"]["/documents/{url}"]["put"]["parameters"][0]["example"];
        let id = match path {
            _ if path.starts_with("/cluster") => &node,
            _ if path.starts_with("/consumers/{id}") => &consumer,
            _ if path.starts_with("/consumers/{cid}") => &producer,
            _ => &made.1,
        };
        let real = path.replace("{rid}", &made.0).replace("{cid}", &consumer).replace("{id}", id);
        let real = real.replace("{url}", url.as_str().unwrap()).replace("{slot}", "7");
        let body = example(&spec, method, path);
        // Its resource is one of this server's, and its broker the one in memory.
        let body = body.replace("0192f0e0-0000-7000-8000-000000000000", &made.0);
        let body = body.replace(r#""sqs""#, r#""memory""#);
        if let Some(subscription) = real.strip_suffix("/demand") {
            let passive = r#"{"endpoint":{"url":"http://c.example/"},"mode":"passive"}"#;
            server.put(subscription, passive).await.is(200);
        }
        let answer = server.call(&method.to_uppercase(), &real, Some(&body)).await;
        let answer = answer.is(success(&spec, method, path));
        let id = answer.header("location").map(|it| it.rsplit('/').next().unwrap().to_owned());
        match path {
            "/resources" => made.0 = id.unwrap(),
            "/resources/{rid}/subscriptions" => made.1 = id.unwrap(),
            "/consumers" => consumer = id.unwrap(),
            "/consumers/{cid}/producers" => producer = id.unwrap(),
            _ => {}
        }
        tried += 1;
    }
    let items = spec.0["paths"].as_object().unwrap().values();
    let bodies = items.flat_map(|item| item.as_object().unwrap().values());
    let bodies = bodies.filter(|operation: &&Value| operation["requestBody"].is_object()).count();
    assert_eq!(tried, bodies, "an operation with a body is not tried");
}
