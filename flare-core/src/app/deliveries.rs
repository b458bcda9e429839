//! Takes a document; gives who has which version of it, and what the rest waits for.

use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt, stream};

use super::flare::{Flare, not_found};
use crate::error::{Error, Result};
use crate::model::{
    ClientCondition, DocumentDelivery, DocumentKey, DocumentUrl, FilterVerdict, LaneState, Row,
    RowKey, Subscription, SubscriptionId,
};
use crate::pipeline::health::ClientHealth;
use crate::port::{Listing, Page};

/// Clients that are looked up at the same time: each may be a round trip away.
const AT_A_TIME: usize = 16;

/// Whose row it is.
struct RowClient {
    /// If it can be read.
    subscription: Option<Subscription>,
    /// How its lanes saw it last, where something is pending.
    lanes: Vec<LaneState>,
}

impl Flare {
    /// Who has which version of a document, by subscription, and what is pending waits for. Those whose
    /// clients were never told of it, as their filter refuses it, are not among them.
    ///
    /// Rows that cannot be read are apart. The cost grows with the subscriptions that have a row of the document.
    pub async fn deliveries(&self, url: &str, page: Page) -> Result<Listing<DocumentDelivery>> {
        const OPERATION: &str = "deliveries";
        let url = DocumentUrl::parse(url).map_err(|invalid| Error::invalid(OPERATION, invalid))?;
        let repository = &self.context().repository;
        let matching = repository.match_resources(vec![url.clone()]).await?;
        let resources = matching.into_iter().next().unwrap_or_default();
        if resources.is_empty() {
            return Err(not_found(OPERATION, "resource for", &url));
        }
        let documents: Vec<_> =
            resources.iter().map(|it| DocumentKey::new(it.id, url.clone())).collect();
        let rows = self.rows_of(documents.clone(), page).await?;
        let documents = self.context().repository.documents(documents).await?;
        let now = self.context().time().await?;
        let clients = self.clients_of(&rows.items).await?;
        let mut told = Vec::with_capacity(rows.items.len());
        for row in &rows.items {
            let client = clients.get(&row.key.subscription);
            let subscription = client.and_then(|client| client.subscription.as_ref());
            let condition = client.map(|client| client.condition(row)).unwrap_or_default();
            let mut delivery = DocumentDelivery::of(row, subscription, &condition, now);
            let mut newest = resources.iter().zip(&documents);
            let newest = newest.find(|(resource, _)| resource.id == row.document.resource);
            if let (Some(subscription), Some((resource, Some(document)))) = (subscription, newest) {
                let verdict = self.context().verdict(subscription, resource, document);
                delivery.filtered =
                    !document.version.is_gone() && verdict == Some(FilterVerdict::Refuses);
            }
            told.push(delivery);
        }
        let mut listing = Listing::new(told, rows.total);
        listing.unreadable = rows.unreadable;
        Ok(listing)
    }

    /// One page of the rows of documents, and how many there are.
    async fn rows_of(&self, documents: Vec<DocumentKey>, page: Page) -> Result<Listing<Row>> {
        let context = self.context();
        let limit = context.batch_limit();
        let (mut after, mut seen): (Option<RowKey>, u64) = (None, 0);
        let mut found = Listing::new(Vec::new(), 0);
        loop {
            let part = context.repository.rows_of(documents.clone(), after.take(), limit).await?;
            let read = part.items.len() + part.unreadable.len();
            after = context.last_row_of(&part);
            let end = page.offset.saturating_add(page.limit.into());
            for row in part.items {
                if (page.offset..end).contains(&seen) {
                    found.items.push(row);
                }
                seen += 1;
            }
            let room = (page.limit as usize).saturating_sub(found.unreadable.len());
            found.unreadable.extend(part.unreadable.into_iter().take(room));
            if read < limit || after.is_none() {
                found.total = seen;
                return Ok(found);
            }
        }
    }

    /// The subscriptions of rows, and how their clients are, read side by side.
    async fn clients_of(&self, rows: &[Row]) -> Result<HashMap<SubscriptionId, RowClient>> {
        let mut pending: HashMap<SubscriptionId, bool> = HashMap::new();
        for row in rows {
            *pending.entry(row.key.subscription).or_default() |= row.is_pending();
        }
        let clients = stream::iter(pending).map(|(id, pending)| async move {
            let context = self.context();
            let subscription = context.repository.subscription(id).await;
            let subscription = context.if_readable(subscription)?.flatten();
            let lanes = match pending && subscription.is_some() {
                true => context.repository.lanes(id).await?.items,
                false => Vec::new(),
            };
            Ok((id, RowClient { subscription, lanes }))
        });
        clients.buffer_unordered(AT_A_TIME).try_collect().await
    }
}

impl RowClient {
    /// How the client is, as the lane of a pending row saw it last.
    fn condition(&self, row: &Row) -> ClientCondition {
        let Some(subscription) = self.subscription.as_ref().filter(|_| row.is_pending()) else {
            return ClientCondition::default();
        };
        let shard = row.bucket().lane(subscription.spec.delivery().lanes());
        let Some(lane) = self.lanes.iter().find(|it| it.lane.shard == shard) else {
            return ClientCondition::default();
        };
        let health = ClientHealth::stored(lane.clone(), subscription.resumed_at);
        ClientCondition {
            hold_until: lane.hold_until,
            probe_at: health.probe_at(),
            last_error: lane.last_error.clone(),
        }
    }
}
