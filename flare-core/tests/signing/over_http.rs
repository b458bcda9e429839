//! What arrives over a socket verifies: nothing on the way touches id, timestamp or body.

use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::http::Guard;
use flare_core::model::SubscriptionSpec;
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
