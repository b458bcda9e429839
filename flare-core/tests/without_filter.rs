//! Without the feature a subscription with a filter is refused, never told of everything.
//!
//! `cargo test -p flare-core --no-default-features --test without_filter`

#![cfg(not(feature = "filter"))]
#![allow(clippy::unwrap_used, reason = "it is a test")]

use std::sync::Arc;

use flare_backend_memory::MemoryBackend;
use flare_core::filter::try_filter;
use flare_core::model::{Filter, NewResource, SubscriptionSpec};
use flare_core::{ErrorKind, Flare};
use flare_testkit::RecordingDelivery;

const WANTS: &str = "document.public";

#[tokio::test]
async fn a_filter_is_refused_by_name() {
    let builder = Flare::builder(MemoryBackend::new());
    let (flare, runtime) =
        builder.delivery(Arc::new(RecordingDelivery::default())).build().unwrap();
    runtime.unused();
    let users = NewResource::new("http://api.example/users/{id}").change_field("rev");
    let users = flare.create_resource(users).await.unwrap();
    let plain = || SubscriptionSpec::post("http://client.example/{id}");
    let refused = flare.create_subscription(users.id, plain().filter(WANTS)).await.unwrap_err();
    assert_eq!((refused.kind(), refused.field()), (ErrorKind::Invalid, Some("filter")));
    assert!(refused.to_string().contains("feature `filter`"), "{refused}");

    let without = flare.create_subscription(users.id, plain()).await.unwrap();
    let replaced = flare.replace_subscription(without.id, plain().filter(WANTS)).await.unwrap_err();
    assert_eq!((replaced.kind(), replaced.field()), (ErrorKind::Invalid, Some("filter")));
}

#[test]
fn and_cannot_be_tried() {
    let filter = Filter::new(WANTS).unwrap();
    let refused = try_filter(&filter, br#"{"public":true}"#, []).unwrap_err();
    assert!(refused.to_string().contains("feature `filter`"), "{refused}");
}
