//! Takes calls of the driver; gives their answers within the configured time, with Flare's errors.
//! The only place that knows how long a call may take.

use std::sync::Arc;
use std::time::Duration;

use flare_core::port::{Clock, SystemClock};
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::{Document, doc};
use mongodb::{Client, Collection, Database};

use crate::BACKEND;
use crate::config::MongoConfig;
use crate::error;

/// The wire version of MongoDB 8.0, the first with the `bulkWrite` command.
const WIRE_8_0: i32 = 25;
/// The wire version of MongoDB 6.0, the oldest that is supported.
const WIRE_6_0: i32 = 17;

/// One database, and how to call it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    client: Client,
    database: Database,
    pub(crate) clock: Arc<dyn Clock>,
    timeout: Duration,
    pub(crate) poll_every: Duration,
    /// Whether the server takes batches of different updates, with an answer for each.
    pub(crate) bulk: bool,
}

impl Connection {
    /// Connects, and makes sure that somebody is there who is new enough.
    pub(crate) async fn open(config: &MongoConfig) -> Result<Self> {
        let (options, database) = config.options().await?;
        let client =
            Client::with_options(options).map_err(|error| error::from_driver("connect", error))?;
        let mut connection = Self {
            database: client.database(&database),
            client,
            clock: Arc::new(SystemClock::new()),
            timeout: config.timeout,
            poll_every: config.poll_every,
            bulk: false,
        };
        let hello =
            connection.run("connect", connection.database.run_command(doc! { "hello": 1 })).await?;
        let wire = hello.get_i32("maxWireVersion").unwrap_or(0);
        if wire < WIRE_6_0 {
            let detail = format!("the server is older than MongoDB 6.0 (wire version {wire})");
            return Err(Error::new(ErrorKind::Unsupported, "connect")
                .backend(BACKEND)
                .detail(detail));
        }
        connection.bulk = wire >= WIRE_8_0 && !config.single_writes;
        Ok(connection)
    }

    /// Makes one call, within the time a call may take.
    pub(crate) async fn run<T>(
        &self,
        operation: &'static str,
        call: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Result<T> {
        self.within(operation, async {
            call.into_future().await.map_err(|error| error::from_driver(operation, error))
        })
        .await
    }

    /// Makes one call that takes as long as there is something to go through (a count, the build of
    /// an index): the time of a call would cut it off while the server goes on.
    pub(crate) async fn patiently<T>(
        &self,
        operation: &'static str,
        call: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Result<T> {
        call.into_future().await.map_err(|error| error::from_driver(operation, error))
    }

    /// Awaits `work` for as long as a call may take.
    pub(crate) async fn within<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            answer = work => answer,
            () = self.clock.sleep(self.timeout) => {
                let detail = format!("no answer within {:?}", self.timeout);
                Err(Error::new(ErrorKind::Timeout, operation).backend(BACKEND).detail(detail))
            }
        }
    }

    /// Lets `pause` pass.
    pub(crate) async fn pause(&self, pause: Duration) {
        self.clock.sleep(pause).await;
    }

    /// One of Flare's collections, by its name without prefix.
    pub(crate) fn collection(&self, name: &str) -> Collection<Document> {
        self.database.collection(&format!("{PREFIX}{name}"))
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }
}

/// What the names of Flare's collections begin with, so that a database can be shared.
pub(crate) const PREFIX: &str = "flare_";
