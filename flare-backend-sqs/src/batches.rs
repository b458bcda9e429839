//! Takes receipts of one queue, each called by its place; gives them to SQS in one request.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
};
use flare_core::Result;
use flare_core::port::Receipt;

use crate::answered::{self, Answered};
use crate::error;
use crate::queue::seconds;

/// Deletes messages.
pub(crate) async fn remove(
    client: &Client,
    operation: &'static str,
    url: &str,
    items: &[(usize, &Receipt)],
) -> Result<Answered> {
    let entry = |(place, receipt): &(usize, &Receipt)| {
        let entry = DeleteMessageBatchRequestEntry::builder().id(place.to_string());
        let built = entry.receipt_handle(receipt.token()).build();
        built.map_err(|error| answered::unbuilt(operation, &error))
    };
    let entries = items.iter().map(entry).collect::<Result<Vec<_>>>()?;
    let request = client.delete_message_batch().queue_url(url);
    let removed = request.set_entries(Some(entries)).send().await;
    let removed = removed.map_err(|error| error::from_sdk(operation, &error))?;
    Ok(Answered::new(&removed.successful, |it| it.id(), removed.failed))
}

/// Changes when messages are seen again.
pub(crate) async fn change(
    client: &Client,
    operation: &'static str,
    url: &str,
    items: &[(usize, &Receipt, Duration)],
) -> Result<Answered> {
    let entry = |(place, receipt, after): &(usize, &Receipt, Duration)| {
        let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(place.to_string());
        let entry = entry.receipt_handle(receipt.token()).visibility_timeout(seconds(*after));
        entry.build().map_err(|error| answered::unbuilt(operation, &error))
    };
    let entries = items.iter().map(entry).collect::<Result<Vec<_>>>()?;
    let request = client.change_message_visibility_batch().queue_url(url);
    let changed = request.set_entries(Some(entries)).send().await;
    let changed = changed.map_err(|error| error::from_sdk(operation, &error))?;
    Ok(Answered::new(&changed.successful, |it| it.id(), changed.failed))
}
