//! How a host tests its own code: Flare in memory, a transport that records instead of sending,
//! and `settled` in place of waiting.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::model::Action;
use flare_core::port::SystemClock;
use flare_examples::accounts::{Accounts, NewListener, NewUser};
use flare_testkit::RecordingDelivery;

#[tokio::test]
async fn a_client_is_told_of_a_user_and_of_its_end() -> Result<(), Box<dyn Error>> {
    let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()));
    let flare = Flare::builder(MemoryBackend::new()).delivery(Arc::new(delivery.clone()));
    let (flare, runtime) = flare.build()?;
    tokio::spawn(runtime.run(std::future::pending::<()>()));
    let accounts = Accounts::start(flare.clone()).await?; // the code under test
    accounts.listen(NewListener { url: "https://client.example.com/{id}".into() }).await?;

    accounts.put_user("ada", NewUser { name: "Ada".into() }).await?;
    flare.settled(Duration::from_secs(5)).await?; // every client has everything
    accounts.delete_user("ada").await?;
    flare.settled(Duration::from_secs(5)).await?;

    let told = delivery.requests().into_iter().map(|it| (it.request.action, it.request.url));
    let url = || "https://client.example.com/ada".to_owned();
    assert_eq!(told.collect::<Vec<_>>(), [(Action::Create, url()), (Action::Delete, url())]);
    Ok(())
}

#[tokio::test]
async fn a_listener_that_cannot_work_is_refused_with_its_field() -> Result<(), Box<dyn Error>> {
    let (flare, _runtime) = Flare::builder(MemoryBackend::new()).build()?;
    let accounts = Accounts::start(flare).await?;
    let url = "https://client.example.com/{name}".into();
    let refused = accounts.listen(NewListener { url }).await.unwrap_err();
    assert_eq!(refused.field(), Some("endpoint.url"), "{refused}");
    Ok(())
}
