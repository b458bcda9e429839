//! What arrives over a socket verifies: nothing on the way touches id, timestamp or body.

use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::http::Guard;
use flare_core::model::SubscriptionSpec;
use flare_core::model::subscription::BatchOptions;
use flare_testkit::{Answer, HttpTarget};

use crate::verify::{assert_refused, header_map, verify};
use crate::world::{OTHER_SECRET, SECRET, SOON, builder, put, start, subscribe};

#[tokio::test]
async fn what_arrives_verifies_with_either_secret() {
    let target = HttpTarget::start(Answer::status(204)).await;
    let guard = Guard::default().allow("127.0.0.1").unwrap();
    let flare = start(builder(MemoryBackend::new()).guard(guard));
    let spec = SubscriptionSpec::post(target.url("/users/{id}")).signing([SECRET, OTHER_SECRET]);
    subscribe(&flare, spec.timeout(Duration::from_secs(10))).await.unwrap();
    put(&flare, 1).await;
    flare.settled(SOON).await.unwrap();

    let requests = target.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    let headers = header_map(&request.headers);
    for secret in [SECRET, OTHER_SECRET] {
        verify(secret, &headers, &request.body).unwrap();
        assert_refused(secret, &headers, &request.body[1..]);
    }
}

#[tokio::test]
async fn a_request_of_many_is_signed_as_one() {
    let target = HttpTarget::start(Answer::status(200).body("{\"failed\":[]}")).await;
    let guard = Guard::default().allow("127.0.0.1").unwrap();
    let flare = start(builder(MemoryBackend::new()).guard(guard));
    let batch = BatchOptions::of(3).wait(Duration::from_secs(5));
    let spec = SubscriptionSpec::post(target.url("/hook")).signing([SECRET]).batch(batch);
    subscribe(&flare, spec.timeout(Duration::from_secs(10))).await.unwrap();
    let users = ["ada", "grace", "mary"].map(|name| {
        (format!("http://api.example/users/{name}"), format!(r#"{{"rev":1,"name":"{name}"}}"#))
    });
    for answer in flare.put_documents(users).await {
        answer.unwrap();
    }
    flare.settled(SOON).await.unwrap();

    let requests = target.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    let headers = header_map(&request.headers);
    verify(SECRET, &headers, &request.body).unwrap();
    assert_refused(OTHER_SECRET, &headers, &request.body);
    assert_refused(SECRET, &headers, &request.body[1..]);
    assert!(headers["webhook-id"].to_str().unwrap().starts_with("batch_"));
    assert_eq!(headers["flare-action"], "batch");
    assert!(!headers.contains_key("flare-revision"));
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["notifications"].as_array().unwrap().len(), 3, "{body}");
}

#[tokio::test]
async fn a_body_that_is_cut_leaves_everything_open() {
    let target = HttpTarget::start(Answer::status(200)).await;
    target.on_next("/hook", Answer::cut().body("{\"failed\":[\"msg_1\"]}"));
    let guard = Guard::default().allow("127.0.0.1").unwrap();
    let flare = start(builder(MemoryBackend::new()).guard(guard));
    let batch = BatchOptions::of(2).wait(Duration::from_secs(5));
    let spec = SubscriptionSpec::post(target.url("/hook")).batch(batch);
    let subscription = subscribe(&flare, spec.timeout(Duration::from_secs(10))).await.unwrap();
    let users =
        ["ada", "mary"].map(|name| (format!("http://api.example/users/{name}"), r#"{"rev":1}"#));
    for answer in flare.put_documents(users).await {
        answer.unwrap();
    }
    flare.settled(SOON).await.unwrap();
    assert_eq!(target.requests().len(), 3, "both at once, and then each alone");
    let status = flare.subscription_status(subscription.id).await.unwrap();
    assert_eq!((status.delivered, status.failed), (2, 1));
    let error = status.last_error.unwrap();
    assert_eq!(error, "answered 200 with a body that could not be read whole");
}
