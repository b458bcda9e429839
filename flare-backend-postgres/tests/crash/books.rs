//! What the server holds in the end: the orders, and every version of one that was ever committed, in whose transaction a
//! trigger wrote it down.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::Change;
use crate::process::Role;
use crate::support::connect;

/// The orders, the versions that no transaction draws twice, and the history.
pub(crate) const TABLES: &str = "CREATE SEQUENCE flare.versions; \
     CREATE TABLE flare.shop_orders (id bigint PRIMARY KEY, version bigint NOT NULL); \
     CREATE TABLE flare.shop_history \
         (id bigint NOT NULL, version bigint, removed boolean, PRIMARY KEY (version, removed)); \
     CREATE FUNCTION flare.shop_remembers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         INSERT INTO flare.shop_history VALUES \
             (coalesce(new.id, old.id), coalesce(new.version, old.version), tg_op = 'DELETE'); \
         RETURN NULL; \
     END $$; \
     CREATE TRIGGER remembers AFTER INSERT OR UPDATE OR DELETE ON flare.shop_orders \
         FOR EACH ROW EXECUTE FUNCTION flare.shop_remembers()";
/// A host that was killed may have committed without having heard of it: that one ends first.
const SETTLED: &str = "LOCK TABLE flare.shop_orders IN EXCLUSIVE MODE";
const DRAWN: &str = "SELECT last_value FROM flare.versions";

/// What was committed.
pub(crate) struct Books {
    /// The version of each order there is.
    pub(crate) orders: BTreeMap<i64, i64>,
    pub(crate) history: BTreeSet<Change>,
}

impl Books {
    /// As they are when no transaction of a host's is open.
    pub(crate) async fn read(role: &Role) -> Self {
        let of_schema = |sql: &str| sql.replace("flare.", &format!("{}.", role.schema));
        let mut server = connect(&role.uri).await;
        let reading = server.transaction().await.unwrap();
        reading.batch_execute(&of_schema(SETTLED)).await.unwrap();
        let orders = of_schema("SELECT id, version FROM flare.shop_orders");
        let orders = reading.query(&orders, &[]).await.unwrap();
        let history = of_schema("SELECT id, version, removed FROM flare.shop_history");
        let history = reading.query(&history, &[]).await.unwrap();
        let history = history.iter().map(|row| Change {
            id: row.get(0),
            version: row.get(1),
            removed: row.get(2),
        });
        Self {
            orders: orders.iter().map(|row| (row.get(0), row.get(1))).collect(),
            history: history.collect(),
        }
    }

    /// What a host was told is committed is there, and the table is what all of it makes.
    pub(crate) fn hold(&self, acknowledged: &BTreeSet<Change>) {
        let lost: Vec<&Change> = acknowledged.difference(&self.history).collect();
        assert!(lost.is_empty(), "{} acknowledged commits are lost: {lost:?}", lost.len());
        assert_eq!(self.orders, held(&self.history), "the table, and what its history makes");
    }

    /// Whether the client was told of all that was committed when these were read, or of what came later.
    pub(crate) fn are_known_from(&self, told: &[Change]) -> bool {
        let known = newest(told);
        newest(&self.history).values().all(|change| match known.get(&change.id) {
            Some(known) => known >= change || (known.removed && change.removed),
            // What was gone before the client heard of it there is nothing to tell of.
            None => change.removed,
        })
    }

    /// What the client was told was committed each time, and never older than what it was told before.
    pub(crate) fn agree_with(&self, told: &[Change]) {
        let mut newest: BTreeMap<i64, Change> = BTreeMap::new();
        for change in told {
            assert!(self.history.contains(change), "told, but never committed: {change:?}");
            let before = newest.insert(change.id, *change);
            assert!(before.is_none_or(|it| it <= *change), "told {change:?} after {before:?}");
        }
    }
}

/// What is there after these, in this order.
pub(crate) fn held<'a>(changes: impl IntoIterator<Item = &'a Change>) -> BTreeMap<i64, i64> {
    let there = newest(changes).into_values().filter(|change| !change.removed);
    there.map(|change| (change.id, change.version)).collect()
}

/// The last of each order.
fn newest<'a>(changes: impl IntoIterator<Item = &'a Change>) -> BTreeMap<i64, Change> {
    changes.into_iter().map(|change| (change.id, *change)).collect()
}

/// The newest version that any transaction has drawn.
pub(crate) async fn drawn(role: &Role) -> i64 {
    let sql = DRAWN.replace("flare.", &format!("{}.", role.schema));
    connect(&role.uri).await.query_one(&sql, &[]).await.unwrap().get(0)
}
