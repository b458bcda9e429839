//! Takes receipts that are still good; deletes their messages, or changes when they are seen again,
//! with an answer for each.

use std::time::Duration;

use flare_core::port::{Queue, QueueName, Receipt, Settlement, Unsettled};
use flare_core::{Error, ErrorKind, Result};
use futures::future;

use super::{LONGEST_VISIBILITY, SqsQueue};
use crate::answered::{self, Answered};
use crate::{BACKEND, batches};

impl SqsQueue {
    pub(super) async fn extend_each(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        const OPERATION: &str = "extend";
        if let Err(error) = self.facts().check_batch(OPERATION, receipts.len()) {
            return vec![Err(error); receipts.len()];
        }
        let visibility = visibility.min(LONGEST_VISIBILITY);
        let asked = self.clock.monotonic();
        let mut answers = vec![Err(lost(OPERATION)); receipts.len()];
        let mut good = Vec::with_capacity(receipts.len());
        for (place, receipt) in receipts.iter().enumerate() {
            if self.held.is_good(receipt, asked) {
                good.push((place, *receipt, visibility));
            }
        }
        let places: Vec<usize> = good.iter().map(|(place, ..)| *place).collect();
        let changed = self.change(OPERATION, queue, &good).await;
        answered::put(OPERATION, &mut answers, &places, changed);
        for (receipt, answer) in receipts.iter().zip(&answers) {
            if answer.is_ok() {
                // From when it was asked for: never longer than SQS keeps it.
                self.held.hold(receipt.token(), asked, visibility);
            }
        }
        answers
    }

    pub(super) async fn settle_each(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        const OPERATION: &str = "settle";
        let answers = match self.facts().check_batch(OPERATION, settlements.len()) {
            Ok(()) => self.settle_places(OPERATION, queue, &settlements).await,
            Err(error) => vec![Err(error); settlements.len()],
        };
        let give_back = |(answer, (receipt, _)): (Result<()>, (Receipt, Settlement))| {
            if answer.is_ok() {
                self.held.release(&receipt);
            }
            answer.map_err(|error| Unsettled::new(error, receipt))
        };
        answers.into_iter().zip(settlements).map(give_back).collect()
    }

    async fn settle_places(
        &self,
        operation: &'static str,
        queue: &QueueName,
        settlements: &[(Receipt, Settlement)],
    ) -> Vec<Result<()>> {
        let now = self.clock.monotonic();
        let mut answers = vec![Err(lost(operation)); settlements.len()];
        let (mut done, mut again) = (Vec::new(), Vec::new());
        for (place, (receipt, settlement)) in settlements.iter().enumerate() {
            if !self.held.is_good(receipt, now) {
                continue;
            }
            match settlement {
                Settlement::Done => done.push((place, receipt)),
                Settlement::Retry { after } if *after > self.facts().max_delay => {
                    let detail = format!("{after:?} is beyond the longest delay");
                    let error = Error::new(ErrorKind::Invalid, operation).with_backend(BACKEND);
                    answers[place] = Err(error.with_field("after").with_detail(detail));
                }
                Settlement::Retry { after } => again.push((place, receipt, *after)),
            }
        }
        let (removed, changed) = future::join(
            self.remove(operation, queue, &done),
            self.change(operation, queue, &again),
        )
        .await;
        let places: Vec<usize> = done.iter().map(|(place, _)| *place).collect();
        answered::put(operation, &mut answers, &places, removed);
        let places: Vec<usize> = again.iter().map(|(place, ..)| *place).collect();
        answered::put(operation, &mut answers, &places, changed);
        answers
    }

    /// Deletes messages, each called by its place.
    async fn remove(
        &self,
        operation: &'static str,
        queue: &QueueName,
        items: &[(usize, &Receipt)],
    ) -> Result<Answered> {
        if items.is_empty() {
            return Ok(Answered::default());
        }
        let url = self.url_of_receipts(operation, queue).await?;
        let removed = batches::remove(&self.connection.client, operation, &url, items).await;
        removed.map_err(|error| self.gone_with(queue, error))
    }

    /// Changes when messages are seen again, each called by its place.
    pub(super) async fn change(
        &self,
        operation: &'static str,
        queue: &QueueName,
        items: &[(usize, &Receipt, Duration)],
    ) -> Result<Answered> {
        if items.is_empty() {
            return Ok(Answered::default());
        }
        let url = self.url_of_receipts(operation, queue).await?;
        let changed = batches::change(&self.connection.client, operation, &url, items).await;
        changed.map_err(|error| self.gone_with(queue, error))
    }

    async fn url_of_receipts(&self, operation: &'static str, queue: &QueueName) -> Result<String> {
        let url = self.connection.url(operation, queue).await;
        url.map_err(|error| self.gone_with(queue, error))
    }

    /// With its queue a receipt is gone, too.
    fn gone_with(&self, queue: &QueueName, error: Error) -> Error {
        match self.connection.noticed(queue, error) {
            error if error.kind() == ErrorKind::NotFound => lost(error.operation()),
            error => error,
        }
    }
}

fn lost(operation: &'static str) -> Error {
    let detail = "the message may be somebody else's by now, or is gone";
    Error::new(ErrorKind::Lost, operation).with_backend(BACKEND).with_detail(detail)
}
