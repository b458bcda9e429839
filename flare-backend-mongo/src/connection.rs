//! Takes calls of the driver; gives their answers within the configured time, with Flare's errors.
//! The only place that knows how long a call may take.

use std::sync::Arc;
use std::time::Duration;

use flare_core::port::{Clock, SystemClock};
use flare_core::{Error, ErrorKind, Result};
use futures::TryStreamExt;
use mongodb::bson::{Document, doc};
use mongodb::options::{ClientOptions, ReadConcern, ReadPreference, SelectionCriteria};
use mongodb::{Client, Collection, Database};

use crate::BACKEND;
use crate::config::MongoConfig;
use crate::error;
use crate::places::{Party, Place, Places};
use crate::server_clock::ServerClock;

/// The wire version of MongoDB 8.0, the first with the `bulkWrite` command.
const WIRE_8_0: i32 = 25;
/// The wire version of MongoDB 6.0, the oldest that is supported.
const WIRE_6_0: i32 = 17;

/// Connections the driver makes to a server, unless it is told.
const POOL: u32 = 10;
/// Connections for the leases, at most: as many as there are steps at a time, and some for looks.
const LEASE_POOL: u32 = 8;

/// One database, and how to call it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    client: Client,
    database: Database,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) server_clock: Arc<ServerClock>,
    timeout: Duration,
    /// As many as there are connections.
    places: Arc<Places>,
    /// As whom it takes them.
    party: Party,
    pub(crate) poll_every: Duration,
    /// Whether the server takes batches of different updates, with an answer for each.
    pub(crate) bulk: bool,
}

impl Connection {
    /// Connects for work and puts, and makes sure that somebody is there who is new enough.
    pub(crate) async fn open(config: &MongoConfig) -> Result<Self> {
        let (options, database) = config.options().await?;
        let pool = options.max_pool_size.filter(|most| *most > 0).unwrap_or(POOL);
        Self::with(config, options, &database, pool, Party::Work).await
    }

    /// Connects for the leases, on connections that nothing else uses: a keep-alive waits for nobody's
    /// work, and an error there ends no connection here.
    pub(crate) async fn open_for_leases(config: &MongoConfig) -> Result<Self> {
        let (mut options, database) = config.options().await?;
        let pool = options.max_pool_size.filter(|most| *most > 0).unwrap_or(POOL).min(LEASE_POOL);
        // The change stream holds one all the time, and takes no place.
        options.max_pool_size = Some(pool + 1);
        Self::with(config, options, &database, pool, Party::Steps).await
    }

    async fn with(
        config: &MongoConfig,
        mut options: ClientOptions,
        database: &str,
        pool: u32,
        party: Party,
    ) -> Result<Self> {
        // Else calls would wait in the driver's line while others connect.
        options.max_connecting.get_or_insert(pool + 1);
        let client =
            Client::with_options(options).map_err(|error| error::from_driver("connect", error))?;
        let mut connection = Self {
            database: client.database(database),
            client,
            clock: Arc::new(SystemClock::new()),
            server_clock: Arc::default(),
            timeout: config.timeout,
            places: Arc::new(Places::new(pool as usize)),
            party,
            poll_every: config.poll_every,
            bulk: false,
        };
        let hello =
            connection.run("connect", connection.database.run_command(doc! { "hello": 1 })).await?;
        let wire = hello.get_i32("maxWireVersion").unwrap_or(0);
        if wire < WIRE_6_0 {
            let detail = format!("the server is older than MongoDB 6.0 (wire version {wire})");
            return Err(Error::new(ErrorKind::Unsupported, "connect")
                .with_backend(BACKEND)
                .with_detail(detail));
        }
        connection.bulk = wire >= WIRE_8_0 && !config.single_writes;
        Ok(connection)
    }

    /// What the server makes of expressions that need no collection.
    pub(crate) async fn ask(&self, operation: &'static str, fields: Document) -> Result<Document> {
        let pipeline = vec![doc! { "$documents": [fields] }];
        // Of the member that stamps what is written, whatever is said of reading elsewhere.
        let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
        let question = self.database.aggregate(pipeline).selection_criteria(primary);
        let question = question.read_concern(ReadConcern::local());
        let answer = async { question.await?.try_next().await };
        self.run(operation, answer).await?.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, operation)
                .with_backend(BACKEND)
                .with_detail("the server gave no answer")
        })
    }

    /// Makes one call, within the time a call may take.
    pub(crate) async fn run<T>(
        &self,
        operation: &'static str,
        call: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Result<T> {
        let call = call.into_future();
        self.reach(operation, async {
            call.await.map_err(|error| error::from_driver(operation, error))
        })
        .await
    }

    /// Awaits `work`, which is a call of the driver's, for as long as a call may take; waiting for a
    /// connection takes of that time.
    pub(crate) async fn reach<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.within(operation, async {
            let _place = self.place(operation).await?;
            work.await
        })
        .await
    }

    /// The right to use a connection, once there is one. Whoever has it must not ask for another.
    pub(crate) async fn place(&self, operation: &'static str) -> Result<Place<'_>> {
        let closed = |error| Error::new(ErrorKind::Internal, operation).with_source(error);
        self.places.take(self.party).await.map_err(closed)
    }

    /// The same connections, for another party's calls.
    pub(crate) fn used_by(&self, party: Party) -> Self {
        Self { party, ..self.clone() }
    }

    /// Makes one call that takes as long as there is something to go through (a count, the build of
    /// an index): the time of a call would cut it off while the server goes on.
    pub(crate) async fn patiently<T>(
        &self,
        operation: &'static str,
        call: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Result<T> {
        let _place = self.place(operation).await?;
        call.into_future().await.map_err(|error| error::from_driver(operation, error))
    }

    /// Awaits `work`, which calls nobody by itself, for as long as a call may take.
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
                Err(Error::new(ErrorKind::Timeout, operation).with_backend(BACKEND).with_detail(detail))
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
