//! Takes what a Flare is built of; gives it running on memory, and what the tests do with it.

#[cfg(feature = "signing")]
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Settings;
use flare_core::model::subscription::SubscriptionBuilder;
use flare_core::model::{NewResource, Subscription, SubscriptionSpec};
use flare_core::{Error, Flare, FlareBuilder};

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDw2hxhD0b";
#[cfg(feature = "signing")]
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) fn builder(memory: MemoryBackend) -> FlareBuilder {
    let mut settings = Settings::default();
    settings.slots = Some(4);
    Flare::builder(memory).settings(settings)
}

/// The Flare of a builder, which runs as long as the test does.
pub(crate) fn start(builder: FlareBuilder) -> Flare {
    let (flare, runtime) = builder.build().unwrap();
    tokio::spawn(runtime.run(std::future::pending::<()>()));
    flare
}

/// Has a client told of users, a resource made for it.
pub(crate) async fn subscribe(
    flare: &Flare,
    spec: SubscriptionBuilder,
) -> Result<Subscription, Error> {
    let users = NewResource::new("http://api.example/users/{id}").change_field("rev");
    let users = flare.create_resource(users).await.unwrap();
    flare.create_subscription(users.id, spec).await
}

pub(crate) fn hook() -> SubscriptionBuilder {
    SubscriptionSpec::post("http://client.example/{id}")
}

#[cfg(feature = "signing")]
pub(crate) async fn put(flare: &Flare, rev: i64) {
    let user = format!(r#"{{"rev":{rev},"name":"Ada"}}"#);
    flare.put_json("http://api.example/users/ada", user).await.unwrap();
}
