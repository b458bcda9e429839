//! Which key of the file is which of a host's settings: operators find them by section, hosts in one type each.
//! Takes a table in one of the two arrangements; gives the other.

use toml::{Table, Value};

/// Keys as operators write them, each with where the value is in a [`Config`](super::Config).
const HOMES: [(&str, &str); 20] = [
    ("repository.tombstone-retention", "settings.tombstone-retention"),
    ("repository.dead-letter-retention", "settings.dead-letter-retention"),
    ("repository.audit-limit", "settings.audit-limit"),
    ("repository.audit-retention", "settings.audit-retention"),
    ("queue.sqs.placement", "settings.placement"),
    ("delivery.timeout", "settings.timeout"),
    ("delivery.concurrency", "settings.concurrency"),
    ("delivery.max-ttl", "settings.max-ttl"),
    ("delivery.in-flight-limit", "settings.in-flight-limit"),
    ("delivery.content-limit", "settings.content-limit"),
    ("delivery.hold-limit", "settings.hold-limit"),
    ("delivery.suspend-after", "settings.suspend-after"),
    ("worker.drain-timeout", "settings.drain-limit"),
    ("worker.metered-subscriptions", "settings.metered-subscriptions"),
    ("cluster.pinned-slots", "settings.pinned-slots"),
    ("cluster.name", "node.name"),
    ("cluster.roles", "node.roles"),
    ("cluster.weight", "node.weight"),
    ("cluster.shed-load", "node.shed-load"),
    ("lease.etcd.ttl", "node.ttl"),
];

/// The sections of a [`Config`](super::Config) that no file has.
const HIDDEN: [&str; 2] = ["settings", "node"];

/// As a [`Config`](super::Config) has it, from what a file says.
pub(super) fn settled(mut said: Table) -> Table {
    for (key, home) in HOMES {
        if let Some(value) = take(&mut said, key) {
            put(&mut said, home, value);
        }
    }
    said
}

/// As a file says it, from what a [`Config`](super::Config) has. What has no key is left out.
pub(super) fn as_said(mut settled: Table) -> Table {
    for (key, home) in HOMES {
        if let Some(value) = take(&mut settled, home) {
            put(&mut settled, key, value);
        }
    }
    for section in HIDDEN {
        settled.remove(section);
    }
    settled
}

/// The key of what is at this path in a [`Config`](super::Config): `cluster.roles[1]` of `node.roles[1]`.
pub(super) fn key_of(path: &str) -> String {
    let (plain, index) = path.split_at(path.find('[').unwrap_or(path.len()));
    let found = HOMES.iter().find(|(_, home)| *home == plain);
    format!("{}{index}", found.map_or(plain, |(key, _)| key))
}

pub(super) fn put(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(table.insert(path.to_owned(), value)),
        Some((section, rest)) => {
            let inner = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

fn take(table: &mut Table, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => table.remove(path),
        Some((section, rest)) => take(table.get_mut(section)?.as_table_mut()?, rest),
    }
}
