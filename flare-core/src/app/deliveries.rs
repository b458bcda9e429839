//! Takes a document; gives who has which version of it, and what the rest waits for.

use std::collections::HashMap;

use super::flare::{Flare, not_found};
use crate::error::{Error, Result};
use crate::model::{
    ClientCondition, DocumentDelivery, DocumentKey, DocumentUrl, FilterVerdict, Row, RowKey,
    Subscription, SubscriptionId,
};
use crate::pipeline::health::ClientHealth;
use crate::port::{Listing, Page};

impl Flare {
    /// Who has which version of a document, by subscription, and what is pending waits for. Those whose
    /// clients were never told of it, as their filter refuses it, are not among them.
    ///
    /// The cost grows with the subscriptions that have a row of the document.
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
        let mut known = HashMap::new();
        let mut told = Vec::with_capacity(rows.items.len());
        for row in &rows.items {
            let (subscription, client) = self.client_of(row, &mut known).await?;
            let mut delivery = DocumentDelivery::of(row, subscription.as_ref(), &client, now);
            let subscription = known.get(&row.key.subscription).and_then(Option::as_ref);
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
            after = part.items.last().map(|row| row.key.clone());
            let end = page.offset.saturating_add(page.limit.into());
            for row in part.items {
                if (page.offset..end).contains(&seen) {
                    found.items.push(row);
                }
                seen += 1;
            }
            part.unreadable.iter().for_each(|it| context.note_unreadable(it));
            if read < limit || after.is_none() {
                found.total = seen;
                return Ok(found);
            }
        }
    }

    /// The subscription of a row, if it can be read, and how its client is as its lane saw it last.
    async fn client_of(
        &self,
        row: &Row,
        known: &mut HashMap<SubscriptionId, Option<Subscription>>,
    ) -> Result<(Option<Subscription>, ClientCondition)> {
        let context = self.context();
        let id = row.key.subscription;
        let subscription = match known.get(&id) {
            Some(known) => known.clone(),
            None => {
                let read = context.repository.subscription(id).await;
                let read = context.if_readable(read)?.flatten();
                known.entry(id).or_insert(read).clone()
            }
        };
        let Some(subscription) = subscription.filter(|_| row.is_pending()) else {
            return Ok((None, ClientCondition::default()));
        };
        let shard = row.bucket().lane(subscription.spec.delivery().lanes());
        let lanes = context.repository.lanes(id).await?.items;
        let lane = lanes.into_iter().find(|it| it.lane.shard == shard);
        let client = lane.map(|state| {
            let (hold_until, last_error) = (state.hold_until, state.last_error.clone());
            let health = ClientHealth::stored(state, subscription.resumed_at);
            ClientCondition { hold_until, probe_at: health.probe_at(), last_error }
        });
        Ok((Some(subscription), client.unwrap_or_default()))
    }
}
