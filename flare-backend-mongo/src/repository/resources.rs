//! Takes kinds of documents; gives them back by id, and by URL through an index over the segments
//! of their endpoints.
//!
//! A record: `{_id, resource (JSON), state, endpoint? (while it is taken), active? (true), origin,
//! length, s0 … s5, needs?}`, where a segment is its text or `*`.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use flare_core::model::{DocumentUrl, Endpoint, RecordKind, Resource, ResourceId, ResourceState};
use flare_core::port::{Listing, Page, ResourceStore};
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::{Document, RawDocumentBuf, doc};

use super::MongoRepository;
use super::schema::INDEXED_SEGMENTS;
use crate::BACKEND;
use crate::error::{self, DUPLICATE_KEY};
use crate::record::{self, Record};
use crate::unreadable::read_partly;

const KIND: RecordKind = RecordKind::Resource;
const WILDCARD: &str = "*";
const STATES: [ResourceState; 3] =
    [ResourceState::Active, ResourceState::Deleting, ResourceState::Deleted];

fn state_text(state: ResourceState) -> &'static str {
    match state {
        ResourceState::Active => "active",
        ResourceState::Deleting => "deleting",
        ResourceState::Deleted => "deleted",
    }
}

pub(super) fn read_resource(record: Record<'_>) -> Result<Resource> {
    let mut resource: Resource = serde_json::from_str(record.text("resource")?)
        .map_err(|error| record.corrupt("resource").with_source(error))?;
    resource.state = match record.text("state")? {
        "active" => ResourceState::Active,
        "deleting" => ResourceState::Deleting,
        "deleted" => ResourceState::Deleted,
        _ => return Err(record.corrupt("state")),
    };
    Ok(resource)
}

/// A resource that may match, as far as it can be read.
pub(super) struct Candidate {
    endpoint: Endpoint,
    read: Result<Resource>,
}

/// Of one that cannot be read the endpoint is also in the index, its wildcards without names.
pub(super) fn read_candidate(record: Record<'_>, broken: Option<Error>) -> Result<Candidate> {
    let read = match broken {
        None => record.whole(KIND, read_resource),
        Some(error) => Err(error),
    };
    match read {
        Ok(resource) => Ok(Candidate { endpoint: resource.endpoint.clone(), read: Ok(resource) }),
        Err(error) => {
            let endpoint = named(record.text("endpoint")?);
            let endpoint = Endpoint::parse(&endpoint).map_err(|_| record.corrupt("endpoint"))?;
            Ok(Candidate { endpoint, read: Err(error) })
        }
    }
}

/// An endpoint as it is compared with others, with names for its wildcards.
fn named(key: &str) -> String {
    let named = |(place, part): (usize, &str)| match part {
        WILDCARD => format!("{{w{place}}}"),
        part => part.to_owned(),
    };
    key.split('/').enumerate().map(named).collect::<Vec<_>>().join("/")
}

pub(super) fn write_resource(resource: &Resource) -> Result<Document> {
    let text = serde_json::to_string(resource).map_err(|error| {
        Error::new(ErrorKind::Internal, "insert_resource").with_backend(BACKEND).with_source(error)
    })?;
    let key = resource.endpoint.conflict_key();
    let origin = resource.endpoint.authority().to_owned();
    let segments: Vec<&str> = key[origin.len()..].split('/').skip(1).collect();
    let mut record = doc! {
        "_id": record::id(resource.id.as_bytes()),
        "resource": text,
        "state": state_text(resource.state),
        "origin": origin,
        "length": segments.len() as i64,
    };
    for (place, segment) in segments.iter().enumerate().take(INDEXED_SEGMENTS) {
        record.insert(format!("s{place}"), *segment);
    }
    if resource.state == ResourceState::Active {
        record.insert("active", true);
    }
    if resource.state != ResourceState::Deleted {
        record.insert("endpoint", key);
    }
    Ok(record)
}

/// The questions that find every resource that could match one of the URLs: one per origin and
/// length of path, each with the segments that occur at each place.
fn candidates(urls: &[DocumentUrl]) -> Vec<Document> {
    let mut groups: BTreeMap<(&str, usize), Vec<BTreeSet<&str>>> = BTreeMap::new();
    for url in urls {
        let segments: Vec<&str> = url.segments().collect();
        let group = groups.entry((url.authority(), segments.len())).or_default();
        group.resize_with(segments.len().min(INDEXED_SEGMENTS), BTreeSet::new);
        for (seen, segment) in group.iter_mut().zip(segments) {
            seen.insert(segment);
        }
    }
    let question = |((origin, length), places): ((&str, usize), Vec<BTreeSet<&str>>)| {
        let mut question = doc! { "active": true, "origin": origin, "length": length as i64 };
        for (place, mut segments) in places.into_iter().enumerate() {
            segments.insert(WILDCARD);
            let segments: Vec<&str> = segments.into_iter().collect();
            question.insert(format!("s{place}"), doc! { "$in": segments });
        }
        question
    };
    groups.into_iter().map(question).collect()
}

#[async_trait]
impl ResourceStore for MongoRepository {
    async fn insert_resource(&self, resource: Resource) -> Result<()> {
        const OPERATION: &str = "insert_resource";
        let record = write_resource(&resource)?;
        let resources = &self.stored.resources;
        let call = resources.insert_one(record);
        match self.connection.reach(OPERATION, async { Ok(call.await) }).await? {
            Ok(_) => Ok(()),
            Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => {
                // The very same one is welcome again, whatever became of it.
                if self.resource(resource.id).await?.is_some() {
                    return Ok(());
                }
                let detail =
                    format!("{} conflicts with another resource", resource.endpoint.as_str());
                Err(Error::new(ErrorKind::Conflict, OPERATION)
                    .with_backend(BACKEND)
                    .with_field("endpoint")
                    .with_detail(detail))
            }
            Err(error) => Err(error::from_driver(OPERATION, error)),
        }
    }

    async fn resource(&self, id: ResourceId) -> Result<Option<Resource>> {
        let one = doc! { "_id": record::id(id.as_bytes()) };
        let question = self.stored.resources.find(one).limit(1);
        self.connection.each("resource", KIND, question, read_resource).await?.pop().transpose()
    }

    async fn match_resources(&self, urls: Vec<DocumentUrl>) -> Result<Vec<Vec<Resource>>> {
        let mut questions = candidates(&urls);
        let question = match questions.len() {
            0 => return Ok(Vec::new()),
            1 => questions.remove(0),
            _ => doc! { "$or": questions },
        };
        const OPERATION: &str = "match_resources";
        let found = self.stored.resources.find(question);
        let found = self.puts.raw(OPERATION, found).await?;
        let read = |raw: &RawDocumentBuf| read_partly(OPERATION, KIND, raw, read_candidate).ok();
        // One whose endpoint cannot be read either is in nobody's way.
        let mut found: Vec<Candidate> = found.iter().filter_map(read).collect();
        found.sort_by(|a, b| a.endpoint.cmp_specificity(&b.endpoint));
        let matching = |url: &DocumentUrl| {
            let fits = |candidate: &&Candidate| candidate.endpoint.matches(url).is_some();
            let mut matching = found.iter().filter(fits);
            // The first is where it belongs: one that cannot be read must not be passed over.
            let Some(first) = matching.next() else { return Ok(Vec::new()) };
            let first = first.read.clone()?;
            let others = matching.filter_map(|candidate| candidate.read.clone().ok());
            Ok(std::iter::once(first).chain(others).collect())
        };
        urls.iter().map(matching).collect()
    }

    async fn list_resources(&self, page: Page) -> Result<Listing<Resource>> {
        const OPERATION: &str = "list_resources";
        let resources = &self.stored.resources;
        let active = doc! { "active": true };
        let total =
            self.connection.run(OPERATION, resources.count_documents(active.clone())).await?;
        let question = resources
            .find(active)
            .sort(doc! { "_id": 1 })
            .skip(page.offset)
            .limit(i64::from(page.limit));
        if page.limit == 0 || page.offset >= total {
            return Ok(Listing::new(Vec::new(), total));
        }
        let read = self.connection.each(OPERATION, KIND, question, read_resource).await?;
        Listing::of_read(read, total)
    }

    async fn move_resource(
        &self,
        id: ResourceId,
        from: ResourceState,
        to: ResourceState,
    ) -> Result<bool> {
        // The last state is the last.
        if from == ResourceState::Deleted {
            return Ok(false);
        }
        let mut unset = Document::new();
        let mut set = doc! { "state": state_text(to) };
        if to == ResourceState::Active {
            set.insert("active", true);
        } else {
            unset.insert("active", "");
        }
        if to == ResourceState::Deleted {
            unset.insert("endpoint", "");
        }
        let mut update = doc! { "$set": set };
        if !unset.is_empty() {
            update.insert("$unset", unset);
        }
        // What follows from the state says it too, and of a damaged record perhaps alone.
        let derived = match from {
            ResourceState::Active => doc! { "active": true },
            ResourceState::Deleting | ResourceState::Deleted => {
                doc! { "active": { "$exists": false }, "endpoint": { "$exists": true } }
            }
        };
        let known: Vec<&str> = STATES.map(state_text).to_vec();
        let unknown = doc! { "$and": [{ "state": { "$nin": known } }, derived] };
        let filter = doc! {
            "_id": record::id(id.as_bytes()),
            "$or": [{ "state": state_text(from) }, unknown],
        };
        let call = self.stored.resources.update_one(filter, update);
        Ok(self.connection.run("move_resource", call).await?.matched_count == 1)
    }

    async fn remove_resource(&self, id: ResourceId) -> Result<()> {
        let filter = doc! { "_id": record::id(id.as_bytes()), "state": "deleted" };
        let call = self.stored.resources.delete_one(filter);
        self.connection.run("remove_resource", call).await.map(|_| ())
    }
}
