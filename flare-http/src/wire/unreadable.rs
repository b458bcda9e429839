//! Takes a record that this version cannot read; gives it as lists, reads and the node's status show
//! it, among those that can be read.

use flare_core::model::{Unreadable, WhyUnreadable};
use serde::Serialize;
use utoipa::openapi::schema::OneOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::audit::EntryView;
use super::consumer::ConsumerView;
use super::deliveries::DeliveryView;
use super::job::JobView;
use super::reject::RejectView;
use super::resource::ResourceView;
use super::subscription::SubscriptionView;

/// Something that this version cannot read. Nothing is sent for it here; it can be deleted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Unreadable)]
pub(crate) struct UnreadableView {
    /// What it is known by.
    id: String,
    /// Whose documents it is about, if that is known: subscriptions and consumers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resource: Option<String>,
    status: UnreadableWord,
    /// Why it cannot be read.
    reason: String,
}

/// What stands in place of a status.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = UnreadableStatus)]
pub(crate) enum UnreadableWord {
    Unreadable,
}

impl From<&Unreadable> for UnreadableView {
    fn from(unreadable: &Unreadable) -> Self {
        Self {
            id: unreadable.record.to_string(),
            resource: unreadable.resource.map(|id| id.to_string()),
            status: UnreadableWord::Unreadable,
            reason: unreadable.why.to_string(),
        }
    }
}

/// A record that this node met of late and could not read.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UnreadableRecord)]
pub(crate) struct UnreadableRecordView {
    /// What kind of thing it is: `resource`, `subscription`, `consumer`, `document`, `row`, `lane`, `job`,
    /// `reject`, `audit` or `task`.
    kind: &'static str,
    /// What it is called.
    id: String,
    /// Why it cannot be read.
    reason: String,
    /// Whether a newer version of Flare can read it.
    newer: bool,
}

impl From<&Unreadable> for UnreadableRecordView {
    fn from(unreadable: &Unreadable) -> Self {
        Self {
            kind: unreadable.record.kind().as_str(),
            id: unreadable.record.to_string(),
            reason: unreadable.why.to_string(),
            newer: matches!(unreadable.why, WhyUnreadable::Newer { .. }),
        }
    }
}

/// One of a list: as it is, or what is known of one that cannot be read.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Listed<T> {
    Readable(T),
    Unreadable(UnreadableView),
}

impl<T> Listed<T> {
    /// All of a page in the order of their ids, which is that of their creation.
    pub(crate) fn page(
        items: impl IntoIterator<Item = (String, T)>,
        unreadable: &[Unreadable],
    ) -> Vec<Self> {
        let readable = items.into_iter().map(|(id, item)| (id, Self::Readable(item)));
        let others = unreadable.iter().map(UnreadableView::from);
        let others = others.map(|it| (it.id.clone(), Self::Unreadable(it)));
        let mut page: Vec<(String, Self)> = readable.chain(others).collect();
        page.sort_by(|(one, _), (other, _)| one.cmp(other));
        page.into_iter().map(|(_, listed)| listed).collect()
    }
}

type Schemas = Vec<(String, RefOr<Schema>)>;

fn either<T: ToSchema>() -> RefOr<Schema> {
    let of = |name| Ref::from_schema_name(name);
    let either = OneOfBuilder::new().item(of(T::name())).item(of(UnreadableView::name()));
    RefOr::T(Schema::OneOf(either.build()))
}

fn both<T: ToSchema>(schemas: &mut Schemas) {
    schemas.push((T::name().into(), T::schema()));
    T::schemas(schemas);
    schemas.push((UnreadableView::name().into(), UnreadableView::schema()));
    UnreadableView::schemas(schemas);
}

/// Describes a subscription, or what is known of one that cannot be read.
pub(crate) struct ListedSubscription;

impl PartialSchema for ListedSubscription {
    fn schema() -> RefOr<Schema> {
        either::<SubscriptionView>()
    }
}

impl ToSchema for ListedSubscription {
    fn schemas(schemas: &mut Schemas) {
        both::<SubscriptionView>(schemas);
    }
}

/// Describes a resource, or what is known of one that cannot be read.
pub(crate) struct ListedResource;

impl PartialSchema for ListedResource {
    fn schema() -> RefOr<Schema> {
        either::<ResourceView>()
    }
}

impl ToSchema for ListedResource {
    fn schemas(schemas: &mut Schemas) {
        both::<ResourceView>(schemas);
    }
}

/// Describes a consumer, or what is known of one that cannot be read.
pub(crate) struct ListedConsumer;

impl PartialSchema for ListedConsumer {
    fn schema() -> RefOr<Schema> {
        either::<ConsumerView>()
    }
}

impl ToSchema for ListedConsumer {
    fn schemas(schemas: &mut Schemas) {
        both::<ConsumerView>(schemas);
    }
}

/// Describes a message that became no document, or what is known of one that cannot be read.
pub(crate) struct ListedReject;

impl PartialSchema for ListedReject {
    fn schema() -> RefOr<Schema> {
        either::<RejectView>()
    }
}

impl ToSchema for ListedReject {
    fn schemas(schemas: &mut Schemas) {
        both::<RejectView>(schemas);
    }
}

/// Describes what a subscription's client has of a document, or what is known of a row that cannot be read.
pub(crate) struct ListedDelivery;

impl PartialSchema for ListedDelivery {
    fn schema() -> RefOr<Schema> {
        either::<DeliveryView>()
    }
}

impl ToSchema for ListedDelivery {
    fn schemas(schemas: &mut Schemas) {
        both::<DeliveryView>(schemas);
    }
}

/// Describes a stored job, or what is known of one that cannot be read.
pub(crate) struct ListedJob;

impl PartialSchema for ListedJob {
    fn schema() -> RefOr<Schema> {
        either::<JobView>()
    }
}

impl ToSchema for ListedJob {
    fn schemas(schemas: &mut Schemas) {
        both::<JobView>(schemas);
    }
}

/// Describes an entry of the log, or what is known of one that cannot be read.
pub(crate) struct ListedEntry;

impl PartialSchema for ListedEntry {
    fn schema() -> RefOr<Schema> {
        either::<EntryView>()
    }
}

impl ToSchema for ListedEntry {
    fn schemas(schemas: &mut Schemas) {
        both::<EntryView>(schemas);
    }
}
