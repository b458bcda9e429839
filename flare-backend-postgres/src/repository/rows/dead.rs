//! Takes what is asked of dead letters; lists them, finds them by id, and drops their details once they are
//! old.

use flare_core::model::{DeadLetterId, Row, SubscriptionId, Timestamp};
use flare_core::port::{Listing, Page};
use uuid::Uuid;

use super::super::PostgresRepository;
use super::found::{FoundRow, WIDTH, columns, named};
use crate::codec::{counted, id as uuid, limit, offset, time};
use crate::connection::Value;
use crate::fault::Worked;

impl PostgresRepository {
    /// A page of a subscription's dead letters, oldest death first.
    pub(super) async fn page_of_dead(
        &self,
        subscription: SubscriptionId,
        page: Page,
    ) -> Worked<Listing<Row>> {
        const OPERATION: &str = "dead_letters";
        const COUNT: &str = "SELECT count(*) FROM flare.rows r JOIN flare.subscription_ids s \
             ON s.n = r.subscription WHERE s.id = $1 AND r.dead IS NOT NULL";
        const LIST: &str = concat!(
            "SELECT ",
            columns!(),
            " FROM flare.rows r",
            named!(),
            "WHERE s.id = $1 AND r.dead IS NOT NULL ORDER BY r.died, r.dead_id LIMIT $2 OFFSET $3"
        );
        let subscription = uuid(subscription.as_bytes());
        let (most, skipped) = (i64::from(page.limit), offset(page.offset));
        let mut session = self.database.session(OPERATION).await?;
        let (count, rows) = session
            .both((COUNT, &[&subscription]), (LIST, &[&subscription, &most, &skipped]))
            .await?;
        let found = rows.iter().map(FoundRow::of).collect::<std::result::Result<Vec<_>, _>>()?;
        let read = found.iter().map(|found| found.row(OPERATION));
        Ok(Listing::of_read(read, counted(count.first())?)?)
    }

    /// The dead letters with these ids, one answer each.
    pub(super) async fn find_dead(
        &self,
        subscription: SubscriptionId,
        ids: &[DeadLetterId],
    ) -> Worked<Vec<Option<Row>>> {
        const OPERATION: &str = "find_dead_letters";
        const SQL: &str = concat!(
            "SELECT ",
            columns!(),
            ", k.i FROM unnest($2::uuid[]) WITH ORDINALITY k(id, i) \
             JOIN flare.rows r ON r.dead_id = k.id",
            named!(),
            "WHERE s.id = $1"
        );
        let asked: Vec<Uuid> = ids.iter().map(|id| uuid(id.as_bytes())).collect();
        let values: [&dyn Value; 2] = [&uuid(subscription.as_bytes()), &asked];
        let mut found = vec![None; ids.len()];
        for row in &self.database.all(OPERATION, SQL, &values).await? {
            let place: i64 = row.try_get(WIDTH)?;
            let read = FoundRow::of(row)?.row(OPERATION)?;
            if let Some(place) = usize::try_from(place - 1).ok().and_then(|at| found.get_mut(at)) {
                *place = Some(read);
            }
        }
        Ok(found)
    }

    /// Drops the details of rows that died by a time; tells how many.
    pub(super) async fn drop_details(&self, until: Timestamp, most: usize) -> Worked<u64> {
        const SQL: &str = "WITH l AS (SELECT r.subscription, r.document FROM flare.rows r \
                 JOIN (SELECT subscription, document FROM flare.rows WHERE dead IS NOT NULL AND died <= $1 \
                     ORDER BY died LIMIT $2) old USING (subscription, document) \
                 WHERE r.dead IS NOT NULL AND r.died <= $1 \
                 ORDER BY r.subscription, r.document FOR NO KEY UPDATE OF r) \
             UPDATE flare.rows r SET dead = NULL, dead_id = NULL, died = NULL FROM l \
             WHERE r.subscription = l.subscription AND r.document = l.document RETURNING 1";
        let values: [&dyn Value; 2] = [&time(until), &limit(most)];
        Ok(self.database.all("drop_dead_letters", SQL, &values).await?.len() as u64)
    }
}
