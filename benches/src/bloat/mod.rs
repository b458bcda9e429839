//! Takes a number of deliveries; makes them on PostgreSQL, compares what each table and index takes then with
//! what it takes once it is rewritten, and tells whether that is at most twice as much.

mod load;
mod relations;

use std::time::Duration;

use flare_backend_postgres::{PostgresBackend, PostgresConfig};
use load::{Load, Size};
use relations::{Relation, Relations};
use tokio_postgres::{Client, NoTls};

use crate::Result;
use crate::e2e::{now_nanos, postgresql_server};
use crate::number::number;

/// What a relation may take at most, in terms of what it takes when it is rewritten.
const LIMIT: f64 = 2.0;
/// What takes less than this is not judged: a table of few rows that change all the time is mostly room for them.
const SMALL: u64 = 1 << 20;
const DRAINS: Duration = Duration::from_secs(10);

/// Measures, and prints what it sees; tells whether every relation is as small as claimed.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let mut deliveries = 2_000_000;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--deliveries" => deliveries = number(arg, args.next(), Size::LEAST)?,
            _ => return Err(format!("bloat does not know {arg}\n\n{}", crate::USAGE).into()),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let holds = runtime.block_on(measure(Size::of(deliveries)));
    runtime.shutdown_background();
    holds
}

async fn measure(size: Size) -> Result<bool> {
    let uri = postgresql_server()?;
    let (client, connection) = tokio_postgres::connect(&uri, NoTls).await?;
    tokio::spawn(connection);
    println!("{}", server(&client).await?);
    let schema = format!("flare_bloat_{}_{}", std::process::id(), now_nanos());
    let relations = Relations { client: &client, schema: &schema };
    let measured = deliver(&uri, &relations, size).await;
    let dropped = client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await;
    let measured = measured?;
    dropped?;
    judge(&measured)
}

/// Which server it is; refuses one that never takes back the room of what was changed.
async fn server(client: &Client) -> Result<String> {
    let shown = "SELECT current_setting('server_version'), current_setting('autovacuum_naptime'), \
         current_setting('autovacuum')::bool AND current_setting('track_counts')::bool";
    let shown = client.query_one(shown, &[]).await?;
    let (version, nap): (&str, &str) = (shown.get(0), shown.get(1));
    if !shown.get::<_, bool>(2) {
        return Err(
            "autovacuum is off at this server: it would keep all that was ever changed".into()
        );
    }
    Ok(format!("PostgreSQL {version}, autovacuum looks every {nap}"))
}

/// Makes the deliveries; gives what each relation takes after them.
async fn deliver(uri: &str, relations: &Relations<'_>, size: Size) -> Result<Vec<Relation>> {
    let config = PostgresConfig::new(uri).schema(relations.schema).create_missing();
    let mut load = Load::start(PostgresBackend::connect(config).await?.into(), size).await?;
    println!("{size}");
    load.run(async || relations.bytes().await).await?;
    // As full as they ever are: an index of what is pending would be compared with an empty one.
    load.leave_pending().await?;
    load.stop(DRAINS).await?;
    relations.rewritten().await
}

/// Prints what was found; tells whether that is as claimed.
fn judge(found: &[Relation]) -> Result<bool> {
    println!(
        "{:<34} {:>10} {:>10} {:>6} {:>10} {:>6} {:>8}",
        "relation", "KiB", "rewritten", "times", "updates", "HOT", "vacuums"
    );
    for relation in found.iter().filter(|it| it.size > 0) {
        println!("{relation} {}", verdict(relation));
    }
    let judged: Vec<&Relation> = found.iter().filter(|it| it.size >= SMALL).collect();
    println!(
        "{} of {} take {} KiB or more and are judged: claimed at most {LIMIT} times what they take rewritten",
        judged.len(),
        found.len(),
        SMALL >> 10
    );
    match judged.is_empty() {
        true => Err("nothing is large enough to be judged: more deliveries are needed".into()),
        false => Ok(judged.into_iter().all(|it| it.times() <= LIMIT)),
    }
}

fn verdict(relation: &Relation) -> &'static str {
    match (relation.size < SMALL, relation.times() <= LIMIT) {
        (true, _) => "small",
        (false, true) => "ok",
        (false, false) => "BLOATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(size: u64, rewritten: u64) -> Relation {
        Relation { name: "it".to_owned(), size, rewritten, updates: None }
    }

    #[test]
    fn what_is_small_is_not_judged_and_nothing_else_may_be_twice_as_large() {
        let (small, well) = (relation(SMALL - 1, 8192), relation(2 * SMALL, SMALL));
        let bloated = relation(2 * SMALL + 8192, SMALL);
        assert!(judge(&[small.clone(), well.clone()]).unwrap());
        assert!(!judge(&[small.clone(), well, bloated]).unwrap());
        let refused = judge(&[small]).unwrap_err().to_string();
        assert!(refused.contains("more deliveries"), "{refused}");
    }

    #[test]
    fn what_was_large_and_is_empty_when_it_is_rewritten_is_bloated() {
        assert!(!judge(&[relation(SMALL, 0)]).unwrap());
    }
}
