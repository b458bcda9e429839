//! Takes which rows want which versions; makes or raises them, as `Row::spread` says. Changes, which is nearly
//! all there is, are one statement; what begins a new round is locked, changed and stored.

use std::collections::{HashMap, HashSet};

use flare_core::Result;
use flare_core::model::{RowKey, Spread, SpreadCause};
use uuid::Uuid;

use super::super::PostgresRepository;
use super::found::FoundRow;
use crate::codec::{count, id as uuid};
use crate::connection::Value;
use crate::fault::Worked;

const OPERATION: &str = "spread_rows";

/// What `Row::spread` does because of a change to a row `r` that is there, where `excluded` is the row as
/// `Row::new` makes it.
macro_rules! raise {
    () => {
        " ON CONFLICT ON CONSTRAINT rows_key DO UPDATE SET \
             generation = greatest(r.generation, excluded.generation), \
             wanted = greatest(r.wanted, excluded.wanted), \
             (state, pending, since, due, attempts, attempted, first_failure, demanded) = (SELECT \
                 CASE WHEN (excluded.wanted, excluded.state) <= (r.wanted, r.state & 1) THEN r.state \
                     WHEN fresh THEN (r.state & ~9) | excluded.state \
                     ELSE (r.state & ~1) | excluded.state END, \
                 r.pending OR fresh, \
                 CASE WHEN fresh THEN excluded.since ELSE r.since END, \
                 CASE WHEN fresh THEN greatest(excluded.due, r.not_before, r.claim_until) ELSE r.due END, \
                 CASE WHEN fresh THEN 0 ELSE r.attempts END, \
                 CASE WHEN NOT fresh THEN r.attempted END, \
                 CASE WHEN NOT fresh THEN r.first_failure END, \
                 r.demanded AND NOT fresh \
                 FROM (SELECT NOT r.pending \
                     AND (excluded.wanted, excluded.state) > (r.wanted, r.state & 1) \
                     AND (r.settled IS NULL \
                         OR (excluded.wanted, excluded.state) > (r.settled, (r.state >> 1) & 1)) \
                     AND (r.given_up IS NULL \
                         OR (excluded.wanted, excluded.state) > (r.given_up, (r.state >> 2) & 1)) AS fresh) f)"
    };
}
pub(super) use raise;

/// The columns of a row as `Row::new` makes it; `now` is the store's time.
macro_rules! made {
    () => {
        "(subscription, document, bucket, pending, state, wanted, due, since, generation, epoch, attempts, \
         round, demanded)"
    };
}
pub(super) use made;

/// Spreads changes; tells how many of them name a document and a subscription that have numbers. Documents
/// are kept from being forgotten meanwhile, and locked in the order of those that forget them.
const CHANGE: &str = concat!(
    "WITH v AS MATERIALIZED (SELECT s.n AS subscription, d.n AS document, k.*, t.now \
         FROM (SELECT flare.now() AS now) t CROSS JOIN unnest($1::uuid[], $2::uuid[], $3::text[], \
             $4::integer[], $5::smallint[], $6::bigint[], $7::bigint[]) \
             k(to_whom, resource, url, bucket, gone, wanted, generation) \
         JOIN flare.subscription_ids s ON s.id = k.to_whom \
         JOIN flare.resource_ids i ON i.id = k.resource \
         JOIN flare.documents d ON d.resource = i.n AND d.hash = hashtextextended(k.url, 0) AND d.url = k.url \
         ORDER BY d.n FOR KEY SHARE OF d), \
     spread AS (INSERT INTO flare.rows AS r ",
    made!(),
    " SELECT subscription, document, bucket, true, gone, wanted, now, now, generation, 0, 0, 0, false FROM v \
         ORDER BY subscription, document",
    raise!(),
    ") SELECT count(*) FROM v"
);

const NUMBER_SUBSCRIPTIONS: &str = "INSERT INTO flare.subscription_ids (id) \
     SELECT DISTINCT id FROM unnest($1::uuid[]) k(id) \
     WHERE NOT EXISTS (SELECT 1 FROM flare.subscription_ids s WHERE s.id = k.id) ORDER BY id \
     ON CONFLICT DO NOTHING";

const NUMBER_RESOURCES: &str = "INSERT INTO flare.resource_ids (id) \
     SELECT DISTINCT id FROM unnest($1::uuid[]) k(id) \
     WHERE NOT EXISTS (SELECT 1 FROM flare.resource_ids r WHERE r.id = k.id) ORDER BY id \
     ON CONFLICT DO NOTHING";

/// Names documents that are not there.
const NAME: &str = "INSERT INTO flare.documents (resource, hash, url, gone, updated, undispatched, dispatched_gone) \
     SELECT DISTINCT i.n, hashtextextended(k.url, 0), k.url, 2, 0, false, 0 FROM unnest($1::uuid[], $2::text[]) k(resource, url) \
     JOIN flare.resource_ids i ON i.id = k.resource \
     WHERE NOT EXISTS (SELECT 1 FROM flare.documents d WHERE d.resource = i.n \
         AND d.hash = hashtextextended(k.url, 0) AND d.url = k.url) \
     ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING";

/// A new row for each that has none, as `Row::new` makes it.
const MAKE: &str = concat!(
    "WITH v AS MATERIALIZED (SELECT s.n AS subscription, d.n AS document, k.*, t.now \
         FROM (SELECT flare.now() AS now) t CROSS JOIN unnest($1::uuid[], $2::uuid[], $3::text[], \
             $4::integer[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bigint[]) \
             k(to_whom, resource, url, bucket, gone, wanted, generation, round) \
         JOIN flare.subscription_ids s ON s.id = k.to_whom \
         JOIN flare.resource_ids i ON i.id = k.resource \
         JOIN flare.documents d ON d.resource = i.n AND d.hash = hashtextextended(k.url, 0) AND d.url = k.url \
         ORDER BY d.n FOR KEY SHARE OF d) \
     INSERT INTO flare.rows ",
    made!(),
    " SELECT subscription, document, bucket, true, gone, wanted, now, now, generation, 0, 0, round, false \
         FROM v ORDER BY subscription, document ON CONFLICT DO NOTHING"
);

/// Spreads, column by column.
#[derive(Default)]
struct Columns<'a> {
    subscription: Vec<Uuid>,
    resource: Vec<Uuid>,
    url: Vec<&'a str>,
    bucket: Vec<i32>,
    gone: Vec<i16>,
    wanted: Vec<i64>,
    generation: Vec<i64>,
    round: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn of(spreads: &[&'a Spread]) -> Self {
        let mut columns = Self::default();
        for spread in spreads {
            columns.subscription.push(uuid(spread.subscription.as_bytes()));
            columns.resource.push(uuid(spread.document.resource.as_bytes()));
            columns.url.push(spread.document.url.as_str());
            columns.bucket.push(spread.document.url.bucket().number().into());
            columns.gone.push(spread.wanted.is_gone().into());
            columns.wanted.push(spread.wanted.revision().get());
            columns.generation.push(count(spread.generation.get()));
            columns.round.push(count(spread.round().get()));
        }
        columns
    }
}

impl PostgresRepository {
    /// Spreads each; all or an error.
    pub(super) async fn spread_each(&self, spreads: &[Spread]) -> Result<()> {
        for wave in waves(spreads) {
            let (changes, others): (Vec<&Spread>, Vec<&Spread>) =
                wave.into_iter().partition(|spread| spread.cause == SpreadCause::Change);
            if !changes.is_empty() {
                self.database.attempts(OPERATION, || self.spread_changes(&changes)).await?;
            }
            if !others.is_empty() {
                self.database.attempts(OPERATION, || self.spread_others(&others)).await?;
            }
        }
        Ok(())
    }

    async fn spread_changes(&self, spreads: &[&Spread]) -> Worked<()> {
        let columns = Columns::of(spreads);
        let values: [&dyn Value; 7] = [
            &columns.subscription,
            &columns.resource,
            &columns.url,
            &columns.bucket,
            &columns.gone,
            &columns.wanted,
            &columns.generation,
        ];
        loop {
            let done = self.database.one(OPERATION, CHANGE, &values).await?;
            if crate::codec::counted(done.as_ref())? >= spreads.len() as u64 {
                return Ok(());
            }
            self.number(&columns).await?;
        }
    }

    /// Makes rows where there are none and some are to be made, then does to all what is left to do: of what
    /// was just made that is nothing.
    async fn spread_others(&self, spreads: &[&Spread]) -> Worked<()> {
        let making: Vec<&Spread> = spreads.iter().copied().filter(|it| it.makes_row()).collect();
        if !making.is_empty() {
            let columns = Columns::of(&making);
            self.number(&columns).await?;
            let values: [&dyn Value; 8] = [
                &columns.subscription,
                &columns.resource,
                &columns.url,
                &columns.bucket,
                &columns.gone,
                &columns.wanted,
                &columns.generation,
                &columns.round,
            ];
            self.database.all(OPERATION, MAKE, &values).await?;
        }
        let key = |spread: &&Spread| RowKey::new(spread.subscription, spread.document.url.clone());
        let keys: Vec<RowKey> = spreads.iter().map(key).collect();
        // Whatever a newer version needs to know of the row, what it wants is known here.
        let spread =
            self.change_rows(OPERATION, keys.iter(), FoundRow::known, |place, row, now| {
                row.spread(spreads[place], now);
            });
        spread.await?.into_iter().try_for_each(|done| done.map(|_| ()))?;
        Ok(())
    }

    /// Numbers whatever has none yet.
    async fn number(&self, columns: &Columns<'_>) -> Worked<()> {
        let mut session = self.database.session(OPERATION).await?;
        session.query(NUMBER_SUBSCRIPTIONS, &[&columns.subscription]).await?;
        session.query(NUMBER_RESOURCES, &[&columns.resource]).await?;
        session.query(NAME, &[&columns.resource, &columns.url]).await?;
        Ok(())
    }
}

/// Spreads of which none is of the same row as another: the first of every row, then the second, and so on.
fn waves(spreads: &[Spread]) -> Vec<Vec<&Spread>> {
    let mut waves: Vec<Vec<&Spread>> = Vec::new();
    let mut seen: HashMap<(_, &str), usize> = HashMap::with_capacity(spreads.len());
    for spread in spreads {
        let row = (spread.subscription, spread.document.url.as_str());
        let wave = seen.entry(row).and_modify(|wave| *wave += 1).or_insert(0);
        if waves.len() <= *wave {
            waves.push(Vec::new());
        }
        waves[*wave].push(spread);
    }
    debug_assert!(waves.iter().all(|wave| {
        let rows: HashSet<_> =
            wave.iter().map(|it| (it.subscription, it.document.url.as_str())).collect();
        rows.len() == wave.len()
    }));
    waves
}
