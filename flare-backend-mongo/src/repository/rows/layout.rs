//! Takes rows' records; gives rows.

use flare_core::Result;
use flare_core::model::{
    Claim, ClaimId, DeadLetter, DeadLetterId, DocumentKey, DocumentUrl, Epoch, Generation, Present,
    ResourceId, Round, Row, RowKey, Spread, SubscriptionId,
};
use mongodb::bson::{Bson, Document, doc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::record::{self, Record};

/// A row's id in the store. The order of the fields matters.
pub(super) fn id(key: &RowKey) -> Bson {
    id_of(key.subscription, &key.url)
}

pub(super) fn id_of(subscription: SubscriptionId, url: &DocumentUrl) -> Bson {
    doc! { "subscription": record::id(subscription.as_bytes()), "url": url.as_str() }.into()
}

pub(super) fn ids(keys: &[RowKey]) -> Vec<Bson> {
    keys.iter().map(id).collect()
}

/// A word of the model's (an action, a reason), as it is spelled everywhere.
pub(super) fn word(value: impl Serialize) -> Bson {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Bson::String(word),
        _ => Bson::Null,
    }
}

fn read_word<T: DeserializeOwned>(record: Record<'_>, field: &str) -> Result<T> {
    let word = serde_json::Value::String(record.text(field)?.to_owned());
    serde_json::from_value(word).map_err(|error| record.corrupt(field).with_source(error))
}

pub(super) fn read_key(record: Record<'_>) -> Result<RowKey> {
    let id = record.inner("_id")?;
    let url = DocumentUrl::parse(id.text("url")?).map_err(|_| record.corrupt("_id"))?;
    Ok(RowKey::new(SubscriptionId::from_bytes(id.id("subscription")?), url))
}

/// A record's id as it is, to do something to it whatever it looks like.
pub(super) fn raw_id(record: Record<'_>) -> Result<Bson> {
    record.any("_id").cloned().ok_or_else(|| record.corrupt("_id"))
}

pub(in crate::repository) fn read_row(record: Record<'_>) -> Result<Row> {
    let key = read_key(record)?;
    let spread = Spread::new(
        key.subscription,
        Generation::new(record.small("generation")?),
        DocumentKey::new(ResourceId::from_bytes(record.id("resource")?), key.url),
        record.version("wanted")?,
    );
    let mut row = Row::new(&spread, record.time("since")?);
    row.settled = record.version_if_any("settled")?;
    row.given_up = record.version_if_any("givenUp")?;
    row.dead = record.inner_if_any("dead")?.map(read_dead).transpose()?;
    row.present = read_word::<Present>(record, "present")?;
    row.attempts = record.small("attempts")?;
    row.attempted = record.version_if_any("attempted")?;
    row.due = record.time("due")?;
    row.first_failure = record.time_if_any("firstFailure")?;
    row.epoch = Epoch::new(record.small("epoch")?);
    row.round = read_round(record)?;
    row.not_before = record.time_if_any("notBefore")?;
    row.demanded = record.flag("demanded")?;
    row.claim = record.inner_if_any("claim")?.map(read_claim).transpose()?;
    Ok(row)
}

/// Which round a row is told in; records have none of the first one.
pub(super) fn read_round(record: Record<'_>) -> Result<Round> {
    match record.number_if_any("round")? {
        None => Ok(Round::ZERO),
        Some(_) => Ok(Round::new(record.small("round")?)),
    }
}

fn read_claim(record: Record<'_>) -> Result<Claim> {
    let (id, until) = (ClaimId::from_bytes(record.id("id")?), record.time("until")?);
    // A claim from before that was noted leaves it in doubt.
    let held = match record.text_if_any("held")? {
        None => Present::Maybe,
        Some(_) => read_word(record, "held")?,
    };
    Ok(Claim { id, until, held })
}

fn read_dead(record: Record<'_>) -> Result<DeadLetter> {
    let mut dead = DeadLetter::new(
        DeadLetterId::from_bytes(record.id("id")?),
        read_word(record, "action")?,
        read_word(record, "reason")?,
        record.time("diedAt")?,
    );
    dead.attempts = record.small("attempts")?;
    dead.last_status = match record.number_if_any("lastStatus")? {
        None => None,
        Some(_) => Some(record.small("lastStatus")?),
    };
    dead.last_error = record.text_if_any("lastError")?.map(str::to_owned);
    dead.first_failure_at = record.time("firstFailureAt")?;
    Ok(dead)
}

pub(super) fn write_dead(dead: &DeadLetter) -> Document {
    let mut record = doc! {
        "id": record::id(dead.id.as_bytes()),
        "action": word(dead.action),
        "reason": word(dead.reason),
        "attempts": i64::from(dead.attempts),
        "firstFailureAt": record::time(dead.first_failure_at),
        "diedAt": record::time(dead.died_at),
    };
    if let Some(status) = dead.last_status {
        record.insert("lastStatus", i64::from(status));
    }
    if let Some(error) = &dead.last_error {
        record.insert("lastError", error);
    }
    record
}
