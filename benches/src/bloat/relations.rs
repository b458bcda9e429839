//! Takes a schema; gives what each of its tables and indexes takes on disk, and what it takes rewritten.

use std::collections::HashMap;
use std::fmt;

use tokio_postgres::Client;

use crate::Result;

/// The schema that is measured.
pub(super) struct Relations<'a> {
    pub(super) client: &'a Client,
    pub(super) schema: &'a str,
}

/// A table or an index.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Relation {
    /// Its name, and that of its table if it is an index.
    pub(super) name: String,
    /// Bytes of it after the deliveries.
    pub(super) size: u64,
    /// Bytes of the same once it is rewritten.
    pub(super) rewritten: u64,
    /// What the server counted of a table.
    pub(super) updates: Option<Updates>,
}

/// How a table changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Updates {
    /// Rows that were updated.
    pub(super) all: u64,
    /// Those of them that touched no index.
    pub(super) hot: u64,
    /// How often the server made room by itself.
    pub(super) vacuums: u64,
}

impl Relation {
    /// How many times as much as rewritten. What is empty then counts as a page.
    pub(super) fn times(&self) -> f64 {
        const PAGE: u64 = 8192;
        self.size as f64 / self.rewritten.max(PAGE) as f64
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, size, rewritten, updates } = self;
        write!(f, "{name:<34} {:>10} {:>10} {:>6.2}", size >> 10, rewritten >> 10, self.times())?;
        match updates {
            Some(Updates { all, vacuums, .. }) if *all == 0 => {
                write!(f, " {all:>10} {:>6} {vacuums:>8}", "-")
            }
            Some(Updates { all, hot, vacuums }) => {
                let share = *hot as f64 * 100.0 / *all as f64;
                write!(f, " {all:>10} {share:>5.0}% {vacuums:>8}")
            }
            None => write!(f, " {:>10} {:>6} {:>8}", "", "", ""),
        }
    }
}

impl Relations<'_> {
    /// What all of them take, in bytes.
    pub(super) async fn bytes(&self) -> Result<u64> {
        Ok(self.sizes().await?.into_iter().map(|(_, _, size)| size).sum())
    }

    /// What each takes now, and rewritten, which they are afterwards; largest first.
    pub(super) async fn rewritten(&self) -> Result<Vec<Relation>> {
        let (sizes, updates) = (self.sizes().await?, self.updates().await?);
        for table in self.tables().await? {
            // Makes its indexes anew, too.
            self.client.batch_execute(&format!("VACUUM FULL {}.{table}", self.schema)).await?;
        }
        let rewritten = self.sizes().await?;
        let rewritten: HashMap<u32, u64> =
            rewritten.into_iter().map(|(oid, _, size)| (oid, size)).collect();
        let mut found: Vec<Relation> = sizes
            .into_iter()
            .map(|(oid, name, size)| Relation {
                name,
                size,
                rewritten: rewritten.get(&oid).copied().unwrap_or_default(),
                updates: updates.get(&oid).copied(),
            })
            .collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.size));
        Ok(found)
    }

    /// Each by its number with its name and size; a table with what is kept apart of large values.
    async fn sizes(&self) -> Result<Vec<(u32, String, u64)>> {
        const SIZES: &str = "SELECT c.oid, CASE WHEN i.indrelid IS NULL THEN c.relname::text \
                 ELSE c.relname || ' on ' || (SELECT t.relname FROM pg_class t WHERE t.oid = i.indrelid) END, \
             pg_relation_size(c.oid) + coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0) \
             FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid \
             WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'i')";
        let rows = self.client.query(SIZES, &[&self.schema]).await?;
        let read = |row: &tokio_postgres::Row| {
            (row.get(0), row.get(1), row.get::<_, i64>(2).unsigned_abs())
        };
        Ok(rows.iter().map(read).collect())
    }

    async fn updates(&self) -> Result<HashMap<u32, Updates>> {
        const UPDATES: &str = "SELECT relid, n_tup_upd, n_tup_hot_upd, autovacuum_count \
             FROM pg_stat_user_tables WHERE schemaname = $1";
        let rows = self.client.query(UPDATES, &[&self.schema]).await?;
        let read = |row: &tokio_postgres::Row| {
            let count = |column: usize| row.get::<_, i64>(column).unsigned_abs();
            (row.get(0), Updates { all: count(1), hot: count(2), vacuums: count(3) })
        };
        Ok(rows.iter().map(read).collect())
    }

    async fn tables(&self) -> Result<Vec<String>> {
        const TABLES: &str = "SELECT tablename::text FROM pg_tables WHERE schemaname = $1";
        let rows = self.client.query(TABLES, &[&self.schema]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_is_shown_with_what_became_of_it() {
        let updates = Some(Updates { all: 200, hot: 150, vacuums: 3 });
        let name = "rows".to_owned();
        let rows = Relation { name, size: 3 << 20, rewritten: 2 << 20, updates };
        let words = ["rows", "3072", "2048", "1.50", "200", "75%", "3"];
        assert_eq!(rows.to_string().split_whitespace().collect::<Vec<_>>(), words);
        let index = Relation { updates: None, ..rows };
        assert_eq!(index.to_string().split_whitespace().collect::<Vec<_>>(), words[..4]);
    }
}
