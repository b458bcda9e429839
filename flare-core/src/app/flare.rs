//! Takes what a host wants of Flare; gives it, or a typed error. Cheap to clone; holds no task.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tracing::{Instrument, debug_span};

use super::backend::Backend;
use super::builder::FlareBuilder;
use super::settled::settled;
use crate::cluster::ClusterHandle;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    Actor, AuditAction, AuditSubject, Document, DocumentChange, DocumentUrl, GivenRevision,
    NewResource, Resource, ResourceId, TraceContext,
};
use crate::observe;
use crate::pipeline::EventListener;
use crate::pipeline::context::Context;
use crate::pipeline::ingest::{Change, ChangeOperation, Ingest, find_resources};
use crate::pipeline::moves::find;
use crate::port::{Listing, Page, Upkeep};

/// The handle a host keeps: takes documents, resources and subscriptions, tells what happened.
///
/// It works on its own: puts are stored and answered even while no runtime runs. Delivering is
/// the [`Runtime`](crate::Runtime)'s.
#[derive(Clone)]
pub struct Flare {
    inner: Arc<FlareParts>,
    /// Who asks for what is asked of it.
    pub(super) actor: Arc<Actor>,
}

struct FlareParts {
    context: Arc<Context>,
    ingest: Arc<Ingest>,
    cluster: ClusterHandle,
    /// What keeps the repository in order, if its backend brought it.
    upkeep: Option<Arc<dyn Upkeep>>,
}

impl Flare {
    /// Starts putting a Flare together on a backend.
    pub fn builder(backend: impl Into<Backend>) -> FlareBuilder {
        FlareBuilder::new(backend.into())
    }

    pub(super) fn new(
        context: Arc<Context>,
        ingest: Arc<Ingest>,
        cluster: ClusterHandle,
        upkeep: Option<Arc<dyn Upkeep>>,
    ) -> Self {
        let inner = Arc::new(FlareParts { context, ingest, cluster, upkeep });
        Self { inner, actor: Arc::new(Actor::Host) }
    }

    pub(super) fn upkeep(&self) -> Option<&Arc<dyn Upkeep>> {
        self.inner.upkeep.as_ref()
    }

    /// This node's part in the cluster of its stores: its incarnation, weight and load.
    pub fn member(&self) -> &ClusterHandle {
        &self.inner.cluster
    }

    pub(super) fn context(&self) -> &Context {
        &self.inner.context
    }

    /// Creates a kind of document.
    pub async fn create_resource(&self, new: NewResource) -> Result<Resource> {
        let (endpoint, change) =
            new.check().map_err(|invalid| Error::invalid("create_resource", invalid))?;
        let now = self.context().time().await?;
        let id = self.context().ids.next(now).into();
        let resource = Resource::new(id, endpoint, change, now);
        let inserted = self.context().repository.insert_resource(resource.clone()).await;
        inserted.map_err(|error| error.during("create_resource"))?;
        let endpoint = resource.endpoint.to_string();
        self.tell(AuditAction::Created, AuditSubject::resource(resource.id), endpoint);
        Ok(resource)
    }

    /// Reads a resource.
    pub async fn resource(&self, id: ResourceId) -> Result<Resource> {
        self.active_resource("resource", id).await
    }

    /// Lists resources, oldest first.
    pub async fn resources(&self, page: Page) -> Result<Listing<Resource>> {
        let listing = self.context().repository.list_resources(page).await?;
        listing.unreadable.iter().for_each(|it| self.context().note_unreadable(it));
        Ok(listing)
    }

    /// Hands over a new version of a document, anything that serializes to a JSON object.
    ///
    /// Once this returns, the version is stored and will reach every subscription that existed
    /// before the call.
    pub async fn put_document<T: Serialize + ?Sized>(
        &self,
        url: &str,
        document: &T,
    ) -> Result<DocumentChange> {
        let json = serde_json::to_vec(document).map_err(|source| {
            Error::new(ErrorKind::Invalid, "put_document")
                .with_field("document")
                .with_detail("cannot be written as JSON")
                .with_source(source)
        })?;
        self.put_json(url, json).await
    }

    /// Hands over a new version of a document as JSON text, which is kept byte for byte.
    pub async fn put_json(&self, url: &str, json: impl Into<Bytes>) -> Result<DocumentChange> {
        self.put_traced(url, json, None).await
    }

    /// As [`put_json`](Self::put_json), within a trace that clients are told of.
    pub async fn put_traced(
        &self,
        url: &str,
        json: impl Into<Bytes>,
        trace: Option<TraceContext>,
    ) -> Result<DocumentChange> {
        let change =
            Change { url: url.to_owned(), operation: ChangeOperation::Put(json.into()), trace };
        self.one("put_document", change).await
    }

    /// Hands over many documents at once; one answer per document, in their order.
    pub async fn put_documents<U, J>(
        &self,
        documents: impl IntoIterator<Item = (U, J)>,
    ) -> Vec<Result<DocumentChange>>
    where
        U: Into<String>,
        J: Into<Bytes>,
    {
        let change = |(url, json): (U, J)| Change {
            url: url.into(),
            operation: ChangeOperation::Put(json.into()),
            trace: None,
        };
        let changes = documents.into_iter().map(change).collect();
        self.accept("put_documents", changes).await
    }

    /// Says that a document is gone, as of the newest revision stored.
    pub async fn delete_document(&self, url: &str) -> Result<DocumentChange> {
        self.delete_traced(url, None, None).await
    }

    /// Says that a document is gone as of a revision: an integer or, where the resource has a
    /// format, RFC 3339, as Flare shows it.
    pub async fn delete_document_at(
        &self,
        url: &str,
        revision: impl Into<GivenRevision>,
    ) -> Result<DocumentChange> {
        let revision = revision.into();
        self.delete_traced(url, Some(revision.as_str()), None).await
    }

    /// As [`delete_document`](Self::delete_document) and
    /// [`delete_document_at`](Self::delete_document_at), within a trace that clients are told of.
    pub async fn delete_traced(
        &self,
        url: &str,
        revision: Option<&str>,
        trace: Option<TraceContext>,
    ) -> Result<DocumentChange> {
        let operation = ChangeOperation::Delete(revision.map(str::to_owned));
        let change = Change { url: url.to_owned(), operation, trace };
        self.one("delete_document", change).await
    }

    async fn one(&self, operation: &'static str, change: Change) -> Result<DocumentChange> {
        let answer = self.accept(operation, vec![change]).await.pop();
        answer.unwrap_or_else(|| Err(Error::new(ErrorKind::Internal, operation)))
    }

    pub(super) async fn accept(
        &self,
        operation: &'static str,
        changes: Vec<Change>,
    ) -> Vec<Result<DocumentChange>> {
        if !self.member().roles().ingests {
            let refused = || Error::new(ErrorKind::Unavailable, operation);
            let detail = "this node only works: hand documents to another one";
            return changes.iter().map(|_| Err(refused().with_detail(detail))).collect();
        }
        let span = debug_span!(observe::PUT, documents = changes.len());
        self.inner.ingest.accept(operation, changes).instrument(span).await
    }

    /// Reads the newest version of a document; one that is deleted is not found.
    pub async fn document(&self, url: &str) -> Result<Document> {
        const OPERATION: &str = "document";
        let url = DocumentUrl::parse(url).map_err(|it| Error::invalid(OPERATION, it))?;
        let resources = find_resources(self.context(), OPERATION, &url).await?;
        let found = find(self.context(), url.clone(), resources).await?;
        found.ok_or_else(|| not_found(OPERATION, "document", &url))
    }

    /// What happens from now on.
    pub fn events(&self) -> EventListener {
        self.context().events.subscribe()
    }

    /// Waits until every change is spread, every backfill and resync is done and every client has the
    /// newest version of everything; meant for tests. Gives up after `limit`, saying what is left.
    ///
    /// What this handle's runtime counted is stored then: the status of a subscription is right at
    /// once. What other processes counted follows within a second.
    pub async fn settled(&self, limit: Duration) -> Result<()> {
        settled(self.context(), limit).await
    }
}

/// A subscription was changed since the caller read it.
pub(super) fn changed(operation: &'static str) -> Error {
    let error = Error::new(ErrorKind::Conflict, operation).with_field("generation");
    error.with_detail("the subscription has changed since it was read")
}

pub(super) fn not_found(operation: &'static str, what: &str, id: &dyn fmt::Display) -> Error {
    Error::new(ErrorKind::NotFound, operation).with_detail(format!("there is no {what} {id}"))
}

impl fmt::Debug for Flare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flare").field("context", &self.inner.context).finish()
    }
}
