//! Takes what a host wants pulled; gives consumers created, read, replaced, paused, resumed and deleted, and how each
//! stands. Each change is one conditional write, repeated if another was faster.

use super::flare::{Flare, not_found};
use crate::error::{Error, ErrorKind, Result};
use crate::filter::MessageExpression;
use crate::model::consumer::Mapping;
use crate::model::{
    AuditAction, AuditSubject, Consumer, ConsumerId, ConsumerState, ConsumerStatus, Generation,
    Invalid, NewConsumer, NodeId, OnReject, Resource, ResourceId,
};
use crate::pipeline::ConsumerTotals;
use crate::pipeline::consumers::read_states;
use crate::port::{Listing, Page, Replaced};

/// How a consumer stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ConsumerReport {
    /// Whether it is to pull.
    pub status: ConsumerStatus,
    /// The node that works its slot now.
    pub node: Option<NodeId>,
    /// What its owner stored last, at most some seconds ago: what it counted, and what went wrong.
    pub state: ConsumerState,
}

impl Flare {
    /// Creates a consumer: documents of the resource are pulled from its source from now on, by the node that
    /// works its slot. The source's kind has to be one the [builder](crate::FlareBuilder::source) was told of.
    pub async fn create_consumer(
        &self,
        resource: ResourceId,
        new: NewConsumer,
    ) -> Result<Consumer> {
        const OPERATION: &str = "create_consumer";
        // An unknown resource is said before what is wrong with the rest.
        let parent = self.active_resource(OPERATION, resource).await?;
        let mapping = self.check_consumer(OPERATION, &new, &parent)?;
        let context = self.context();
        let now = context.time().await?;
        let id = context.ids.next(now).into();
        let mut consumer = Consumer::new(id, parent.id, new.source, mapping, now);
        consumer.on_reject = new.on_reject;
        let stored = context.repository.insert_consumer(consumer).await;
        let stored = stored.map_err(|error| error.during(OPERATION))?;
        // After inserting it: the call that deletes the resource looks for consumers after marking it, so that one
        // of us sees the other.
        if let Err(gone) = self.active_resource(OPERATION, resource).await {
            if gone.kind() == ErrorKind::NotFound {
                context.repository.remove_consumer(stored.id, None).await?;
            }
            return Err(gone);
        }
        context.refresh_consumer(stored.id).await;
        let detail = format!("of resource {resource}, from {}", stored.source.kind());
        self.tell(AuditAction::Created, AuditSubject::consumer(stored.id), detail);
        Ok(stored)
    }

    /// Reads a consumer.
    pub async fn consumer(&self, id: ConsumerId) -> Result<Consumer> {
        self.find_consumer("consumer", id).await
    }

    /// Lists the consumers of all resources, oldest first.
    pub async fn consumers(&self, page: Page) -> Result<Listing<Consumer>> {
        let listing = self.context().repository.list_consumers(page).await?;
        listing.unreadable.iter().for_each(|it| self.context().note_unreadable(it));
        Ok(listing)
    }

    /// Replaces what a consumer pulls from and what becomes of its messages; its resource and what it counted stay,
    /// and how far it has come unless its source has other settings: that is another source, read from where they say.
    pub async fn replace_consumer(&self, id: ConsumerId, new: NewConsumer) -> Result<Consumer> {
        self.replace_consumer_if("replace_consumer", id, None, new).await
    }

    /// As [`replace_consumer`](Self::replace_consumer), if it is still at that generation; a conflict on
    /// `generation` if not.
    pub async fn replace_consumer_at(
        &self,
        id: ConsumerId,
        generation: Generation,
        new: NewConsumer,
    ) -> Result<Consumer> {
        self.replace_consumer_if("replace_consumer", id, Some(generation), new).await
    }

    async fn replace_consumer_if(
        &self,
        operation: &'static str,
        id: ConsumerId,
        generation: Option<Generation>,
        new: NewConsumer,
    ) -> Result<Consumer> {
        let current = self.find_consumer(operation, id).await?;
        let parent = self.active_resource(operation, current.resource).await?;
        let mapping = self.check_consumer(operation, &new, &parent)?;
        let replaced = |current: &Consumer| {
            let mut replacement = current.clone();
            replacement.source = new.source.clone();
            replacement.mapping = mapping.clone();
            replacement.on_reject = new.on_reject;
            Some(replacement)
        };
        let check = |current: &Consumer| match generation {
            Some(generation) if generation != current.generation => Err(changed_since(operation)),
            _ => Ok(()),
        };
        self.change_consumer(operation, AuditAction::Replaced, current, check, replaced).await
    }

    /// Stops pulling until the consumer is resumed. What was received is stored or given back to the broker; within
    /// a second nothing more is received.
    pub async fn pause_consumer(&self, id: ConsumerId) -> Result<Consumer> {
        self.set_consumer_status("pause_consumer", id, ConsumerStatus::Paused).await
    }

    /// Goes on pulling where the consumer was paused.
    pub async fn resume_consumer(&self, id: ConsumerId) -> Result<Consumer> {
        self.set_consumer_status("resume_consumer", id, ConsumerStatus::Active).await
    }

    async fn set_consumer_status(
        &self,
        operation: &'static str,
        id: ConsumerId,
        status: ConsumerStatus,
    ) -> Result<Consumer> {
        let current = self.find_consumer(operation, id).await?;
        let changed = |current: &Consumer| {
            let mut changed = current.clone();
            changed.status = status;
            (current.status != status).then_some(changed)
        };
        let action = match status {
            ConsumerStatus::Paused => AuditAction::Paused,
            ConsumerStatus::Active => AuditAction::Resumed,
        };
        self.change_consumer(operation, action, current, |_| Ok(()), changed).await
    }

    /// Forgets a consumer, with its rejects and how far it has come. The broker keeps what it has.
    pub async fn delete_consumer(&self, id: ConsumerId) -> Result<()> {
        self.delete_consumer_if(id, None).await
    }

    /// As [`delete_consumer`](Self::delete_consumer), if it is still at that generation; a conflict on `generation`
    /// if not.
    pub async fn delete_consumer_at(&self, id: ConsumerId, generation: Generation) -> Result<()> {
        self.delete_consumer_if(id, Some(generation)).await
    }

    async fn delete_consumer_if(
        &self,
        id: ConsumerId,
        generation: Option<Generation>,
    ) -> Result<()> {
        const OPERATION: &str = "delete_consumer";
        match self.find_consumer(OPERATION, id).await {
            Err(error) if error.unreadable().is_none() => return Err(error),
            _ => {}
        }
        let removed = self.context().repository.remove_consumer(id, generation).await;
        if !removed.map_err(|error| error.during(OPERATION))? {
            return Err(changed_since(OPERATION));
        }
        self.context().refresh_consumer(id).await;
        self.tell(AuditAction::Deleted, AuditSubject::consumer(id), "");
        Ok(())
    }

    /// How a consumer stands: who works it, what it counted, what went wrong.
    pub async fn consumer_status(&self, id: ConsumerId) -> Result<ConsumerReport> {
        let consumer = self.find_consumer("consumer_status", id).await?;
        let context = self.context();
        let state = read_states(context, &[id]).await?.remove(&id).unwrap_or_default();
        let slot = context.slot_numbers().of_consumer(id);
        let node = self.cluster_seen().await.worker(slot);
        Ok(ConsumerReport { status: consumer.status, node, state })
    }

    /// The same of several, in one question to the store: in their order, each as it was read.
    pub async fn consumer_statuses(&self, consumers: &[Consumer]) -> Result<Vec<ConsumerReport>> {
        let context = self.context();
        let ids: Vec<ConsumerId> = consumers.iter().map(|consumer| consumer.id).collect();
        let mut states = read_states(context, &ids).await?;
        let (numbers, cluster) = (context.slot_numbers(), self.cluster_seen().await);
        let report = |consumer: &Consumer| ConsumerReport {
            status: consumer.status,
            node: cluster.worker(numbers.of_consumer(consumer.id)),
            state: states.remove(&consumer.id).unwrap_or_default(),
        };
        Ok(consumers.iter().map(report).collect())
    }

    /// All consumers together: how many there are, and how many fail. About a second old at most, however many look,
    /// and older where reading all of them takes long.
    pub async fn consumer_totals(&self) -> Result<ConsumerTotals> {
        Ok(self.context().consumers_picture().await?.totals)
    }

    pub(super) async fn find_consumer(
        &self,
        operation: &'static str,
        id: ConsumerId,
    ) -> Result<Consumer> {
        let found = self.context().repository.consumer(id).await;
        if let Err(error) = &found
            && let Some(unreadable) = error.unreadable()
        {
            self.context().note_unreadable(unreadable);
        }
        found?.ok_or_else(|| not_found(operation, "consumer", &id))
    }

    /// Stores what `next` makes of a consumer, for as long as others are faster.
    async fn change_consumer(
        &self,
        operation: &'static str,
        action: AuditAction,
        mut current: Consumer,
        check: impl Fn(&Consumer) -> Result<()>,
        next: impl Fn(&Consumer) -> Option<Consumer>,
    ) -> Result<Consumer> {
        let context = self.context();
        loop {
            check(&current)?;
            let Some(mut newer) = next(&current) else { return Ok(current) };
            newer.updated_at = context.time().await?;
            let replaced = context.repository.replace_consumer(current.generation, newer).await;
            match replaced.map_err(|error| error.during(operation))? {
                Replaced::Done(stored) => {
                    context.refresh_consumer(stored.id).await;
                    self.tell(action, AuditSubject::consumer(stored.id), "");
                    return Ok(stored);
                }
                Replaced::Conflict(newer) => current = newer,
                Replaced::Missing => return Err(not_found(operation, "consumer", &current.id)),
            }
        }
    }

    /// Refuses what could never work, by the path a caller knows it by.
    fn check_consumer(
        &self,
        operation: &'static str,
        new: &NewConsumer,
        parent: &Resource,
    ) -> Result<Mapping> {
        let refused = |invalid: Invalid| Error::invalid(operation, invalid);
        let kind = new.source.kind();
        let connectors = &self.context().connectors;
        let connector = connectors.get(kind).ok_or_else(|| {
            let known: Vec<&str> = connectors.keys().copied().collect();
            let reason = match known.is_empty() {
                true => "there are no sources here: this node was built without any".to_owned(),
                false => format!("there are no such sources here: known are {}", known.join(", ")),
            };
            refused(Invalid::new(kind.to_owned(), reason))
        })?;
        connector.check(&new.source).map_err(refused)?;
        if new.on_reject == OnReject::Leave && !connector.leaves(&new.source) {
            let reason =
                format!("what is rejected cannot be left to a source of the kind {kind}: say keep");
            return Err(refused(Invalid::new("onReject", reason)));
        }
        let in_document = |invalid: Invalid| refused(invalid.within("document"));
        let mapping = Mapping::new(new.document.clone()).map_err(in_document)?;
        mapping.check_for(&parent.endpoint).map_err(in_document)?;
        let expression = mapping.expression().map(MessageExpression::new).transpose();
        expression.map_err(|invalid| in_document(invalid.within("delete")))?;
        Ok(mapping)
    }
}

/// What is said to a caller whose consumer is another by now.
fn changed_since(operation: &'static str) -> Error {
    let error = Error::new(ErrorKind::Conflict, operation).with_field("generation");
    error.with_detail("the consumer has changed since it was read")
}
