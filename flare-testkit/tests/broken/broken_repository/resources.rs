//! Breaks RE1 to RE6.

use async_trait::async_trait;
use flare_core::model::{DocumentUrl, Resource, ResourceId, ResourceState};
use flare_core::port::{Listing, Page, ResourceStore};
use flare_core::{Error, ErrorKind, Result};

use super::{BrokenRepository, Fault};

#[async_trait]
impl ResourceStore for BrokenRepository {
    async fn insert_resource(&self, resource: Resource) -> Result<()> {
        let conflict = || Error::new(ErrorKind::Conflict, "insert_resource");
        if self.has(Fault::SameResourceConflicts)
            && self.inner.resource(resource.id).await?.is_some()
        {
            return Err(conflict().with_field("endpoint"));
        }
        self.memory().inserted.push(resource.clone());
        match self.inner.insert_resource(resource).await {
            Err(_) if self.has(Fault::EndpointConflictPasses) => Ok(()),
            Err(_) if self.has(Fault::EndpointConflictNamesNoField) => Err(conflict()),
            answer => answer,
        }
    }

    async fn resource(&self, id: ResourceId) -> Result<Option<Resource>> {
        let mut resource = self.inner.resource(id).await?;
        if let Some(resource) = resource.as_mut().filter(|_| self.has(Fault::CreationTimeRounded)) {
            let seconds = resource.created_at.unix_seconds();
            resource.created_at = flare_core::model::Timestamp::from_unix_seconds(seconds);
        }
        Ok(resource)
    }

    async fn match_resources(&self, mut urls: Vec<DocumentUrl>) -> Result<Vec<Vec<Resource>>> {
        if self.has(Fault::MatchesAnswerOutOfOrder) {
            urls.sort();
        }
        let found = self.inner.match_resources(urls.clone()).await;
        if self.has(Fault::UnreadableMatchesNothing) && found.is_err() {
            return Ok(vec![Vec::new(); urls.len()]);
        }
        let mut all = found?;
        for (url, found) in urls.iter().zip(&mut all) {
            *found = self.match_wrongly(url, std::mem::take(found)).await?;
        }
        if self.has(Fault::MatchesLeaveOutMisses) {
            all.retain(|matching| !matching.is_empty());
        }
        for matching in all.iter_mut().filter(|matching| matching.len() > 1) {
            if self.has(Fault::MatchesTheBestAlone) {
                matching.truncate(1);
            }
            if self.has(Fault::MatchesLeastSpecificNext) {
                matching[1..].reverse();
            }
        }
        Ok(all)
    }

    async fn list_resources(&self, page: Page) -> Result<Listing<Resource>> {
        let mut listing = self.inner.list_resources(page).await?;
        if self.has(Fault::ResourcesNewestFirst) {
            listing.items.reverse();
        }
        if self.has(Fault::ResourceTotalIsOfThePage) {
            listing.total = listing.items.len() as u64;
        }
        Ok(listing)
    }

    async fn move_resource(
        &self,
        id: ResourceId,
        from: ResourceState,
        to: ResourceState,
    ) -> Result<bool> {
        if self.has(Fault::MovesFromAnyState)
            && let Some(resource) = self.inner.resource(id).await?
        {
            return self.inner.move_resource(id, resource.state, to).await;
        }
        let moved = self.inner.move_resource(id, from, to).await?;
        Ok(moved || self.has(Fault::MoveAlwaysSaysYes))
    }

    async fn remove_resource(&self, id: ResourceId) -> Result<()> {
        if self.has(Fault::RemovesActiveResources) {
            use ResourceState::{Active, Deleted, Deleting};
            self.inner.move_resource(id, Active, Deleting).await?;
            self.inner.move_resource(id, Deleting, Deleted).await?;
        }
        if self.has(Fault::DeletedResourceStays) {
            return Ok(());
        }
        self.inner.remove_resource(id).await
    }
}

impl BrokenRepository {
    /// What a faulty store answers for a URL that really belongs to `found`.
    async fn match_wrongly(
        &self,
        url: &DocumentUrl,
        mut found: Vec<Resource>,
    ) -> Result<Vec<Resource>> {
        if self.has(Fault::MatchIsCached)
            && let Some(known) = self.memory().matches.get(url).cloned()
        {
            return Ok(known);
        }
        if found.is_empty() && self.has(Fault::MatchesDeletingOnes) {
            let memory = self.memory();
            let any = memory.inserted.iter().find(|it| it.endpoint.matches(url).is_some());
            found.extend(any.cloned());
        }
        if self.has(Fault::MatchPrefersTheOldest) {
            let inserted = self.memory().inserted.clone();
            for candidate in inserted.iter().filter(|it| it.endpoint.matches(url).is_some()).rev() {
                let stored = self.inner.resource(candidate.id).await?;
                if let Some(stored) = stored.filter(|it| it.state == ResourceState::Active) {
                    found.retain(|it| it.id != stored.id);
                    found.insert(0, stored);
                }
            }
        }
        self.memory().matches.insert(url.clone(), found.clone());
        Ok(found)
    }
}
