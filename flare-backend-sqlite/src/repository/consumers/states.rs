//! Takes what consumers' owners know; keeps it, fenced, for as long as the consumer is there.

use flare_core::model::{Applied, ConsumerId, ConsumerState, Epoch, RecordName};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::number;
use crate::codec::consumer::{read_state, state as state_record};
use crate::codec::{count, read_epoch, unreadable_record};
use crate::engine::{Reader, Tx};
use crate::fault::Worked;

/// What is read of a record; [`StoredState::of`] takes it from these columns.
const COLUMNS: &str = "epoch, state, needs";

/// A record as it is.
struct StoredState {
    epoch: i64,
    state: String,
    needs: Option<i64>,
}

impl StoredState {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { epoch: row.get(0)?, state: row.get(1)?, needs: row.get(2)? })
    }

    fn find(connection: &Connection, consumer: i64) -> rusqlite::Result<Option<Self>> {
        let sql = format!("SELECT {COLUMNS} FROM consumer_states WHERE consumer = ?1");
        let mut find = connection.prepare_cached(&sql)?;
        find.query_row([consumer], Self::of).optional()
    }

    /// The epoch, or the error that names the consumer.
    fn epoch(&self, operation: &'static str, id: ConsumerId) -> flare_core::Result<Epoch> {
        read_epoch(self.epoch)
            .map_err(|why| unreadable_record(operation, RecordName::Consumer(id), why))
    }

    fn is_beyond(&self, epoch: Epoch) -> bool {
        self.epoch > count(epoch.get())
    }
}

/// Stores a state, as its record says it, unless a greater epoch has written one.
pub(super) fn store(tx: &mut Tx<'_>, epoch: Epoch, id: ConsumerId, state: &str) -> Worked<Applied> {
    let Some(n) = number(tx.connection, id)? else { return Ok(Applied::Missing) };
    let stored = StoredState::find(tx.connection, n)?;
    if let Some(stored) = stored.filter(|stored| stored.is_beyond(epoch)) {
        return Ok(Applied::Fenced { epoch: stored.epoch("store_consumer_state", id)? });
    }
    keep(tx, n, epoch, state)?;
    Ok(Applied::Done)
}

/// Gives what is stored and fences who stored it, unless a greater epoch has written it.
pub(super) fn claim(
    tx: &mut Tx<'_>,
    epoch: Epoch,
    id: ConsumerId,
) -> Worked<Option<ConsumerState>> {
    const OPERATION: &str = "claim_consumer_state";
    let Some(n) = number(tx.connection, id)? else { return Ok(None) };
    let Some(stored) = StoredState::find(tx.connection, n)? else {
        let none = ConsumerState::default();
        keep(tx, n, epoch, &state_record(OPERATION, &none)?)?;
        return Ok(Some(none));
    };
    if stored.is_beyond(epoch) {
        return Ok(None);
    }
    let state = read_state(OPERATION, id, &stored.state, stored.needs)?;
    // The text stays as it is, with what a newer version may have put there.
    let mut fence = tx.sql("UPDATE consumer_states SET epoch = ?2 WHERE consumer = ?1")?;
    fence.execute([n, count(epoch.get())])?;
    Ok(Some(state))
}

/// What was stored last of each consumer that has a state.
pub(super) fn of(
    reader: &Reader<'_>,
    ids: &[ConsumerId],
) -> Worked<Vec<(ConsumerId, Epoch, ConsumerState)>> {
    const OPERATION: &str = "consumer_states";
    let mut states = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(n) = number(reader.connection, *id)? else { continue };
        let Some(stored) = StoredState::find(reader.connection, n)? else { continue };
        let state = read_state(OPERATION, *id, &stored.state, stored.needs)?;
        states.push((*id, stored.epoch(OPERATION, *id)?, state));
    }
    Ok(states)
}

fn keep(tx: &Tx<'_>, consumer: i64, epoch: Epoch, state: &str) -> rusqlite::Result<()> {
    let mut keep = tx.sql(
        "INSERT INTO consumer_states (consumer, epoch, state) VALUES (?1, ?2, ?3) \
         ON CONFLICT (consumer) \
         DO UPDATE SET epoch = excluded.epoch, state = excluded.state, needs = NULL",
    )?;
    keep.execute(params![consumer, count(epoch.get()), state])?;
    Ok(())
}
