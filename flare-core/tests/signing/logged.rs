//! No log shows a secret, at whatever level.

use std::io;
use std::sync::{Arc, Mutex};

use flare_backend_memory::MemoryBackend;
use flare_core::EventKind;
use flare_core::model::subscription::RetryPolicy;
use flare_core::port::{DeliveryOutcome, SystemClock};
use flare_testkit::RecordingDelivery;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::leak::{assert_debug_safe, assert_no_secret};
use crate::world::{OTHER_SECRET, SECRET, SOON, builder, hook, put, start, subscribe};

/// What is logged, all of it.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_at_its_finest_shows_no_secret() {
    let log = Log::default();
    // For the whole process, so that no thread and no record of the `log` crate escapes.
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::FULL)
        .with_writer(move || writer.clone())
        .init();

    #[cfg(feature = "http")]
    deliver_over_http().await;

    // And one that is given up: what fails is logged most.
    let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()))
        .answering(|_| DeliveryOutcome::answered(500));
    let flare = start(builder(MemoryBackend::new()).delivery(Arc::new(delivery)));
    let never = RetryPolicy::builder().num_retries(0).build().unwrap();
    let spec = hook().signing([SECRET, OTHER_SECRET]).retry(never);
    subscribe(&flare, spec).await.unwrap();
    let mut events = flare.events();
    put(&flare, 1).await;
    flare.settled(SOON).await.unwrap();
    let dead = events.next().await.unwrap();
    assert!(matches!(dead.kind, EventKind::DeadLettered { .. }), "{dead:?}");
    assert_debug_safe("an event", &dead);

    let logged = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(logged.contains("flare.attempt") && logged.contains("flare.put"), "{logged}");
    assert_no_secret("the log", &logged);
}

/// A whole delivery by the real transport, so that what it logs is seen too.
#[cfg(feature = "http")]
async fn deliver_over_http() {
    use flare_core::http::Guard;
    use flare_core::model::SubscriptionSpec;
    use flare_testkit::{Answer, HttpTarget};

    let target = HttpTarget::start(Answer::status(204)).await;
    let guard = Guard::default().allow("127.0.0.1").unwrap();
    let flare = start(builder(MemoryBackend::new()).guard(guard));
    let spec = SubscriptionSpec::post(target.url("/{id}")).signing([SECRET, OTHER_SECRET]);
    subscribe(&flare, spec).await.unwrap();
    put(&flare, 1).await;
    flare.settled(SOON).await.unwrap();
    assert_eq!(target.requests().len(), 1);
}
