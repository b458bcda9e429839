//! Takes a mapping and a message to try it on; gives what would be put, deleted or rejected. Stores nothing.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::flare::Flare;
use crate::error::{Error, Result};
use crate::filter::MessageExpression;
use crate::model::consumer::{
    MappedChange, MappedDocument, Mapping, MappingInput, RejectReason, Rejection,
};
use crate::model::{DocumentUrl, Invalid, Resource, ResourceId, ShownRevision};
use crate::pipeline::ingest::match_all;

/// What would become of one document that a message is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TriedDocument {
    /// Which document.
    pub url: DocumentUrl,
    /// Of which resource.
    pub resource: ResourceId,
    /// Its revision; of one that would be deleted as of the newest stored there is none.
    pub revision: Option<ShownRevision>,
    /// Its content; one that would be deleted has none.
    pub content: Option<Bytes>,
}

impl Flare {
    /// Tries a mapping on a message, without storing anything: what would be put or deleted, and why parts of it
    /// would not. A mapping that is wrong is refused with its field, as `document.url`.
    pub async fn test_mapping(
        &self,
        mapping: MappingInput,
        message: &[u8],
    ) -> Result<Vec<Result<TriedDocument, Rejection>>> {
        const OPERATION: &str = "test_mapping";
        let refused = |invalid: Invalid| Error::invalid(OPERATION, invalid.within("document"));
        let mapping = Mapping::new(mapping).map_err(refused)?;
        let expression = mapping.expression().map(MessageExpression::new).transpose();
        let expression =
            expression.map_err(|invalid| refused(invalid.within("delete")))?.unwrap_or_default();
        let judge = |_: &_, message: &[u8]| expression.is_true_of(message);
        let urls = mapping.urls(message);
        let found = urls.iter().flatten().cloned();
        let mut matched = match_all(self.context(), found).await.into_iter();
        let mut mapped: BTreeMap<ResourceId, Vec<Result<MappedDocument, Rejection>>> =
            BTreeMap::new();
        let mut tried = Vec::with_capacity(urls.len());
        for (place, url) in urls.into_iter().enumerate() {
            let url = match url {
                Ok(url) => url,
                Err(rejection) => {
                    tried.push(Err(rejection));
                    continue;
                }
            };
            let resources = matched.next().transpose()?.unwrap_or_default();
            let Some(resource) = resources.into_iter().next() else {
                let detail = format!("{url} matches the endpoint of no resource");
                tried.push(Err(Rejection::new(RejectReason::OtherResource, "", detail)));
                continue;
            };
            let all = mapped
                .entry(resource.id)
                .or_insert_with(|| mapping.map(&resource, message, &judge));
            let one = all.get(place).cloned();
            tried.extend(one.map(|mapped| mapped.map(|mapped| shown(&resource, mapped))));
        }
        Ok(tried)
    }
}

fn shown(resource: &Resource, mapped: MappedDocument) -> TriedDocument {
    let (revision, content) = match mapped.change {
        // The mapping has read it already, so it can be read.
        MappedChange::Put(content) => (resource.change.read(&content).ok(), Some(content)),
        MappedChange::Delete(revision) => (revision, None),
    };
    let revision = revision.map(|revision| resource.change.shown(revision));
    TriedDocument { url: mapped.url, resource: resource.id, revision, content }
}
