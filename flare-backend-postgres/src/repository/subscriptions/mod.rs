//! Takes clients' wishes; gives them by id, by resource and by partition.

mod read;
mod write;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Generation, PartitionId, ResourceId, Subscription, SubscriptionId, SubscriptionStatus,
};
use flare_core::port::{Listing, Member, Page, Replaced, Scan, SlotQuery, SubscriptionStore};

use super::PostgresRepository;
use crate::codec::id as uuid;
pub(super) use read::{members_of, partitions_of};

#[async_trait]
impl SubscriptionStore for PostgresRepository {
    async fn insert_subscription(
        &self,
        subscription: Subscription,
        partition_limit: u32,
    ) -> Result<Subscription> {
        let insert = || self.insert_with_seat(&subscription, partition_limit.max(1));
        self.database.attempts("insert_subscription", insert).await
    }

    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>> {
        self.database.attempts("subscription", || self.read_subscription(id)).await
    }

    async fn list_subscriptions(
        &self,
        resource: ResourceId,
        page: Page,
    ) -> Result<Listing<Subscription>> {
        self.database.attempts("list_subscriptions", || self.page_of(resource, page)).await
    }

    fn scan_subscriptions(&self, after: Option<SubscriptionId>) -> Scan<'_, Subscription> {
        self.scan_all(after)
    }

    fn subscriptions_in(
        &self,
        slots: SlotQuery,
        after: Option<SubscriptionId>,
    ) -> Scan<'_, Subscription> {
        self.scan_slots(slots, after)
    }

    async fn partitions(&self, resource: ResourceId) -> Result<Vec<PartitionId>> {
        const OPERATION: &str = "partitions";
        self.database
            .attempts(OPERATION, || async {
                partitions_of(&mut self.database.session(OPERATION).await?, resource).await
            })
            .await
    }

    async fn members(&self, resource: ResourceId, partition: PartitionId) -> Result<Vec<Member>> {
        const OPERATION: &str = "members";
        self.database
            .attempts(OPERATION, || async {
                members_of(&mut self.database.session(OPERATION).await?, resource, partition).await
            })
            .await
    }

    fn scan_members(&self) -> Scan<'_, Member> {
        self.scan_all_members()
    }

    async fn replace_subscription(
        &self,
        generation: Generation,
        subscription: Subscription,
    ) -> Result<Replaced> {
        let replace = || self.replace(generation, &subscription);
        self.database.attempts("replace_subscription", replace).await
    }

    async fn discard_subscription(&self, id: SubscriptionId) -> Result<bool> {
        const OPERATION: &str = "discard_subscription";
        const SQL: &str = "WITH marked AS (UPDATE flare.subscriptions SET status = $2, told = false, \
             reason = NULL, generation = greatest(generation, 0) + 1 WHERE id = $1 AND status <> $2 \
             RETURNING id), \
             freed AS (DELETE FROM flare.subscription_urls u USING marked m WHERE u.subscription = m.id) \
             SELECT 1 FROM marked";
        self.database
            .attempts(OPERATION, || async {
                let (id, deleting) = (uuid(id.as_bytes()), SubscriptionStatus::Deleting.as_str());
                Ok(self.database.one(OPERATION, SQL, &[&id, &deleting]).await?.is_some())
            })
            .await
    }

    async fn remove_subscription(&self, id: SubscriptionId) -> Result<()> {
        self.database.attempts("remove_subscription", || self.remove_with_seat(id)).await
    }
}
