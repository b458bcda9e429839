//! Takes effects of lanes' owners; gives what became of each. One round trip if all take place,
//! one more to say why some did not.

use std::collections::HashMap;

use flare_core::model::{Applied, Epoch, Row, RowEffect, RowKey};
use flare_core::port::RowUpdate;
use flare_core::{Error, ErrorKind, Result};

use super::super::waves::{Wave, waves};
use super::super::{MongoRepository, RACES, lost_race};
use super::change;
use crate::BACKEND;
use crate::bulk::Updated;

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
        self.explain(epoch, missed, answers).await
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
