//! Takes which rows are not needed any more; removes them, and the names of documents that nobody has any more.

use std::collections::HashMap;

use flare_core::Result;
use flare_core::model::{RowKey, SubscriptionId, Version};
use flare_core::port::RowRemoval;
use uuid::Uuid;

use super::super::PostgresRepository;
use crate::codec::{id as uuid, limit};
use crate::connection::Value;
use crate::fault::Worked;

const SOME: &str = "WITH l AS (SELECT r.subscription, r.document FROM flare.rows r \
         JOIN flare.subscription_ids s ON s.n = r.subscription WHERE s.id = $1 \
         ORDER BY r.subscription, r.document LIMIT $2 FOR UPDATE OF r) \
     DELETE FROM flare.rows r USING l WHERE r.subscription = l.subscription AND r.document = l.document \
     RETURNING r.document";

/// Removes rows that have nothing left to tell up to a version; gives which of those asked for are there, and
/// which of them are gone now.
const SETTLED: &str = "WITH v AS MATERIALIZED (SELECT r.subscription, r.document, k.revision, k.gone, k.i \
         FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::smallint[]) WITH ORDINALITY \
             k(of, url, revision, gone, i) \
         JOIN flare.subscription_ids s ON s.id = k.of \
         JOIN flare.documents d ON d.hash = hashtextextended(k.url, 0) AND d.url = k.url \
         JOIN flare.rows r ON r.subscription = s.n AND r.document = d.n \
         ORDER BY r.subscription, r.document FOR UPDATE OF r), \
     gone AS (DELETE FROM flare.rows r USING v \
         WHERE r.subscription = v.subscription AND r.document = v.document AND NOT r.pending \
         AND r.dead IS NULL AND (r.wanted, r.state & 1) <= (v.revision, v.gone) \
         RETURNING r.subscription, r.document) \
     SELECT v.i, v.document, EXISTS (SELECT 1 FROM gone g WHERE g.subscription = v.subscription \
         AND g.document = v.document) FROM v";

impl PostgresRepository {
    /// Removes some of a subscription's rows, whatever their state; tells how many.
    pub(super) async fn remove_some_rows(
        &self,
        subscription: SubscriptionId,
        most: usize,
    ) -> Worked<u64> {
        const OPERATION: &str = "remove_rows";
        let values: [&dyn Value; 2] = [&uuid(subscription.as_bytes()), &limit(most)];
        let removed = self.database.all(OPERATION, SOME, &values).await?;
        let documents = removed.iter().map(|row| row.try_get(0));
        let documents = documents.collect::<std::result::Result<Vec<i64>, _>>()?;
        self.forget_names(OPERATION, &documents).await?;
        Ok(removed.len() as u64)
    }

    /// Removes rows that have nothing left to tell up to a version.
    pub(super) async fn remove_settled(
        &self,
        rows: &[(RowKey, Version)],
    ) -> Worked<Vec<Result<RowRemoval>>> {
        const OPERATION: &str = "remove_settled_rows";
        let (subscriptions, urls): (Vec<Uuid>, Vec<&str>) = rows
            .iter()
            .map(|(key, _)| (uuid(key.subscription.as_bytes()), key.url.as_str()))
            .unzip();
        let (revisions, gone): (Vec<i64>, Vec<i16>) = rows
            .iter()
            .map(|(_, version)| (version.revision().get(), i16::from(version.is_gone())))
            .unzip();
        let values: [&dyn Value; 4] = [&subscriptions, &urls, &revisions, &gone];
        let found = self.database.all(OPERATION, SETTLED, &values).await?;
        let (mut removals, mut documents) = (HashMap::with_capacity(found.len()), Vec::new());
        for row in &found {
            let (place, removed): (i64, bool) = (row.try_get(0)?, row.try_get(2)?);
            if removed {
                documents.push(row.try_get(1)?);
            }
            removals.insert(place, if removed { RowRemoval::Removed } else { RowRemoval::Kept });
        }
        self.forget_names(OPERATION, &documents).await?;
        let answer = |place: i64| Ok(removals.get(&place).copied().unwrap_or(RowRemoval::Missing));
        Ok((1..).take(rows.len()).map(answer).collect())
    }
}
