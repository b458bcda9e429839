//! Takes effects of lanes' owners; gives what became of each. Settlements of many rows are one statement that
//! says how many took place. One round trip if all did, one more to say which did not and why.

use std::collections::{HashMap, HashSet};

use flare_core::model::{Applied, Epoch, Row, RowEffect, RowKey};
use flare_core::port::RowUpdate;
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::doc;
use mongodb::bson::oid::ObjectId;

use super::super::waves::{Wave, waves};
use super::super::{MongoRepository, RACES, lost_race};
use super::change::{self, MARK};
use super::layout::{id, ids, read_key};
use crate::BACKEND;
use crate::bulk::Updated;
use crate::many::Many;

const OPERATION: &str = "apply_rows";

impl MongoRepository {
    pub(super) async fn apply(
        &self,
        epoch: Epoch,
        updates: Vec<RowUpdate>,
    ) -> Vec<Result<Applied>> {
        let mut answers: Vec<Option<Result<Applied>>> = vec![None; updates.len()];
        for mut wave in waves(updates, |update| update.key.clone()) {
            for _ in 0..RACES {
                if wave.is_empty() {
                    break;
                }
                wave = self.apply_wave(epoch, wave, &mut answers).await;
            }
            for (place, _) in wave {
                answers[place] = Some(Err(lost_race(OPERATION)));
            }
        }
        let unanswered = || Err(Error::new(ErrorKind::Internal, OPERATION).with_backend(BACKEND));
        answers.into_iter().map(|answer| answer.unwrap_or_else(unanswered)).collect()
    }

    /// Effects on rows that all differ; gives back those that would take place by now.
    async fn apply_wave(
        &self,
        epoch: Epoch,
        wave: Wave<RowUpdate>,
        answers: &mut [Option<Result<Applied>>],
    ) -> Wave<RowUpdate> {
        let (mut settles, mut others): (Wave<_>, Wave<_>) =
            wave.into_iter().partition(|(_, it)| matches!(it.effect, RowEffect::Settle { .. }));
        if settles.len() == 1 {
            others.append(&mut settles);
        }
        let mut missed = self.settle_together(epoch, settles, answers).await;
        missed.extend(self.apply_each(epoch, others, answers).await);
        self.explain(epoch, missed, answers).await
    }

    /// Settlements in one statement; gives back those that did not take place.
    async fn settle_together(
        &self,
        epoch: Epoch,
        settles: Wave<RowUpdate>,
        answers: &mut [Option<Result<Applied>>],
    ) -> Wave<RowUpdate> {
        if settles.is_empty() {
            return settles;
        }
        let mark = ObjectId::new();
        let settled = match self.settle_many(epoch, &settles, mark).await {
            Ok(settled) => settled,
            Err(error) => {
                for (place, _) in settles {
                    answers[place] = Some(Err(error.clone()));
                }
                return Vec::new();
            }
        };
        let mut missed = Vec::new();
        for (place, update) in settles {
            match settled.has(&update.key) {
                true => answers[place] = Some(Ok(Applied::Done)),
                false => missed.push((place, update)),
            }
        }
        missed
    }

    async fn settle_many(
        &self,
        epoch: Epoch,
        settles: &[(usize, RowUpdate)],
        mark: ObjectId,
    ) -> Result<Settled> {
        let rows = &self.stored.rows;
        let mut many = Many::default();
        for (_, update) in settles {
            if let Some(item) = change::settle_item(update) {
                many.add(id(&update.key), item);
            }
        }
        let stages = change::settle_many(epoch, mark);
        let settled = self.connection.update_many(OPERATION, rows, &many, stages).await?.modified;
        if settled == many.len() {
            return Ok(Settled::All);
        }
        if settled == 0 {
            return Ok(Settled::Some(HashSet::new()));
        }
        let keys: Vec<RowKey> = settles.iter().map(|(_, update)| update.key.clone()).collect();
        let marked = rows.find(doc! { "_id": { "$in": ids(&keys) }, MARK: mark });
        let marked = marked.projection(doc! { "_id": 1 });
        let marked = self.connection.all(OPERATION, marked, read_key).await?;
        Ok(Settled::Some(marked.into_iter().collect()))
    }

    /// Effects one by one; gives back those that did not take place.
    async fn apply_each(
        &self,
        epoch: Epoch,
        wave: Wave<RowUpdate>,
        answers: &mut [Option<Result<Applied>>],
    ) -> Wave<RowUpdate> {
        let updates = wave.iter().map(|(_, update)| change::effect(epoch, update)).collect();
        let rows = &self.stored.rows;
        let updated = self.connection.update_each(OPERATION, rows, updates).await;
        let mut missed: Wave<RowUpdate> = Vec::new();
        for ((place, update), updated) in wave.into_iter().zip(updated) {
            match updated {
                Ok(Updated::Missed) => missed.push((place, update)),
                Ok(_) => answers[place] = Some(Ok(Applied::Done)),
                Err(error) => answers[place] = Some(Err(error)),
            }
        }
        missed
    }

    /// Says why effects did not take place, by the rows as they are.
    async fn explain(
        &self,
        epoch: Epoch,
        missed: Wave<RowUpdate>,
        answers: &mut [Option<Result<Applied>>],
    ) -> Wave<RowUpdate> {
        if missed.is_empty() {
            return missed;
        }
        let keys: Vec<RowKey> = missed.iter().map(|(_, update)| update.key.clone()).collect();
        let rows: HashMap<RowKey, Result<Row>> = match self.rows_by_id(OPERATION, &keys).await {
            Ok(rows) => rows,
            Err(error) => {
                for (place, _) in missed {
                    answers[place] = Some(Err(error.clone()));
                }
                return Vec::new();
            }
        };
        let mut again = Vec::new();
        for (place, update) in missed {
            let row = match rows.get(&update.key) {
                Some(Err(error)) => {
                    answers[place] = Some(Err(error.clone()));
                    continue;
                }
                Some(Ok(row)) => Some(row),
                None => None,
            };
            match why_not(epoch, row, &update) {
                Some(why) => answers[place] = Some(Ok(why)),
                // The row has changed since, so that it would take place now.
                None => again.push((place, update)),
            }
        }
        again
    }
}

/// Which of the rows that were to be settled were.
enum Settled {
    All,
    Some(HashSet<RowKey>),
}

impl Settled {
    fn has(&self, key: &RowKey) -> bool {
        match self {
            Self::All => true,
            Self::Some(keys) => keys.contains(key),
        }
    }
}

fn why_not(epoch: Epoch, row: Option<&Row>, update: &RowUpdate) -> Option<Applied> {
    let RowUpdate { round, effect, .. } = update;
    let Some(row) = row else { return Some(Applied::Missing) };
    let version = Some(effect.version());
    let given_up_later = matches!(effect, RowEffect::GiveUp { .. }) && row.given_up > version;
    if row.epoch > epoch {
        Some(Applied::Fenced { epoch: row.epoch })
    } else {
        let overtaken = row.round != *round || row.settled >= version || given_up_later;
        overtaken.then_some(Applied::Overtaken)
    }
}
