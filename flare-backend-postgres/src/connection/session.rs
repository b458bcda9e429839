//! One connection out of the pool, and at most one transaction on it. A transaction that is dropped is taken
//! back; what is dropped while the server has not answered is cancelled there, and takes its connection along.

use std::pin::Pin;
use std::task::Poll;

use deadpool_postgres::{ClientWrapper, Object};
use futures::{FutureExt, future};
use postgres_types::{ToSql, Type};
use tokio_postgres::{Row, Statement};

use super::Database;
use super::value::Value;
use crate::fault::Worked;

/// A connection that is this work's alone.
pub(crate) struct Session<'a> {
    database: &'a Database,
    object: Option<Object>,
    /// A transaction is open.
    open: bool,
    /// Something was asked and not answered yet.
    asking: bool,
}

/// A statement that is about to be run.
enum Ready<'a> {
    Remembered(Statement),
    Plain(std::borrow::Cow<'static, str>, Vec<(&'a (dyn ToSql + Sync), Type)>),
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        if self.asking {
            self.database.give_up(object);
        } else if self.open {
            // Sent by the first look at it; whoever has the connection next comes after it.
            _ = object.batch_execute("ROLLBACK").now_or_never();
        }
    }
}

impl<'a> Session<'a> {
    pub(super) fn new(database: &'a Database, object: Object) -> Self {
        Self { database, object: Some(object), open: false, asking: false }
    }

    fn client(&self) -> Worked<&ClientWrapper> {
        match self.object.as_deref() {
            Some(client) => Ok(client),
            None => Err(super::gone("query").into()),
        }
    }

    /// Runs a statement.
    pub(crate) async fn query(
        &mut self,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Worked<Vec<Row>> {
        if !self.open && !self.database.remembers() {
            return Ok(self.whole(&[(sql, values)]).await?.pop().unwrap_or_default());
        }
        self.asking = true;
        let rows = async {
            let ready = self.ready(sql, values).await?;
            Ok(run(self.client()?, &ready, values).await?)
        }
        .await;
        // Whatever the server refused, it has answered.
        self.asking = false;
        rows
    }

    /// Runs statements as one transaction, in one round trip: a server that a pooler is before gives up on them by
    /// itself, as no pooler can be relied on to have them cancelled.
    async fn whole(
        &mut self,
        statements: &[(&'static str, &[&dyn Value])],
    ) -> Worked<Vec<Vec<Row>>> {
        (self.asking, self.open) = (true, true);
        let done: Worked<_> = async {
            let mut ready = Vec::with_capacity(statements.len());
            for (sql, values) in statements {
                ready.push(self.ready(sql, values).await?);
            }
            let client = self.client()?;
            let each = ready.iter().zip(statements);
            let each = in_order(each.map(|(ready, (_, values))| run(client, ready, values)));
            let begun = client.batch_execute(&self.database.begin);
            let (begun, rows, ended) =
                future::join3(begun, each, client.batch_execute("COMMIT")).await;
            begun?;
            Ok((rows.into_iter().collect::<std::result::Result<Vec<_>, _>>(), ended))
        }
        .await;
        self.asking = false;
        let (rows, ended) = done?;
        // One that fails is taken back by the end, too.
        self.open = ended.is_err();
        let rows = rows?;
        ended?;
        Ok(rows)
    }

    /// Runs a statement that gives one row at most.
    pub(crate) async fn query_opt(
        &mut self,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Worked<Option<Row>> {
        Ok(self.query(sql, values).await?.into_iter().next())
    }

    /// Begins a transaction and runs its first statement, in one round trip.
    pub(crate) async fn begin(
        &mut self,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Worked<Vec<Row>> {
        self.begin_as(&self.database.begin, sql, values).await
    }

    /// The same; no lock is waited for much longer than others hold theirs.
    pub(crate) async fn begin_in_haste(
        &mut self,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Worked<Vec<Row>> {
        self.begin_as(&self.database.begin_in_haste, sql, values).await
    }

    async fn begin_as(
        &mut self,
        begin: &str,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Worked<Vec<Row>> {
        (self.asking, self.open) = (true, true);
        let rows = async {
            let ready = self.ready(sql, values).await?;
            let client = self.client()?;
            let statement = run(client, &ready, values);
            let (begun, rows) = future::join(client.batch_execute(begin), statement).await;
            begun?;
            Ok(rows?)
        }
        .await;
        self.asking = false;
        rows
    }

    /// Runs the last statement of a transaction and ends it, in one round trip.
    pub(crate) async fn finish(
        &mut self,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Worked<Vec<Row>> {
        Ok(self.finish_each(sql, &[values]).await?.pop().unwrap_or_default())
    }

    /// Runs the last statement of a transaction for each of some values, one after the other, and ends it, in one
    /// round trip.
    pub(crate) async fn finish_each(
        &mut self,
        sql: &'static str,
        values: &[&[&dyn Value]],
    ) -> Worked<Vec<Vec<Row>>> {
        self.asking = true;
        let rows = async {
            let mut ready = Vec::with_capacity(values.len());
            for values in values {
                ready.push(self.ready(sql, values).await?);
            }
            let client = self.client()?;
            let statements = ready.iter().zip(values);
            let statements = statements.map(|(ready, values)| run(client, ready, values));
            let (rows, ended) =
                future::join(in_order(statements), client.batch_execute("COMMIT")).await;
            let rows = rows.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
            ended?;
            Ok(rows)
        }
        .await;
        (self.asking, self.open) = (false, self.open && rows.is_err());
        rows
    }

    /// Runs two statements in one round trip, in no particular transaction if none is open.
    pub(crate) async fn both(
        &mut self,
        first: (&'static str, &[&dyn Value]),
        second: (&'static str, &[&dyn Value]),
    ) -> Worked<(Vec<Row>, Vec<Row>)> {
        if !self.open && !self.database.remembers() {
            let mut rows = self.whole(&[first, second]).await?.into_iter();
            return Ok((rows.next().unwrap_or_default(), rows.next().unwrap_or_default()));
        }
        self.asking = true;
        let rows = async {
            let one = self.ready(first.0, first.1).await?;
            let other = self.ready(second.0, second.1).await?;
            let client = self.client()?;
            let (one, other) =
                future::join(run(client, &one, first.1), run(client, &other, second.1)).await;
            Ok((one?, other?))
        }
        .await;
        self.asking = false;
        rows
    }

    /// Ends a transaction.
    pub(crate) async fn commit(&mut self) -> Worked<()> {
        self.script("COMMIT").await?;
        self.open = false;
        Ok(())
    }

    /// Takes a transaction back.
    pub(crate) async fn roll_back(&mut self) -> Worked<()> {
        self.script("ROLLBACK").await?;
        self.open = false;
        Ok(())
    }

    /// Runs statements that give nothing, as one transaction unless they say otherwise.
    pub(crate) async fn script(&mut self, sql: &str) -> Worked<()> {
        self.asking = true;
        let done = match self.client() {
            Ok(client) => client.batch_execute(sql).await.map_err(Into::into),
            Err(fault) => Err(fault),
        };
        self.asking = false;
        done
    }

    async fn ready<'v>(&self, sql: &'static str, values: &[&'v dyn Value]) -> Worked<Ready<'v>> {
        let text = self.database.schema.text(sql);
        if self.database.remembers() {
            let kinds: Vec<Type> = values.iter().map(|value| value.kind()).collect();
            let statement = self.client()?.prepare_typed_cached(&text, &kinds).await?;
            return Ok(Ready::Remembered(statement));
        }
        let values = values.iter().map(|value| (value.sql(), value.kind())).collect();
        Ok(Ready::Plain(text, values))
    }
}

/// Awaits all, and looks at each in its order from the first poll on: so they are sent in that order, and before
/// whatever is joined after them.
async fn in_order<F: Future + Unpin>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(future::maybe_done).collect();
    future::poll_fn(|context| {
        let done = waiting.iter_mut().map(|one| one.poll_unpin(context).is_ready());
        if done.fold(true, |all, one| all & one) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.iter_mut().filter_map(|one| Pin::new(one).take_output()).collect()
}

/// Sends a statement when it is first polled.
fn run<'a>(
    client: &'a ClientWrapper,
    ready: &'a Ready<'_>,
    values: &'a [&dyn Value],
) -> future::BoxFuture<'a, std::result::Result<Vec<Row>, tokio_postgres::Error>> {
    match ready {
        Ready::Remembered(statement) => {
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value.sql()).collect();
            async move { client.query(statement, &values).await }.boxed()
        }
        Ready::Plain(text, values) => async move { client.query_typed(text, values).await }.boxed(),
    }
}
