//! A host that changes its orders and puts them in the same transactions, one in five of which it takes back, and says
//! of each how it ended once the server has told it so; until it is killed.

use std::convert::Infallible;
use std::time::Duration;

use flare_backend_postgres::{PostgresBackend, PostgresConfig};
use flare_core::port::{Clock, SystemClock};

use crate::change::{Change, Ended};
use crate::process::Role;

const CHANGE: &str = "INSERT INTO flare.shop_orders VALUES ($1, nextval('flare.versions')) \
     ON CONFLICT (id) DO UPDATE SET version = excluded.version RETURNING version";
const REMOVE: &str = "DELETE FROM flare.shop_orders WHERE id = $1 RETURNING version";
/// Orders there are, so that each changes several times.
pub(crate) const ORDERS: i64 = 500;

/// What a transaction does.
struct Turn {
    id: i64,
    removes: bool,
    takes_back: bool,
}

impl Turn {
    fn next(random: &mut fastrand::Rng) -> Self {
        let id = random.i64(1..=ORDERS);
        Self { id, removes: random.u8(..10) == 0, takes_back: random.u8(..5) == 0 }
    }

    fn url(&self) -> String {
        format!("http://shop.example/orders/{}", self.id)
    }

    /// What it says of a version when it has ended.
    fn said(&self, version: impl std::fmt::Display) -> String {
        let ended = if self.takes_back { Ended::TakenBack } else { Ended::Committed };
        Change::line(ended, self.id, version, self.removes)
    }
}

pub(crate) async fn run(role: Role) {
    let mut random = fastrand::Rng::with_seed(role.seed);
    let config = PostgresConfig::new(&role.uri).schema(&role.schema);
    // A server that is away comes back. What became of the last transaction it cannot know, so it says nothing of it.
    loop {
        let done = match PostgresBackend::connect(config.clone()).await {
            Ok(backend) if role.name == "sqlx" => by_sqlx(&role, &backend, &mut random).await,
            Ok(backend) => by_tokio(&role, &backend, &mut random).await,
            Err(error) => Err(error.to_string()),
        };
        let Err(error) = done;
        eprintln!("host: {error}");
        SystemClock::new().sleep(Duration::from_millis(200)).await;
    }
}

async fn by_tokio(
    role: &Role,
    backend: &PostgresBackend,
    random: &mut fastrand::Rng,
) -> Result<Infallible, String> {
    let shown = |error: tokio_postgres::Error| error.to_string();
    let of_schema = |sql: &str| sql.replace("flare.", &format!("{}.", role.schema));
    let (mut client, connection) =
        tokio_postgres::connect(&role.uri, tokio_postgres::NoTls).await.map_err(shown)?;
    tokio::spawn(connection);
    loop {
        let turn = Turn::next(random);
        let transaction = client.transaction().await.map_err(shown)?;
        let sql = of_schema(if turn.removes { REMOVE } else { CHANGE });
        let row = transaction.query_opt(&sql, &[&turn.id]).await.map_err(shown)?;
        let version: Option<i64> = row.map(|row| row.get(0));
        let put = match version {
            Some(_) if turn.removes => backend.delete_in(&transaction, [(turn.url(), None)]).await,
            Some(version) => {
                let json = format!(r#"{{"rev":{version}}}"#);
                backend.put_in(&transaction, [(turn.url(), json)]).await
            }
            None => Ok(Vec::new()),
        };
        put.map_err(|error| error.to_string())?;
        let ended = match turn.takes_back {
            true => transaction.rollback().await,
            false => transaction.commit().await,
        };
        ended.map_err(shown)?;
        if let Some(version) = version {
            println!("{}", turn.said(version));
        }
        rest(role).await;
    }
}

#[cfg(feature = "sqlx")]
async fn by_sqlx(
    role: &Role,
    backend: &PostgresBackend,
    random: &mut fastrand::Rng,
) -> Result<Infallible, String> {
    use sqlx::{AssertSqlSafe, Connection, PgConnection};
    let shown = |error: sqlx::Error| error.to_string();
    let of_schema = |sql: &str| AssertSqlSafe(sql.replace("flare.", &format!("{}.", role.schema)));
    let mut host = PgConnection::connect(&role.uri).await.map_err(shown)?;
    loop {
        let turn = Turn::next(random);
        let mut transaction = host.begin().await.map_err(shown)?;
        let sql = of_schema(if turn.removes { REMOVE } else { CHANGE });
        let version = sqlx::query_scalar::<_, i64>(sql).bind(turn.id);
        let version = version.fetch_optional(&mut *transaction).await.map_err(shown)?;
        let put = match version {
            Some(_) if turn.removes => {
                backend.delete_in(&mut transaction, [(turn.url(), None)]).await
            }
            Some(version) => {
                let json = format!(r#"{{"rev":{version}}}"#);
                backend.put_in(&mut transaction, [(turn.url(), json)]).await
            }
            None => Ok(Vec::new()),
        };
        put.map_err(|error| error.to_string())?;
        let ended = match turn.takes_back {
            true => transaction.rollback().await,
            false => transaction.commit().await,
        };
        ended.map_err(shown)?;
        if let Some(version) = version {
            println!("{}", turn.said(version));
        }
        rest(role).await;
    }
}

#[cfg(not(feature = "sqlx"))]
async fn by_sqlx(
    _: &Role,
    _: &PostgresBackend,
    _: &mut fastrand::Rng,
) -> Result<Infallible, String> {
    panic!("it is built without sqlx");
}

/// So that a host that others are waited for beside does not run far ahead of them.
async fn rest(role: &Role) {
    if role.rest > 0 {
        SystemClock::new().sleep(Duration::from_millis(role.rest)).await;
    }
}

/// The same as a script for `psql`, which knows nothing of Flare but the function; of so many transactions.
pub(crate) fn script(role: &Role) -> String {
    let mut random = fastrand::Rng::with_seed(role.seed);
    let turns = (0..role.many).map(|_| {
        let turn = Turn::next(&mut random);
        let end = if turn.takes_back { "ROLLBACK" } else { "COMMIT" };
        let sql = if turn.removes { REMOVE } else { CHANGE };
        let sql = sql.replace("$1", &turn.id.to_string());
        let put = if turn.removes {
            format!("flare.delete('{}')", turn.url())
        } else {
            format!("flare.put('{}', json_build_object('rev', o.version)::text)", turn.url())
        };
        // One row in any case, as `\gset` asks for; without a version where there was nothing to remove.
        let said = format!("count({put}) AS puts, coalesce(max(o.version)::text, '') AS version");
        let line = turn.said(":version");
        format!("BEGIN; WITH o AS ({sql}) SELECT {said} FROM o \\gset\n{end};\n\\echo {line}\n")
    });
    turns.collect::<String>().replace("flare.", &format!("{}.", role.schema))
}
