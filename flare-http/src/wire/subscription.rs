//! Takes a subscription as a user writes it, or as Flare knows it; gives the other.

use flare_core::model::{
    Invalid, ResourceId, Subscription, SubscriptionId, SubscriptionInput, SubscriptionSpec,
};
use flare_core::port::{Listing, Page};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::data::{Data, DataValue};
use super::delivery::{Content, Delivery};
use super::endpoint::Endpoint;
use super::page::Pagination;
use super::signing::{SigningGiven, SigningShown};
use super::unreadable::{Listed, ListedSubscription};
use super::word::{ModeWord, StatusWord, Word};

/// A client's wish to be told, as it is asked for. Null means not given, but for `signing`, where it
/// removes.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSubscription, example = json!({
    "endpoint": {"url": "http://client.example.com/users/{id}"},
    "delivery": {"concurrency": 4, "ttl": "72h"},
    "data": {"tenant": "acme"},
    "signing": {"secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}
}))]
pub(crate) struct NewSubscription {
    #[schema(required = true, nullable = false)]
    endpoint: Option<Endpoint>,
    delivery: Option<Delivery>,
    content: Option<Content>,
    /// The client's own values, sent along; needs the envelope.
    #[schema(value_type = Option<BTreeMap<String, DataValue>>)]
    data: Option<Data>,
    /// Which documents the client should have: a CEL expression over `document`, `revision` and `params`,
    /// the wildcard values of its URL.
    #[schema(max_length = 4096)]
    filter: Option<String>,
    /// Absent keeps the secrets there are, null removes them.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<SigningGiven>)]
    signing: Option<Option<SigningGiven>>,
    /// Active unless set; passive: nothing is sent until the client asks.
    mode: Option<ModeWord>,
    /// Whether the documents present at creation are delivered; not unless set.
    backfill: Option<bool>,
}

/// Tells null, which is `Some(None)`, from what is not given.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl TryFrom<NewSubscription> for SubscriptionInput {
    type Error = Invalid;

    fn try_from(new: NewSubscription) -> Result<Self, Invalid> {
        let mut builder = SubscriptionSpec::builder();
        builder = new.endpoint.unwrap_or_default().give(builder);
        builder = new.delivery.unwrap_or_default().give(builder)?;
        builder = new.content.unwrap_or_default().give(builder);
        if let Some(data) = new.data {
            let data = data.try_into().map_err(|invalid: Invalid| invalid.within("data"))?;
            builder = builder.all_data(data);
        }
        if let Some(filter) = new.filter {
            builder = builder.filter(filter);
        }
        if let Some(Some(signing)) = &new.signing {
            let required = || Invalid::new("signing.secrets", "is required");
            builder = builder.signing(&signing.secrets.as_ref().ok_or_else(required)?.0);
        }
        if let Some(Word(mode)) = new.mode {
            builder = builder.mode(mode);
        }
        let input = Self::from(builder.backfill(new.backfill.unwrap_or_default()).build()?);
        Ok(if let Some(None) = new.signing { input.without_signing() } else { input })
    }
}

/// A client's wish to be told, and where it stands. Defaults are written out.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Subscription)]
pub(crate) struct SubscriptionView {
    /// What it is known by.
    #[schema(value_type = String, format = "uuid")]
    id: SubscriptionId,
    /// Whose documents it is about.
    #[schema(value_type = String, format = "uuid")]
    resource: ResourceId,
    /// Raised by every change of it; also its `ETag`.
    generation: u64,
    endpoint: Endpoint,
    delivery: Delivery,
    content: Content,
    /// The client's own values, sent along.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<BTreeMap<String, DataValue>>)]
    data: Option<Data>,
    /// Which documents the client should have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    signing: Option<SigningShown>,
    mode: ModeWord,
    /// Whether the documents present at creation are delivered.
    backfill: bool,
    status: StatusWord,
    /// Why it stands there, if not by the user's wish.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl From<Subscription> for SubscriptionView {
    fn from(subscription: Subscription) -> Self {
        let spec = &subscription.spec;
        Self {
            id: subscription.id,
            resource: subscription.resource,
            generation: subscription.generation.get(),
            endpoint: spec.endpoint().into(),
            delivery: spec.delivery().into(),
            content: spec.content().into(),
            data: spec.data().map(Data::from),
            filter: spec.filter().map(|filter| filter.as_str().to_owned()),
            signing: spec.signing().map(SigningShown::from),
            mode: Word(spec.mode()),
            backfill: spec.backfill(),
            status: Word(subscription.status),
            reason: subscription.reason,
            created_at: subscription.created_at.to_string(),
            updated_at: subscription.updated_at.to_string(),
        }
    }
}

/// A page of subscriptions.
#[derive(Serialize, ToSchema)]
pub(crate) struct SubscriptionList {
    pagination: Pagination,
    #[schema(value_type = Vec<ListedSubscription>)]
    subscriptions: Vec<Listed<SubscriptionView>>,
}

impl SubscriptionList {
    pub(crate) fn new(page: Page, listing: Listing<Subscription>) -> Self {
        let items = listing.items.into_iter().map(|it| (it.id.to_string(), it.into()));
        let subscriptions = Listed::page(items, &listing.unreadable);
        Self { pagination: Pagination::new(page, listing.total), subscriptions }
    }
}

/// A page of the subscriptions of a consumer's resource.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProducerList {
    pagination: Pagination,
    #[schema(value_type = Vec<ListedSubscription>)]
    producers: Vec<Listed<SubscriptionView>>,
}

impl ProducerList {
    pub(crate) fn new(page: Page, listing: Listing<Subscription>) -> Self {
        let SubscriptionList { pagination, subscriptions } = SubscriptionList::new(page, listing);
        Self { pagination, producers: subscriptions }
    }
}

/// The path of a subscription.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SubscriptionPath {
    /// The id of the resource.
    #[param(format = "uuid")]
    pub(crate) rid: String,
    /// The id of the subscription.
    #[param(format = "uuid")]
    pub(crate) id: String,
}
