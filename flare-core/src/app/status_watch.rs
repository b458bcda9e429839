//! Takes a subscription; gives its status whenever that is another one, until it is deleted. Nothing piles up: a
//! caller that is slow to ask is told the newest.

use std::time::Duration;

use futures::{Stream, stream};

use super::flare::Flare;
use crate::error::{ErrorKind, Result};
use crate::model::{SubscriptionId, SubscriptionReport};
use crate::pipeline::EventListener;

/// How often it is looked, whatever is heard: what other nodes do is only seen in the stores.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How far apart two looks are, however much happens.
const GAP: Duration = Duration::from_millis(100);

/// The status of one subscription, as it changes.
#[derive(Debug)]
pub struct StatusWatch {
    flare: Flare,
    id: SubscriptionId,
    last: Option<SubscriptionReport>,
    /// Whether it was looked before.
    looked: bool,
    ended: bool,
}

impl Flare {
    /// Watches the status of a subscription: first as it is, then whenever it is another one, until the subscription is
    /// deleted. What happens between two looks is one change; while something is pending its age is one every second.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use flare_core::prelude::*;
    /// # use flare_backend_memory::MemoryBackend;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let (flare, runtime) = Flare::builder(MemoryBackend::new()).build()?;
    /// let users = NewResource::new("http://api.example.com/users/{id}").change_field("version");
    /// let users = flare.create_resource(users).await?;
    /// let hook = SubscriptionSpec::post("http://client.example.com/{id}");
    /// let hook = flare.create_subscription(users.id, hook).await?;
    ///
    /// let mut watch = flare.watch_status(hook.id).await?;
    /// let status = watch.next().await.unwrap()?;
    /// assert_eq!(status.status, SubscriptionStatus::Active);
    /// flare.pause(hook.id).await?;
    /// let status = watch.next().await.unwrap()?;
    /// assert_eq!(status.status, SubscriptionStatus::Paused);
    /// flare.delete_subscription(hook.id).await?;
    /// assert!(watch.next().await.is_none());
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A subscription that is not there is an error at once.
    pub async fn watch_status(&self, id: SubscriptionId) -> Result<StatusWatch> {
        // One that cannot be read has a status all the same.
        _ = self.look_up("watch_status", id).await?;
        let flare = self.clone();
        Ok(StatusWatch { flare, id, last: None, looked: false, ended: false })
    }
}

impl StatusWatch {
    /// The status, as soon as it is another one than the last; `None` once the subscription is deleted. After an error,
    /// such as of a store that is away, it may be asked again.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<SubscriptionReport>> {
        while !self.ended {
            // Before it is looked: what happens meanwhile is heard.
            let listener = self.flare.events();
            if self.looked {
                self.flare.context().sleep(GAP).await;
            }
            let read = self.flare.subscription_status(self.id).await;
            self.looked = true;
            match read {
                Ok(report) if self.last.as_ref() == Some(&report) => self.wait(listener).await,
                Ok(report) => {
                    self.last = Some(report.clone());
                    return Some(Ok(report));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => self.ended = true,
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// The same as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<SubscriptionReport>> + Send {
        stream::unfold(self, |mut watch| async move {
            let next = watch.next().await?;
            Some((next, watch))
        })
    }

    /// Waits until something happened to the subscription, or it is time to look.
    async fn wait(&self, mut events: EventListener) {
        let heard = async {
            while let Some(event) = events.next().await {
                if event.subscription == self.id {
                    return;
                }
            }
        };
        tokio::select! {
            () = heard => {}
            () = self.flare.context().sleep(LOOK_EVERY) => {}
        }
    }
}
