//! Takes messages; sends them in as few requests as their sizes allow, with an answer for each.

use std::ops::Range;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use flare_core::Result;
use flare_core::port::{Outgoing, Queue, QueueName};

use super::{SqsQueue, fifo, seconds};
use crate::answered::{self, Answered};
use crate::{codec, error};

const OPERATION: &str = "send";

impl SqsQueue {
    pub(super) async fn send_each(
        &self,
        queue: &QueueName,
        messages: Vec<Outgoing>,
    ) -> Vec<Result<()>> {
        let facts = self.facts();
        if let Err(error) = facts.check_batch(OPERATION, messages.len()) {
            return vec![Err(error); messages.len()];
        }
        let url = match self.connection.url(OPERATION, queue).await {
            Ok(url) => url,
            Err(error) => return vec![Err(error); messages.len()],
        };
        let mut answers: Vec<Result<()>> = messages.iter().map(|it| facts.check(it)).collect();
        let fifo = self.connection.names.is_fifo(queue);
        let mut entries = Vec::with_capacity(messages.len());
        for (place, message) in messages.into_iter().enumerate() {
            if answers[place].is_ok() {
                match self.entry(place, &message, fifo) {
                    Ok(entry) => entries.push((place, entry)),
                    Err(error) => answers[place] = Err(error),
                }
            }
        }
        let sizes: Vec<usize> = entries.iter().map(|(_, it)| it.message_body().len()).collect();
        for range in split(&sizes, self.connection.message_limit) {
            let (places, batch): (Vec<usize>, Vec<_>) = entries[range].iter().cloned().unzip();
            let request = self.connection.client.send_message_batch().queue_url(&url);
            let sent = request.set_entries(Some(batch)).send().await;
            let sent = sent.map(|it| Answered::new(&it.successful, |it| it.id(), it.failed));
            let sent = sent.map_err(|error| error::from_sdk(OPERATION, &error));
            let sent = sent.map_err(|error| self.connection.noticed(queue, error));
            answered::put(OPERATION, &mut answers, &places, sent);
        }
        answers
    }

    fn entry(
        &self,
        place: usize,
        message: &Outgoing,
        fifo: bool,
    ) -> Result<SendMessageBatchRequestEntry> {
        let delay = seconds(message.delay);
        let mut entry = SendMessageBatchRequestEntry::builder().id(place.to_string());
        entry = if fifo {
            let id = self.ids.next();
            let group = fifo::group_id(message.group.as_deref(), &id);
            let body = match delay {
                0 => codec::encode(&message.payload),
                delay => codec::encode_delayed(&message.payload, delay),
            };
            entry.message_body(body).message_group_id(group).message_deduplication_id(id)
        } else {
            entry.message_body(codec::encode(&message.payload)).delay_seconds(delay)
        };
        entry.build().map_err(|error| answered::unbuilt(OPERATION, &error))
    }
}

/// Parts of a batch, in order, none of them larger than `limit` together: SQS has one limit for a
/// message and for a whole batch.
fn split(sizes: &[usize], limit: usize) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut filled = 0;
    for (index, size) in sizes.iter().enumerate() {
        match parts.last_mut() {
            Some(part) if filled + size <= limit => {
                part.end = index + 1;
                filled += size;
            }
            _ => {
                parts.push(index..index + 1);
                filled = *size;
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_split_where_it_would_be_too_large() {
        assert!(split(&[], 10).is_empty());
        assert_eq!(split(&[1; 10], 10), vec![0..10; 1]);
        assert_eq!(split(&[10, 10, 1], 10), [0..1, 1..2, 2..3]);
        assert_eq!(split(&[4, 6, 1, 9, 5], 10), [0..2, 2..4, 4..5]);
    }
}
