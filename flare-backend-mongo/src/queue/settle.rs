//! Takes receipts; does with their messages what is asked, as long as nobody else has them. Until
//! then a late receipt is good: the work was done, and doing it again would help nobody.

use std::time::Duration;

use flare_core::port::{Queue, QueueName, Receipt, Settlement, Unsettled};
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};

use super::{MongoQueue, after};
use crate::BACKEND;
use crate::bulk::{Update, Updated};

impl MongoQueue {
    pub(super) async fn extend_each(
        &self,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        const OPERATION: &str = "extend";
        if let Err(error) = self.facts().check_batch(OPERATION, receipts.len()) {
            return vec![Err(error); receipts.len()];
        }
        let mut answers = vec![Err(lost(OPERATION)); receipts.len()];
        let mut updates = Part::default();
        for (place, receipt) in receipts.into_iter().enumerate() {
            if let Some(filter) = held(receipt) {
                let change = vec![doc! { "$set": { "at": after(visibility) } }].into();
                updates.add(place, Update { filter, change, upsert: false });
            }
        }
        let extended = self.connection.update_each(OPERATION, &self.messages, updates.writes).await;
        put(&mut answers, updates.places, extended.into_iter().map(|it| changed(OPERATION, it)));
        answers
    }

    pub(super) async fn settle_each(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        const OPERATION: &str = "settle";
        let answers = match self.facts().check_batch(OPERATION, settlements.len()) {
            Ok(()) => self.settle_places(OPERATION, &queue.to_string(), &settlements).await,
            Err(error) => vec![Err(error); settlements.len()],
        };
        let give_back = |(answer, (receipt, _)): (Result<()>, _)| {
            answer.map_err(|error| Unsettled::new(error, receipt))
        };
        answers.into_iter().zip(settlements).map(give_back).collect()
    }

    async fn settle_places(
        &self,
        operation: &'static str,
        queue: &str,
        settlements: &[(Receipt, Settlement)],
    ) -> Vec<Result<()>> {
        let mut answers = vec![Err(lost(operation)); settlements.len()];
        let (mut done, mut again) = (Part::default(), Part::default());
        for (place, (receipt, settlement)) in settlements.iter().enumerate() {
            let Some(filter) = held(receipt) else { continue };
            match settlement {
                Settlement::Done => done.add(place, filter),
                Settlement::Retry { after } => again.add(place, (filter, *after)),
            }
        }
        let at_once = again.writes.iter().any(|(_, after)| after.is_zero());
        let (removed, released) = tokio::join!(
            self.connection.delete_each(operation, &self.messages, done.writes),
            self.release(operation, again.writes),
        );
        if at_once && released.iter().any(Result::is_ok) {
            self.bells.ring(queue);
        }
        put(&mut answers, done.places, removed.into_iter().map(|it| changed(operation, it)));
        put(&mut answers, again.places, released);
        answers
    }

    /// Lets messages wait again; they absorb again, unless another with their key does by now.
    async fn release(
        &self,
        operation: &'static str,
        messages: Vec<(Document, Duration)>,
    ) -> Vec<Result<()>> {
        let update = |(filter, pause): &(Document, Duration), absorbs: bool| {
            let mut set = doc! { "at": after(*pause) };
            if absorbs {
                // Messages without key have none after this, either.
                set.insert("absorbs", "$key");
            }
            let change = vec![doc! { "$set": set }, doc! { "$unset": "receipt" }].into();
            Update { filter: filter.clone(), change, upsert: false }
        };
        let updates = messages.iter().map(|message| update(message, true)).collect();
        let mut answers = self.connection.update_each(operation, &self.messages, updates).await;
        let mut silent = Part::default();
        for (place, (answer, message)) in answers.iter().zip(&messages).enumerate() {
            if matches!(answer, Ok(Updated::Duplicate)) {
                silent.add(place, update(message, false));
            }
        }
        if !silent.writes.is_empty() {
            let released =
                self.connection.update_each(operation, &self.messages, silent.writes).await;
            put(&mut answers, silent.places, released);
        }
        answers.into_iter().map(|it| changed(operation, it)).collect()
    }
}

/// Some items of a batch, and where their answers belong.
struct Part<T> {
    places: Vec<usize>,
    writes: Vec<T>,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self { places: Vec::new(), writes: Vec::new() }
    }
}

impl<T> Part<T> {
    fn add(&mut self, place: usize, write: T) {
        self.places.push(place);
        self.writes.push(write);
    }
}

fn put<T>(answers: &mut [T], places: Vec<usize>, found: impl IntoIterator<Item = T>) {
    for (place, found) in places.into_iter().zip(found) {
        if let Some(answer) = answers.get_mut(place) {
            *answer = found;
        }
    }
}

/// Which record a receipt is good for. None for what was never a receipt of ours.
fn held(receipt: &Receipt) -> Option<Document> {
    let (id, token) = receipt.token().split_once(':')?;
    let (id, token) = (ObjectId::parse_str(id).ok()?, ObjectId::parse_str(token).ok()?);
    Some(doc! { "_id": id, "receipt": token })
}

fn changed(operation: &'static str, answer: Result<Updated>) -> Result<()> {
    match answer? {
        Updated::Missed => Err(lost(operation)),
        _ => Ok(()),
    }
}

fn lost(operation: &'static str) -> Error {
    let detail = "the message is settled, somebody else's by now, or gone with its queue";
    Error::new(ErrorKind::Lost, operation).with_backend(BACKEND).with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_receipts_of_ours_are_good_for_a_record() {
        let (id, token) = (ObjectId::new(), ObjectId::new());
        let receipt = Receipt::new(format!("{id}:{token}"));
        let expected = doc! { "_id": id, "receipt": token };
        assert_eq!(held(&receipt), Some(expected));
        for other in ["", ":", "1:2", &id.to_string(), &format!("{id}:"), &format!("{id}:x")] {
            assert_eq!(held(&Receipt::new(other)), None, "{other}");
        }
    }
}
