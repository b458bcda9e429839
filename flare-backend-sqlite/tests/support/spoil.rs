//! Spoils records behind the repository's back.

use flare_core::model::{RECORD_FORMAT, RecordName};
use flare_testkit::unreadable::Spoiling;
use rusqlite::{Connection, ToSql};

/// What nobody knows.
const UNKNOWN: &str = "colour";

/// Where a record is: its table, the condition that finds it with its values, the column that holds JSON if
/// one does, and how to make it mean nothing.
struct Place {
    table: &'static str,
    which: &'static str,
    values: Vec<Box<dyn ToSql>>,
    json: Option<&'static str>,
    damage: &'static str,
}

fn place(record: &RecordName) -> Place {
    let id = |bytes: &[u8; 16]| -> Box<dyn ToSql> { Box::new(bytes.to_vec()) };
    match record {
        RecordName::Resource(it) => Place {
            table: "resources",
            which: "id = ?1",
            values: vec![id(it.as_bytes())],
            json: Some("record"),
            damage: "record = '{'",
        },
        RecordName::Subscription(it) => Place {
            table: "subscriptions",
            which: "id = ?1",
            values: vec![id(it.as_bytes())],
            json: Some("spec"),
            damage: "spec = '{'",
        },
        RecordName::Document(key) => Place {
            table: "documents",
            which: "resource = (SELECT n FROM resource_ids WHERE id = ?1) AND url = ?2",
            values: vec![id(key.resource.as_bytes()), Box::new(key.url.as_str().to_owned())],
            json: None,
            damage: "dispatched_gone = 7",
        },
        RecordName::Row(key) => Place {
            table: "rows",
            which: "subscription = (SELECT n FROM subscription_ids WHERE id = ?1) \
                    AND document IN (SELECT n FROM documents WHERE url = ?2)",
            values: vec![id(key.subscription.as_bytes()), Box::new(key.url.as_str().to_owned())],
            json: None,
            damage: "state = 99",
        },
        RecordName::Lane(lane) => Place {
            table: "lanes",
            which: "subscription = (SELECT n FROM subscriptions WHERE id = ?1) AND shard = ?2",
            values: vec![id(lane.subscription.as_bytes()), Box::new(lane.shard)],
            json: Some("state"),
            damage: "state = '{'",
        },
        RecordName::Job(it) => Place {
            table: "jobs",
            which: "id = ?1",
            values: vec![id(it.as_bytes())],
            json: None,
            damage: "epoch = -1",
        },
        RecordName::Consumer(it) => Place {
            table: "consumers",
            which: "id = ?1",
            values: vec![id(it.as_bytes())],
            json: Some("record"),
            damage: "record = '{'",
        },
        RecordName::Reject(it) => Place {
            table: "rejects",
            which: "id = ?1",
            values: vec![id(it.as_bytes())],
            json: Some("record"),
            damage: "record = '{'",
        },
        RecordName::Audit(it) => Place {
            table: "audit",
            which: "id = ?1",
            values: vec![id(it.as_bytes())],
            json: Some("record"),
            damage: "record = '{'",
        },
        other => panic!("{other:?} is no record of a repository"),
    }
}

pub(crate) fn spoil(connection: &Connection, record: &RecordName, how: Spoiling) {
    let Place { table, which, values, json, damage } = place(record);
    let set = match how {
        Spoiling::UnknownField => {
            // As a newer version would have: its migration added a column.
            let there = connection.prepare(&format!("SELECT {UNKNOWN} FROM {table}")).is_ok();
            if !there {
                let add = format!("ALTER TABLE {table} ADD COLUMN {UNKNOWN} TEXT");
                connection.execute_batch(&add).unwrap();
            }
            let json = json.map_or_else(String::new, |json| {
                format!(", {json} = '{{\"{UNKNOWN}\":{{\"red\":[1.50]}},' || substr({json}, 2)")
            });
            format!("{UNKNOWN} = 'red'{json}")
        }
        Spoiling::Newer => format!("needs = {}", RECORD_FORMAT + 1),
        _ => damage.to_owned(),
    };
    let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
    let sql = format!("UPDATE {table} SET {set} WHERE {which}");
    assert_eq!(connection.execute(&sql, &*values).unwrap(), 1, "{record:?}");
    connection.execute_batch("UPDATE store SET catalogue = catalogue + 1").unwrap();
}

pub(crate) fn has_unknown_field(connection: &Connection, record: &RecordName) -> bool {
    let Place { table, which, values, json, .. } = place(record);
    let inside = json.map_or_else(|| "1".to_owned(), |json| format!("{json} LIKE '%{UNKNOWN}%'"));
    let sql = format!("SELECT {UNKNOWN} = 'red' AND {inside} FROM {table} WHERE {which}");
    let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
    connection.query_row(&sql, &*values, |row| row.get::<_, Option<bool>>(0)).unwrap() == Some(true)
}
