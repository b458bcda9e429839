//! What Flare hands to a transport verifies with each of the secrets, and with nothing else.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::model::subscription::{RetryPolicy, SubscriptionBuilder};
use flare_core::port::{Clock, DeliveryOutcome, DeliveryRequest, SystemClock};
use flare_testkit::{ManualClock, RecordingDelivery};
use http::HeaderMap;

use crate::verify::{assert_refused, header_map, verify};
use crate::world::{OTHER_SECRET, SECRET, SOON, builder, hook, put, start, subscribe};

/// The one request that tells a subscription of a document.
async fn told(spec: SubscriptionBuilder) -> DeliveryRequest {
    let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()));
    let flare = start(builder(MemoryBackend::new()).delivery(Arc::new(delivery.clone())));
    subscribe(&flare, spec).await.unwrap();
    put(&flare, 1).await;
    flare.settled(SOON).await.unwrap();
    let mut requests = delivery.requests();
    assert_eq!(requests.len(), 1);
    requests.remove(0).request
}

fn one<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let mut values = headers.get_all(name).iter();
    let value = values.next().unwrap().to_str().unwrap();
    assert!(values.next().is_none(), "{name} is sent once");
    value
}

#[tokio::test]
async fn a_receiver_that_knows_the_secret_is_satisfied_and_others_are_not() {
    let request = told(hook().signing([SECRET])).await;
    let headers = header_map(&request.headers);
    assert_eq!(one(&headers, "webhook-signature").matches("v1,").count(), 1);
    verify(SECRET, &headers, &request.body).unwrap();
    assert_refused(OTHER_SECRET, &headers, &request.body);
}

#[tokio::test]
async fn body_id_and_timestamp_are_all_signed() {
    let request = told(hook().signing([SECRET])).await;
    let headers = header_map(&request.headers);
    let mut body = request.body.to_vec();
    let name = body.windows(3).position(|three| three == b"Ada").unwrap();
    body[name..name + 3].copy_from_slice(b"Eve");
    assert_refused(SECRET, &headers, &body);

    let later = one(&headers, "webhook-timestamp").parse::<i64>().unwrap() + 1;
    for (name, value) in [("webhook-id", "msg_other"), ("webhook-timestamp", &later.to_string())] {
        let mut forged = headers.clone();
        forged.insert(name, value.parse().unwrap()).unwrap();
        assert_refused(SECRET, &forged, &request.body);
    }
}

#[tokio::test]
async fn while_rotating_either_secret_verifies() {
    let request = told(hook().signing([SECRET, OTHER_SECRET])).await;
    let headers = header_map(&request.headers);
    verify(SECRET, &headers, &request.body).unwrap();
    verify(OTHER_SECRET, &headers, &request.body).unwrap();

    let signatures: Vec<_> = one(&headers, "webhook-signature").split(' ').collect();
    for (signature, [own, other]) in
        signatures.into_iter().zip([[SECRET, OTHER_SECRET], [OTHER_SECRET, SECRET]])
    {
        let mut alone = headers.clone();
        alone.insert("webhook-signature", signature.parse().unwrap());
        verify(own, &alone, &request.body).unwrap();
        assert_refused(other, &alone, &request.body);
    }
}

#[tokio::test]
async fn a_body_without_envelope_is_signed_too() {
    let request = told(hook().signing([SECRET]).envelope(false)).await;
    assert_eq!(request.body, r#"{"rev":1,"name":"Ada"}"#);
    verify(SECRET, &header_map(&request.headers), &request.body).unwrap();
}

#[tokio::test]
async fn nothing_is_signed_without_secrets() {
    let request = told(hook()).await;
    assert!(!header_map(&request.headers).contains_key("webhook-signature"));
}

#[tokio::test]
async fn a_retry_is_signed_anew_under_the_same_id() {
    // Receivers compare the timestamp with their own clock.
    let clock = ManualClock::new(SystemClock::new().now());
    let delivery = RecordingDelivery::new(Arc::new(clock.clone()));
    let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
    let flare = builder(memory).delivery(Arc::new(delivery.clone()));
    let flare = start(flare.clock(Arc::new(clock.clone())));
    let retry = RetryPolicy::builder()
        .num_retries(3)
        .min_delay_target(Duration::from_secs(7))
        .max_delay_target(Duration::from_secs(7));
    let spec = hook().signing([SECRET]).retry(retry.build().unwrap());
    subscribe(&flare, spec).await.unwrap();
    delivery.answer_next("http://client.example/ada", DeliveryOutcome::answered(500));
    put(&flare, 1).await;

    let time_passes = async {
        loop {
            clock.advance(Duration::from_secs(1)).await;
        }
    };
    let requests = tokio::select! {
        requests = delivery.wait_for(2) => requests,
        () = time_passes => unreachable!(),
    };
    let [first, second] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(first.request.body, second.request.body);
    let headers = [first, second].map(|it| header_map(&it.request.headers));
    let [first_at, second_at] =
        headers.each_ref().map(|it| one(it, "webhook-timestamp").parse::<i64>().unwrap());
    assert!(second_at >= first_at + 7, "{first_at} {second_at}");
    let ids = headers.each_ref().map(|it| one(it, "webhook-id"));
    assert_eq!(ids[0], ids[1]);
    let signatures = headers.each_ref().map(|it| one(it, "webhook-signature"));
    assert_ne!(signatures[0], signatures[1]);
    for headers in &headers {
        verify(SECRET, headers, &first.request.body).unwrap();
    }
}
