//! Takes messages; gives each to somebody, at least once. Whoever waits is woken at once by what this process
//! does, and by one look for all who wait at what others did.

mod receive;
pub(crate) mod send;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{
    Incoming, Outgoing, Part, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};

use crate::codec::limit;
use crate::connection::Database;
use crate::fault::Worked;
use crate::pages::{ScanPage, pages};
use crate::pulse::Pulse;
use crate::{BACKEND, PostgresConfig, error, schema};

/// The longest delay of a message.
const MAX_DELAY: Duration = Duration::from_secs(7 * 24 * 3600);
/// Names of a page.
const PAGE: usize = 1_000;

/// The queue in a schema.
#[derive(Debug)]
pub struct PostgresQueue {
    database: Arc<Database>,
    pulse: Arc<Pulse>,
}

impl PostgresQueue {
    /// Connects to a schema that is set up, or sets it up if [`PostgresConfig::create_missing`].
    pub async fn connect(config: PostgresConfig) -> Result<Self> {
        let database = Database::open(&config).await?;
        let pulse = Pulse::new(Arc::clone(&database), config.notify);
        Self::on(database, pulse, &config).await
    }

    /// The same, woken by a pulse that others may share.
    pub(crate) async fn on(
        database: Arc<Database>,
        pulse: Arc<Pulse>,
        config: &PostgresConfig,
    ) -> Result<Self> {
        schema::check(&database, Part::Queue, config.create_missing).await?;
        Ok(Self { database, pulse })
    }

    /// Wakes those in this process who wait for a queue.
    pub(crate) fn wake(&self, queue: &QueueName) {
        self.pulse.ring(&queue.to_string());
    }

    async fn page_of_names(&self, after: &str) -> Worked<ScanPage<QueueName, String>> {
        const OPERATION: &str = "list";
        const SQL: &str = "SELECT name FROM flare.queues WHERE name > $1 ORDER BY name LIMIT $2";
        let rows = self.database.all(OPERATION, SQL, &[&after, &limit(PAGE)]).await?;
        let names = rows.iter().map(|row| row.try_get(0));
        let names = names.collect::<std::result::Result<Vec<String>, _>>()?;
        let next = names.last().filter(|_| names.len() == PAGE).cloned();
        // What has no name of ours nobody asks for.
        Ok((names.iter().filter_map(|name| name.parse().ok()).map(Ok).collect(), next))
    }
}

/// What is said of a queue that is not there.
fn unknown(operation: &'static str, queue: &QueueName) -> Error {
    error::of(ErrorKind::NotFound, operation, format!("there is no queue {queue}"))
}

#[async_trait]
impl Queue for PostgresQueue {
    fn facts(&self) -> QueueFacts {
        let mut facts = QueueFacts::new(1_000, MAX_DELAY, 1 << 20);
        facts.coalesces = true;
        facts
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        const OPERATION: &str = "create";
        const SQL: &str = "INSERT INTO flare.queues (name) SELECT $1 \
             WHERE NOT EXISTS (SELECT 1 FROM flare.queues WHERE name = $1) ON CONFLICT DO NOTHING";
        let name = queue.to_string();
        self.database
            .attempts(OPERATION, || async {
                self.database.all(OPERATION, SQL, &[&name]).await?;
                Ok(())
            })
            .await
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        const OPERATION: &str = "delete";
        const SQL: &str = "DELETE FROM flare.queues WHERE name = $1";
        let name = queue.to_string();
        self.database
            .attempts(OPERATION, || async {
                self.database.all(OPERATION, SQL, &[&name]).await?;
                Ok(())
            })
            .await?;
        self.pulse.ring(&name);
        Ok(())
    }

    fn list(&self) -> Scan<'_, QueueName> {
        pages(String::new(), move |after| {
            Box::pin(
                async move { self.database.attempts("list", || self.page_of_names(&after)).await },
            )
        })
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        const OPERATION: &str = "depth";
        const SQL: &str = "SELECT count(*) FILTER (WHERE m.at <= t.now), \
                 count(*) FILTER (WHERE m.at > t.now AND m.receipt IS NULL), \
                 count(*) FILTER (WHERE m.at > t.now AND m.receipt IS NOT NULL) \
             FROM (SELECT flare.now() AS now) t CROSS JOIN flare.queues q \
             LEFT JOIN flare.messages m ON m.queue = q.n WHERE q.name = $1 GROUP BY q.n";
        let name = queue.to_string();
        self.database
            .attempts(OPERATION, || async {
                let row = self.database.one(OPERATION, SQL, &[&name]).await?;
                let row = row.ok_or_else(|| unknown(OPERATION, queue))?;
                let count = |at: usize| row.try_get::<_, i64>(at).map(i64::unsigned_abs);
                Ok(QueueDepth::exact(count(0)?, count(1)?, count(2)?))
            })
            .await
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        self.send_batch(queue, &messages).await
    }

    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>> {
        self.receive_some(queue, request).await
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        let facts = self.facts();
        let checked = facts.check_batch("extend", receipts.len()).map_err(named);
        let extended = match checked {
            Ok(()) => self.hold(queue, &receipts, visibility).await,
            Err(error) => Err(error),
        };
        extended.unwrap_or_else(|error| vec![Err(error); receipts.len()])
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let facts = self.facts();
        let done = match facts.check_batch("settle", settlements.len()).map_err(named) {
            Ok(()) => self.settle_batch(queue, &settlements).await,
            Err(error) => Err(error),
        };
        let done = done.unwrap_or_else(|error| vec![Err(error); settlements.len()]);
        let unsettled = |((receipt, _), done): ((Receipt, Settlement), Result<()>)| {
            done.map_err(|error| Unsettled::new(error, receipt))
        };
        settlements.into_iter().zip(done).map(unsettled).collect()
    }
}

fn named(error: Error) -> Error {
    error.with_backend(BACKEND)
}
