//! A change that needs no telling is settled at once, and nobody is told.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::SystemClock;
use flare_testkit::RecordingDelivery;

// One thread: nothing of the runtime runs between the put and the delete.
#[tokio::test]
async fn a_document_deleted_before_anybody_heard_of_it_is_settled_in_silence()
-> Result<(), Box<dyn Error>> {
    let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()));
    let flare = Flare::builder(MemoryBackend::new()).delivery(Arc::new(delivery.clone()));
    let (flare, runtime) = flare.build()?;
    tokio::spawn(runtime.run(std::future::pending::<()>()));
    let notes = NewResource::new("http://a.example/notes/{id}").change_field("rev");
    let notes = flare.create_resource(notes).await?;
    flare.create_subscription(notes.id, SubscriptionSpec::post("http://c.example/")).await?;

    // The lane is at work before, so that it cannot be in doubt.
    flare.put_json("http://a.example/notes/1", r#"{"rev":1}"#).await?;
    flare.settled(Duration::from_secs(5)).await?;
    flare.put_json("http://a.example/notes/2", r#"{"rev":1}"#).await?;
    flare.delete_document("http://a.example/notes/2").await?;
    flare.settled(Duration::from_secs(5)).await?;
    assert_eq!(delivery.total(), 1);
    Ok(())
}
