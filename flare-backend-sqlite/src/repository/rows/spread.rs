//! Takes which rows want which versions, within the writer's transaction; makes or raises them, as
//! `Row::spread` says.

use flare_core::model::{DocumentKey, RecordName, Spread};
use rusqlite::{CachedStatement, params};

use super::change::RowChanges;
use crate::codec::row::{self, INSERT, RESTART, RowPlace};
use crate::codec::{self, unreadable_record};
use crate::engine::Tx;
use crate::fault::Worked;

const OPERATION: &str = "spread_rows";

/// Spreads each; all or an error.
pub(super) fn spread(tx: &mut Tx<'_>, spreads: &[Spread]) -> Worked<()> {
    let mut statements = Statements {
        changes: RowChanges::prepare(tx)?,
        restart: tx.sql(RESTART)?,
        insert: tx.sql(INSERT)?,
    };
    // Neighbours are mostly of the same document.
    let mut last: Option<(&DocumentKey, i64, i64)> = None;
    for spread in spreads {
        // Where none is to be made, nothing gets a number for it.
        if !spread.makes_row() && !statements.is_there(tx, spread)? {
            continue;
        }
        let (resource, document) = match last {
            Some((key, resource, document)) if *key == spread.document => (resource, document),
            _ => {
                let resource = tx.resource_or_new(spread.document.resource)?;
                (resource, document_or_new(tx, resource, &spread.document)?)
            }
        };
        last = Some((&spread.document, resource, document));
        statements.spread(tx, spread, resource, document)?;
    }
    Ok(())
}

/// The number of a document. One that is not there gets one too: rows name it.
fn document_or_new(tx: &mut Tx<'_>, resource: i64, key: &DocumentKey) -> rusqlite::Result<i64> {
    if let Some(n) = tx.document(resource, &key.url)? {
        return Ok(n);
    }
    let mut name = tx.sql(
        "INSERT INTO documents (resource, hash, url, gone, updated, undispatched, dispatched_gone) \
         VALUES (?1, ?2, ?3, 2, 0, 0, 0)",
    )?;
    name.execute(params![resource, codec::hash(&key.url), key.url.as_str()])?;
    let n = tx.connection.last_insert_rowid();
    tx.remember_document(resource, &key.url, n);
    Ok(n)
}

struct Statements<'a> {
    changes: RowChanges<'a>,
    restart: CachedStatement<'a>,
    insert: CachedStatement<'a>,
}

impl Statements<'_> {
    fn is_there(&mut self, tx: &mut Tx<'_>, spread: &Spread) -> rusqlite::Result<bool> {
        let finder = &mut self.changes.finder;
        Ok(finder.find(tx, spread.subscription, &spread.document.url)?.is_some())
    }

    fn spread(
        &mut self,
        tx: &mut Tx<'_>,
        spread: &Spread,
        resource: i64,
        document: i64,
    ) -> Worked<()> {
        let of = tx.subscriber_of(spread.subscription, resource)?;
        let (n, lone) = (of.n, of.resources.len() == 1);
        let place = RowPlace { subscription: n, document };
        // Mostly everything up to now is settled.
        if row::restart(&mut self.restart, place, spread, tx.now)? {
            return Ok(());
        }
        let stored = self.changes.finder.at(place)?;
        let mut stored = stored.map(|stored| (place, spread.document.clone(), stored));
        if stored.is_none() && !lone {
            // A key names no resource: another one's row of the same URL is this row.
            let finder = &mut self.changes.finder;
            let found = finder.find(tx, spread.subscription, &spread.document.url)?;
            stored = found.map(|found| (found.place, found.document, found.stored));
        }
        let Some((place, document, stored)) = stored else {
            return Ok(row::insert(&mut self.insert, place, spread, tx.now)?);
        };
        // Whatever a newer version needs to know of the row, what it wants is known here.
        let before = stored.known(spread.subscription, &document).map_err(|why| {
            let name = RecordName::Row(row::key(spread.subscription, &document));
            unreadable_record(OPERATION, name, why)
        })?;
        let mut after = before.clone();
        after.spread(spread, tx.now);
        self.changes.store(tx, OPERATION, place, &before, &after)
    }
}
