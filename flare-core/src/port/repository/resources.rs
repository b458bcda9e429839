//! Takes kinds of documents; gives them back by id and by URL.

use std::fmt;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::{DocumentUrl, Resource, ResourceId, ResourceState};
use crate::port::{Listing, Page};

/// Keeps resources.
///
/// # Contract
/// - **RE1** Of resources whose endpoints conflict at most one is active or deleting: of any
///   number of concurrent inserts one succeeds, the others are
///   [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) on `endpoint`. Inserting the very same
///   resource (same id) again is no error and changes nothing, whatever became of it meanwhile.
/// - **RE2** `resource` gives back what was inserted, byte for byte, in whatever state.
/// - **RE3** `match_resources` gives every *active* resource whose endpoint matches, the most
///   specific one first, read from the store, so that one whose insert returned anywhere is seen;
///   one answer per URL, in their order, however often one is named.
/// - **RE4** `list_resources` gives active ones, oldest first (by id), with their total.
/// - **RE5** `move_resource` changes the state only from the one named, and tells whether it did.
///   A deleted one frees its endpoint in the same write and never changes state again.
/// - **RE6** `remove_resource` forgets a deleted resource; any other, or none, it leaves alone.
#[async_trait]
pub trait ResourceStore: fmt::Debug + Send + Sync + 'static {
    /// Stores a new resource.
    async fn insert_resource(&self, resource: Resource) -> Result<()>;

    /// Reads a resource, in whatever state it is.
    async fn resource(&self, id: ResourceId) -> Result<Option<Resource>>;

    /// Finds the resources each document may belong to, the most specific one first; one answer
    /// per URL.
    async fn match_resources(&self, urls: Vec<DocumentUrl>) -> Result<Vec<Vec<Resource>>>;

    /// Reads one page of the active resources.
    async fn list_resources(&self, page: Page) -> Result<Listing<Resource>>;

    /// Moves a resource from one state to another, if it is in the former.
    async fn move_resource(
        &self,
        id: ResourceId,
        from: ResourceState,
        to: ResourceState,
    ) -> Result<bool>;

    /// Forgets a deleted resource.
    async fn remove_resource(&self, id: ResourceId) -> Result<()>;
}
