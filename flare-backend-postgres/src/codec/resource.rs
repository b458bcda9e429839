//! Takes resources' records; gives resources, and of one that cannot be read its endpoint.

use flare_core::model::{
    Endpoint, RecordName, Resource, ResourceId, ResourceState, Unreadable, WhyUnreadable,
};
use flare_core::{Error, ErrorKind, Result};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Decoded, check_needs, damaged, read_word, unreadable, word};
use crate::error;

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredResource {
    id: Uuid,
    record: String,
    state: String,
    endpoint: Option<String>,
    needs: Option<i32>,
}

impl StoredResource {
    /// Reads `id, record, state, endpoint, needs`.
    pub(crate) fn of(row: &Row) -> std::result::Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get(0)?,
            record: row.try_get(1)?,
            state: row.try_get(2)?,
            endpoint: row.try_get(3)?,
            needs: row.try_get(4)?,
        })
    }

    /// The resource, or the error that names it.
    pub(crate) fn resource(&self, operation: &'static str) -> Result<Resource> {
        self.read().map_err(|why| unreadable(operation, self.unreadable(why)))
    }

    fn read(&self) -> Decoded<Resource> {
        check_needs(self.needs)?;
        let mut resource: Resource =
            serde_json::from_str(&self.record).map_err(|_| damaged("record"))?;
        resource.id = ResourceId::from_bytes(self.id.into_bytes());
        resource.state = read_word(&self.state, "state")?;
        Ok(resource)
    }

    fn unreadable(&self, why: WhyUnreadable) -> Unreadable {
        let name = RecordName::Resource(ResourceId::from_bytes(self.id.into_bytes()));
        Unreadable::new(name, why).deleted(self.state == word(ResourceState::Deleted))
    }

    /// Where its documents are, whatever becomes of the rest: of one that cannot be read, from the key that
    /// endpoints are compared by, in which wildcards have no names.
    pub(crate) fn endpoint(&self) -> Option<Endpoint> {
        match self.read() {
            Ok(resource) => Some(resource.endpoint),
            Err(_) => Endpoint::parse(&named(self.endpoint.as_deref()?)).ok(),
        }
    }
}

/// A resource's record, without the state, which has a column of its own.
pub(crate) fn record(resource: &Resource) -> Result<String> {
    serde_json::to_string(resource).map_err(|error| internal("insert_resource", error))
}

/// A value that could not be written down: a fault of ours.
pub(crate) fn internal(
    operation: &'static str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    error::of(ErrorKind::Internal, operation, "it cannot be written as JSON").with_source(error)
}

/// An endpoint as it is compared with others, with names for its wildcards.
fn named(key: &str) -> String {
    let named = |(place, part): (usize, &str)| match part {
        "*" => format!("{{w{place}}}"),
        part => part.to_owned(),
    };
    key.split('/').enumerate().map(named).collect::<Vec<_>>().join("/")
}
