//! Takes kinds of documents; gives them by id and, through the endpoint index, by URL.

use std::collections::BTreeMap;
use std::sync::RwLock;

use async_trait::async_trait;
use flare_core::model::{
    DocumentUrl, EndpointIndex, RecordName, Resource, ResourceId, ResourceState, Unreadable,
};
use flare_core::port::{Listing, Page, ResourceStore};
use flare_core::{Error, ErrorKind, Result};

use super::MemoryRepository;
use super::spoilt::unreadable;
use crate::{BACKEND, read, write};

#[derive(Debug, Default)]
pub(super) struct Resources(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    by_id: BTreeMap<ResourceId, Resource>,
    /// Those that hold their endpoint: active and deleting ones.
    by_endpoint: EndpointIndex<ResourceId>,
    /// The active ones alone, which documents may match.
    active: EndpointIndex<ResourceId>,
}

#[async_trait]
impl ResourceStore for MemoryRepository {
    async fn insert_resource(&self, resource: Resource) -> Result<()> {
        let mut table = write(&self.resources.0);
        if table.by_id.contains_key(&resource.id) {
            return Ok(());
        }
        if let Some(conflict) = table.by_endpoint.conflicting(&resource.endpoint) {
            let detail =
                format!("{} is the endpoint of resource {}", conflict.endpoint, conflict.value);
            return Err(Error::new(ErrorKind::Conflict, "insert_resource")
                .with_backend(BACKEND)
                .with_field("endpoint")
                .with_detail(detail));
        }
        table.index(&resource);
        table.by_id.insert(resource.id, resource);
        Ok(())
    }

    async fn resource(&self, id: ResourceId) -> Result<Option<Resource>> {
        let found = read(&self.resources.0).by_id.get(&id).cloned();
        found.map(|found| self.readable_resource("resource", found)).transpose()
    }

    async fn match_resources(&self, urls: Vec<DocumentUrl>) -> Result<Vec<Vec<Resource>>> {
        let table = read(&self.resources.0);
        let find = |url| {
            let ids = table.active.find_all(url).into_iter();
            let found = ids.filter_map(|id| table.by_id.get(id).cloned());
            let read = |found| self.readable_resource("match_resources", found);
            first_must_be_readable(found.map(read))
        };
        urls.iter().map(find).collect()
    }

    async fn list_resources(&self, page: Page) -> Result<Listing<Resource>> {
        let table = read(&self.resources.0);
        let active = table.by_id.values().filter(|it| it.state == ResourceState::Active);
        let listing = list(active, table.active.len(), page);
        let read = |it| self.readable_resource("list_resources", it);
        Listing::of_read(listing.items.into_iter().map(read), listing.total)
    }

    async fn move_resource(
        &self,
        id: ResourceId,
        from: ResourceState,
        to: ResourceState,
    ) -> Result<bool> {
        let mut table = write(&self.resources.0);
        let Some(mut resource) = table.by_id.get(&id).cloned() else {
            return Ok(false);
        };
        if resource.state != from || from == ResourceState::Deleted {
            return Ok(false);
        }
        table.unindex(&resource);
        resource.state = to;
        table.index(&resource);
        table.by_id.insert(id, resource);
        Ok(true)
    }

    async fn remove_resource(&self, id: ResourceId) -> Result<()> {
        let mut table = write(&self.resources.0);
        if table.by_id.get(&id).is_some_and(|it| it.state == ResourceState::Deleted) {
            table.by_id.remove(&id);
            self.spoilt.forget(|| RecordName::Resource(id));
        }
        Ok(())
    }
}

impl MemoryRepository {
    fn readable_resource(&self, operation: &'static str, resource: Resource) -> Result<Resource> {
        match self.spoilt.why(|| RecordName::Resource(resource.id)) {
            None => Ok(resource),
            Some(why) => {
                let record = Unreadable::new(RecordName::Resource(resource.id), why);
                let deleted = resource.state == ResourceState::Deleted;
                Err(unreadable(operation, record.deleted(deleted)))
            }
        }
    }
}

impl Table {
    fn index(&mut self, resource: &Resource) {
        // Insertion cannot conflict: the caller has looked, under the same lock.
        if resource.state != ResourceState::Deleted {
            let _ = self.by_endpoint.insert(&resource.endpoint, resource.id);
        }
        if resource.state == ResourceState::Active {
            let _ = self.active.insert(&resource.endpoint, resource.id);
        }
    }

    fn unindex(&mut self, resource: &Resource) {
        if resource.state != ResourceState::Deleted {
            self.by_endpoint.remove(&resource.endpoint);
        }
        if resource.state == ResourceState::Active {
            self.active.remove(&resource.endpoint);
        }
    }
}

/// What can be read; an error if the first of them cannot be, which would be the answer.
fn first_must_be_readable<T>(found: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut readable = Vec::new();
    for (place, found) in found.enumerate() {
        match found {
            Ok(found) => readable.push(found),
            Err(error) if place == 0 => return Err(error),
            Err(_) => {}
        }
    }
    Ok(readable)
}

/// One page of what an ordered map holds.
pub(super) fn list<'a, T: Clone + 'a>(
    items: impl Iterator<Item = &'a T>,
    total: usize,
    page: Page,
) -> Listing<T> {
    let offset = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let items = items.skip(offset).take(page.limit as usize).cloned().collect();
    Listing::new(items, total as u64)
}
