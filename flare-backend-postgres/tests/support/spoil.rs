//! Spoils records behind the repository's back.

use flare_core::model::{RECORD_FORMAT, RecordName};
use flare_testkit::unreadable::Spoiling;
use tokio_postgres::Client;

/// What nobody knows.
const UNKNOWN: &str = "colour";

/// Where a record is: its table, the condition that finds it, the column that holds JSON if one does, and how
/// to make it mean nothing.
struct Place {
    table: &'static str,
    which: String,
    json: Option<&'static str>,
    damage: &'static str,
}

fn place(schema: &str, record: &RecordName) -> Place {
    let json = |table, id: String, column, damage| Place {
        table,
        which: format!("id = '{id}'"),
        json: Some(column),
        damage,
    };
    match record {
        RecordName::Resource(it) => json("resources", it.to_string(), "record", "record = '{'"),
        RecordName::Subscription(it) => json("subscriptions", it.to_string(), "spec", "spec = '{'"),
        RecordName::Document(key) => Place {
            table: "documents",
            which: format!(
                "resource = (SELECT n FROM {schema}.resource_ids WHERE id = '{}') AND url = '{}'",
                key.resource,
                key.url.as_str()
            ),
            json: None,
            damage: "dispatched_gone = 7",
        },
        RecordName::Row(key) => Place {
            table: "rows",
            which: format!(
                "subscription = (SELECT n FROM {schema}.subscription_ids WHERE id = '{}') \
                 AND document IN (SELECT n FROM {schema}.documents WHERE url = '{}')",
                key.subscription,
                key.url.as_str()
            ),
            json: None,
            damage: "state = 99",
        },
        RecordName::Lane(lane) => Place {
            table: "lanes",
            which: format!("subscription = '{}' AND shard = {}", lane.subscription, lane.shard),
            json: Some("state"),
            damage: "state = '{'",
        },
        RecordName::Job(it) => {
            Place { table: "jobs", which: format!("id = '{it}'"), json: None, damage: "epoch = -1" }
        }
        RecordName::Consumer(it) => json("consumers", it.to_string(), "record", "record = '{'"),
        RecordName::Reject(it) => {
            json("consumer_rejects", it.to_string(), "record", "record = '{'")
        }
        RecordName::Audit(it) => json("audit", it.to_string(), "record", "record = '{'"),
        other => panic!("{other:?} is no record of a repository"),
    }
}

pub(crate) async fn spoil(client: &Client, schema: &str, record: &RecordName, how: Spoiling) {
    let Place { table, which, json, damage } = place(schema, record);
    let set = match how {
        Spoiling::UnknownField => {
            // As a newer version would have: its migration added a column.
            let add =
                format!("ALTER TABLE {schema}.{table} ADD COLUMN IF NOT EXISTS {UNKNOWN} text");
            client.batch_execute(&add).await.unwrap();
            let json = json.map_or_else(String::new, |json| {
                format!(", {json} = '{{\"{UNKNOWN}\":{{\"red\":[1.50]}},' || substr({json}, 2)")
            });
            format!("{UNKNOWN} = 'red'{json}")
        }
        Spoiling::Newer => format!("needs = {}", RECORD_FORMAT + 1),
        _ => damage.to_owned(),
    };
    let sql = format!("UPDATE {schema}.{table} SET {set} WHERE {which}");
    assert_eq!(client.execute_typed(&sql, &[]).await.unwrap(), 1, "{record:?}");
    let changed = format!("UPDATE {schema}.store SET catalogue = catalogue + 1");
    client.batch_execute(&changed).await.unwrap();
}

pub(crate) async fn has_unknown_field(client: &Client, schema: &str, record: &RecordName) -> bool {
    let Place { table, which, json, .. } = place(schema, record);
    let inside =
        json.map_or_else(|| "true".to_owned(), |json| format!("{json} LIKE '%{UNKNOWN}%'"));
    let sql = format!("SELECT {UNKNOWN} = 'red' AND {inside} FROM {schema}.{table} WHERE {which}");
    let row = client.query_typed_one(&sql, &[]).await.unwrap();
    row.get::<_, Option<bool>>(0) == Some(true)
}
