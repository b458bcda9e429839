//! Takes spreads; gives rows that want their versions. Of changes to rows that are there that is one statement
//! for all; rows that are not there are made in one more.

use std::collections::{HashMap, HashSet};

use flare_core::Result;
use flare_core::model::{RowKey, Spread, SpreadCause};
use mongodb::bson::doc;

use super::super::{MongoRepository, RACES, lost_race};
use super::change;
use super::layout::{id, ids, read_key};
use crate::bulk::{Update, Updated};
use crate::many::Many;

const OPERATION: &str = "spread_rows";

impl MongoRepository {
    pub(super) async fn spread(&self, spreads: Vec<Spread>) -> Result<()> {
        let (changes, mut others): (Vec<Spread>, Vec<Spread>) =
            spreads.into_iter().partition(|spread| spread.cause == SpreadCause::Change);
        let changes = newest(changes);
        if changes.len() > 1 {
            others.extend(self.spread_together(changes).await?);
        } else {
            others.extend(changes);
        }
        self.spread_each(others).await
    }

    /// Changes to rows that all differ; gives back those that somebody else has just made.
    async fn spread_together(&self, changes: Vec<Spread>) -> Result<Vec<Spread>> {
        let rows = &self.stored.rows;
        let mut many = Many::default();
        for spread in &changes {
            many.add(id(&key(spread)), change::spread_item(spread));
        }
        let stages = change::spread_many();
        let there = self.connection.update_many(OPERATION, rows, &many, stages).await?.matched;
        if there == many.len() {
            return Ok(Vec::new());
        }
        let found = if there == 0 { HashSet::new() } else { self.rows_there(&changes).await? };
        let missing: Vec<Spread> =
            changes.into_iter().filter(|spread| !found.contains(&key(spread))).collect();
        let now = self.connection.stamp(OPERATION).await?;
        let records = missing.iter().map(|spread| change::made_row(spread, now)).collect();
        let made = self.connection.insert_each(OPERATION, rows, records).await;
        let mut raced = Vec::new();
        for (spread, made) in missing.into_iter().zip(made) {
            if made? == Updated::Duplicate {
                raced.push(spread);
            }
        }
        Ok(raced)
    }

    /// Which of the rows are there.
    async fn rows_there(&self, spreads: &[Spread]) -> Result<HashSet<RowKey>> {
        let keys: Vec<RowKey> = spreads.iter().map(key).collect();
        let question = self.stored.rows.find(doc! { "_id": { "$in": ids(&keys) } });
        let question = question.projection(doc! { "_id": 1 });
        Ok(self.connection.all(OPERATION, question, read_key).await?.into_iter().collect())
    }

    /// Each by itself, whatever it is because of and whether or not its row is there.
    async fn spread_each(&self, spreads: Vec<Spread>) -> Result<()> {
        let rows = &self.stored.rows;
        let mut left: Vec<Update> = spreads.iter().map(change::spread).collect();
        for _ in 0..RACES {
            let updated = self.connection.update_each(OPERATION, rows, left.clone()).await;
            let mut again = Vec::new();
            for (update, updated) in left.into_iter().zip(updated) {
                // Somebody else has just made the row, or two of this batch did.
                if updated? == Updated::Duplicate {
                    again.push(update);
                }
            }
            if again.is_empty() {
                return Ok(());
            }
            left = again;
        }
        Err(lost_race(OPERATION))
    }
}

fn key(spread: &Spread) -> RowKey {
    RowKey::new(spread.subscription, spread.document.url.clone())
}

/// One change for each row: of several the row would want the newest.
fn newest(changes: Vec<Spread>) -> Vec<Spread> {
    let mut places: HashMap<RowKey, usize> = HashMap::new();
    let mut newest: Vec<Spread> = Vec::with_capacity(changes.len());
    for change in changes {
        let place = *places.entry(key(&change)).or_insert(newest.len());
        match newest.get_mut(place) {
            Some(other) => {
                other.wanted = other.wanted.max(change.wanted);
                other.generation = other.generation.max(change.generation);
            }
            None => newest.push(change),
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use flare_core::model::{
        DocumentKey, DocumentUrl, Generation, ResourceId, Revision, SubscriptionId, Version,
    };

    use super::*;

    #[test]
    fn of_several_changes_to_a_row_the_newest_counts() {
        let spread = |subscription: u8, revision, generation| {
            let url = DocumentUrl::parse("http://a.example/users/1").unwrap();
            let document = DocumentKey::new(ResourceId::from_bytes([1; 16]), url);
            let subscription = SubscriptionId::from_bytes([subscription; 16]);
            let wanted = Version::live(Revision::new(revision));
            Spread::new(subscription, Generation::new(generation), document, wanted)
        };
        let batch = vec![spread(1, 5, 1), spread(2, 1, 1), spread(1, 3, 2), spread(2, 4, 1)];
        assert_eq!(newest(batch), vec![spread(1, 5, 2), spread(2, 4, 1)]);
    }
}
