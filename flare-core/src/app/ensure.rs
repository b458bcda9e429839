//! Takes what a host wants to be there whenever it starts; gives it, made now or long ago, or says in
//! what the one that is there differs.

use serde::Serialize;

use super::flare::Flare;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    DocumentUrl, Invalid, NewResource, Resource, ResourceId, Subscription, SubscriptionSpec,
};
use crate::port::Page;

/// Subscriptions that are read at a time.
const PAGE: u32 = 100;

impl Flare {
    /// Creates a kind of document, unless it is there already: what a host that starts again on the
    /// same stores calls. A conflict, naming what differs, if there is another with that endpoint.
    pub async fn ensure_resource(&self, new: NewResource) -> Result<Resource> {
        const OPERATION: &str = "ensure_resource";
        let invalid = |invalid| Error::invalid(OPERATION, invalid);
        let (endpoint, change) = new.check().map_err(invalid)?;
        let conflict = match self.create_resource(new).await {
            Err(error) if error.kind() == ErrorKind::Conflict => error.during(OPERATION),
            created => return created.map_err(|error| error.during(OPERATION)),
        };
        // Whatever clashes with the endpoint matches what it matches.
        let sample = endpoint.fill(endpoint.wildcards().map(|_| "x")).map_err(invalid)?;
        let url = DocumentUrl::parse(&sample).map_err(invalid)?;
        let matching = self.context().repository.match_resources(vec![url]).await?;
        let key = endpoint.conflict_key();
        let found = matching.into_iter().flatten().find(|it| it.endpoint.conflict_key() == key);
        let Some(found) = found else { return Err(conflict) };
        let differs = |field: &'static str, there: &str| {
            let detail = format!("resource {} has {there} instead", found.id);
            Err(Error::new(ErrorKind::Conflict, OPERATION).with_field(field).with_detail(detail))
        };
        if found.endpoint != endpoint {
            return differs("endpoint", found.endpoint.as_str());
        }
        if found.change.field() != change.field() {
            return differs("change.field", found.change.field().as_str());
        }
        if found.change.format() != change.format() {
            return differs("change.format", found.change.format().as_str().unwrap_or("none"));
        }
        Ok(found)
    }

    /// Creates a subscription, unless the same is there already: what a host that starts again on the
    /// same stores calls. A conflict, naming what differs, if another subscription of the resource
    /// has its URL.
    pub async fn ensure_subscription<S>(
        &self,
        resource: ResourceId,
        spec: S,
    ) -> Result<Subscription>
    where
        S: TryInto<SubscriptionSpec>,
        S::Error: Into<Invalid>,
    {
        const OPERATION: &str = "ensure_subscription";
        let spec = spec.try_into().map_err(|error| Error::invalid(OPERATION, error.into()))?;
        let conflict = match self.create_subscription(resource, spec.clone()).await {
            Err(error) if error.kind() == ErrorKind::Conflict => error.during(OPERATION),
            created => return created.map_err(|error| error.during(OPERATION)),
        };
        let urls: Vec<String> = spec.urls().into_iter().collect();
        let mut read = 0;
        loop {
            let listed = self.subscriptions(resource, Page::new(PAGE, read)).await?;
            read += listed.items.len() as u64 + listed.unreadable.len() as u64;
            let done = listed.items.is_empty() && listed.unreadable.is_empty();
            let clashes =
                |it: &Subscription| it.spec.urls().into_iter().any(|url| urls.contains(&url));
            match listed.items.into_iter().find(clashes) {
                Some(found) if is_same(&spec, &found.spec) => return Ok(found),
                Some(found) => {
                    let field =
                        difference(&spec, &found.spec).unwrap_or_else(|| "endpoint".to_owned());
                    let detail = format!("subscription {} has another one", found.id);
                    let error = Error::new(ErrorKind::Conflict, OPERATION);
                    return Err(error.with_field(field).with_detail(detail));
                }
                // Deleted since, or one that cannot be read.
                None if done => return Err(conflict),
                None => {}
            }
        }
    }
}

/// Whether one is there as it is wanted, whatever a newer version keeps with it.
fn is_same(wanted: &SubscriptionSpec, there: &SubscriptionSpec) -> bool {
    let there = SubscriptionSpec { kept: wanted.kept.clone(), ..there.clone() };
    *wanted == there
}

/// The first field in which two of them differ, as a path.
fn difference(wanted: &SubscriptionSpec, there: &SubscriptionSpec) -> Option<String> {
    if wanted.signing() != there.signing() {
        return Some("signing".to_owned());
    }
    // As they are stored, as what is shown hides credentials; of it the path alone is told.
    first_difference("", &shown(&wanted.stored())?, &shown(&there.stored())?)
}

fn shown(value: &impl Serialize) -> Option<serde_json::Value> {
    serde_json::to_value(value).ok()
}

fn first_difference(
    path: &str,
    wanted: &serde_json::Value,
    there: &serde_json::Value,
) -> Option<String> {
    if wanted == there {
        return None;
    }
    let (Some(a), Some(b)) = (wanted.as_object(), there.as_object()) else {
        return Some(path.to_owned());
    };
    let null = serde_json::Value::Null;
    let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    let mut keys = keys.map(|key| {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        first_difference(&path, a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null))
    });
    keys.find_map(|found| found)
}
