//! Takes a handle; owns documents, and puts new versions of them all the time.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flare_core::Flare;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::{Clock, Page, SystemClock};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::audience::{Audience, CLIENTS};

const USERS: &str = "http://api.example.com/users/{id}";
const DOCUMENTS: u64 = 20;
/// A put every so often.
const EVERY: Duration = Duration::from_millis(200);

type Newest = Arc<Mutex<HashMap<String, u64>>>;

/// The service that owns the documents.
pub(crate) struct Origin {
    flare: Flare,
    puts: Arc<AtomicU64>,
    newest: Newest,
    stop: watch::Sender<bool>,
    putting: Option<JoinHandle<Result<(), flare_core::Error>>>,
}

impl Origin {
    /// Lets all clients subscribe, and begins to put.
    pub(crate) async fn start(
        flare: Flare,
        audience: &Audience,
    ) -> Result<Self, flare_core::Error> {
        remove(&flare).await?;
        let users = flare.create_resource(NewResource::new(USERS).change_field("revision")).await?;
        for client in 0..CLIENTS {
            let hook = SubscriptionSpec::post(audience.url(client));
            flare.create_subscription(users.id, hook).await?;
        }
        let (stop, stopped) = watch::channel(false);
        let (puts, newest) = (Arc::default(), Newest::default());
        let putting = put(flare.clone(), Arc::clone(&puts), Arc::clone(&newest), stopped);
        let putting = Some(tokio::spawn(putting));
        Ok(Self { flare, puts, newest, stop, putting })
    }

    pub(crate) fn puts(&self) -> u64 {
        self.puts.load(Ordering::Relaxed)
    }

    /// The newest revision of every document that was put.
    pub(crate) fn newest(&self) -> HashMap<String, u64> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts no more; gives the newest revision of every document.
    pub(crate) async fn stop(&mut self) -> Result<HashMap<String, u64>, Box<dyn Error>> {
        self.stop.send_replace(true);
        if let Some(putting) = self.putting.take() {
            putting.await??;
        }
        Ok(self.newest())
    }

    /// Removes everything, so that the next run begins afresh.
    pub(crate) async fn remove(&self) -> Result<(), flare_core::Error> {
        remove(&self.flare).await
    }
}

async fn put(
    flare: Flare,
    puts: Arc<AtomicU64>,
    newest: Newest,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), flare_core::Error> {
    let clock = SystemClock::new();
    for revision in 1.. {
        let url = format!("http://api.example.com/users/{}", revision % DOCUMENTS);
        flare.put_document(&url, &json!({ "revision": revision })).await?;
        puts.fetch_add(1, Ordering::Relaxed);
        newest.lock().unwrap_or_else(PoisonError::into_inner).insert(url, revision);
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => break,
            () = clock.sleep(EVERY) => {}
        }
    }
    Ok(())
}

/// Also what an earlier run left behind that was interrupted: its clients are gone.
async fn remove(flare: &Flare) -> Result<(), flare_core::Error> {
    let resources = flare.resources(Page::new(1_000, 0)).await?.items;
    for resource in resources.iter().filter(|resource| resource.endpoint.to_string() == USERS) {
        for subscription in flare.subscriptions(resource.id, Page::new(1_000, 0)).await?.items {
            flare.delete_subscription(subscription.id).await?;
        }
        flare.delete_resource(resource.id).await?;
    }
    Ok(())
}
