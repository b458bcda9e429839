//! Without the feature a subscription that asks for signatures is refused, never told unsigned.

use std::sync::Arc;

use flare_backend_memory::MemoryBackend;
use flare_core::ErrorKind;
use flare_core::port::SystemClock;
use flare_testkit::RecordingDelivery;

use crate::world::{OTHER_SECRET, SECRET, builder, hook, start, subscribe};

#[tokio::test]
async fn signing_is_refused_by_name() {
    let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()));
    let flare = start(builder(MemoryBackend::new()).delivery(Arc::new(delivery)));
    let refused = subscribe(&flare, hook().signing([SECRET, OTHER_SECRET])).await.unwrap_err();
    assert_eq!((refused.kind(), refused.field()), (ErrorKind::Invalid, Some("signing")));
    assert!(refused.to_string().contains("feature `signing`"), "{refused}");
}
