//! Takes a subscription; gives it as reads show it. What goes in is read by the model itself.

use std::collections::BTreeMap;

use flare_core::model::Subscription;
use flare_core::port::{Listing, Page};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::delivery::{Content, Delivery};
use super::page::Pagination;
use super::unreadable::{Listed, ListedSubscription};

/// A page of subscriptions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubscriptionList {
    pagination: Pagination,
    #[schema(value_type = Vec<ListedSubscription>)]
    subscriptions: Vec<Listed<Subscription>>,
}

impl SubscriptionList {
    pub(crate) fn new(page: Page, listing: Listing<Subscription>) -> Self {
        let items = listing.items.into_iter().map(|it| (it.id.to_string(), it));
        let subscriptions = Listed::page(items, &listing.unreadable);
        Self { pagination: Pagination::new(page, listing.total), subscriptions }
    }
}

/// A client's wish to be told, and where it stands. Defaults are written out.
#[derive(ToSchema)]
#[schema(as = Subscription, rename_all = "camelCase")]
#[allow(dead_code, reason = "describes for the OpenAPI document what the model writes")]
pub(crate) struct SubscriptionShape {
    /// What it is known by.
    #[schema(format = "uuid")]
    id: String,
    /// Whose documents it is about.
    #[schema(format = "uuid")]
    resource: String,
    /// Raised by every change of it; also its `ETag`.
    generation: u64,
    endpoint: Endpoint,
    delivery: Delivery,
    content: Content,
    /// The client's own values, sent along.
    #[schema(nullable = false)]
    data: Option<BTreeMap<String, DataValue>>,
    /// Which documents the client should have.
    #[schema(nullable = false)]
    filter: Option<String>,
    #[schema(nullable = false)]
    signing: Option<SigningShown>,
    mode: ModeWord,
    /// Whether the documents present at creation are delivered.
    backfill: bool,
    status: StatusWord,
    /// Why it stands there, if not by the user's wish.
    #[schema(nullable = false)]
    reason: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

/// A client's wish to be told, as it is asked for. Null means not given, but for `signing`, where it
/// removes.
#[derive(ToSchema)]
#[schema(as = NewSubscription, example = json!({
    "endpoint": {"url": "http://client.example.com/users/{id}"},
    "delivery": {"concurrency": 4, "ttl": "72h"},
    "data": {"tenant": "acme"},
    "signing": {"secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}
}))]
#[allow(dead_code, reason = "describes what the model reads")]
pub(crate) struct SubscriptionInputShape {
    #[schema(required = true, nullable = false)]
    endpoint: Endpoint,
    delivery: Option<Delivery>,
    content: Option<Content>,
    /// The client's own values, sent along; needs the envelope.
    data: Option<BTreeMap<String, DataValue>>,
    /// Absent keeps the secrets there are, null removes them.
    signing: Option<SigningGiven>,
    mode: Option<ModeGiven>,
    /// Not supported by this version yet: must be false.
    backfill: Option<bool>,
}

/// Where notifications go.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct Endpoint {
    /// An http or https URL; wildcards of the resource and `{revision}` are filled in. Required
    /// unless create, update and delete all have their own.
    url: Option<String>,
    /// GET, POST, PUT, PATCH or DELETE; POST unless set.
    method: Option<String>,
    /// Header names with their values, filled in like the URL. Values of names that look like a
    /// credential (`authorization`, `cookie`, `*-key`, `*-token`, `*-secret`) are shown as
    /// `********`, which keeps them when it is sent back.
    headers: Option<BTreeMap<String, Vec<String>>>,
    /// What an action does differently.
    actions: Option<Actions>,
}

/// What each action does differently.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct Actions {
    create: Option<Override>,
    update: Option<Override>,
    delete: Option<Override>,
}

/// What one action does differently; headers given here replace the others.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct Override {
    url: Option<String>,
    method: Option<String>,
    headers: Option<BTreeMap<String, Vec<String>>>,
}

/// A value of `data`: a scalar or a list of scalars.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) enum DataValue {
    One(Scalar),
    Many(Vec<Scalar>),
}

/// A scalar of `data`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) enum Scalar {
    Bool(bool),
    Number(f64),
    Text(String),
}

/// How many secrets there are: they are never shown.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct SigningShown {
    #[schema(minimum = 1, maximum = 2)]
    secrets: u32,
}

/// The secrets to sign with: one, or two while rotating.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct SigningGiven {
    /// `whsec_` and the base64 of 24 to 64 bytes.
    #[schema(required = true, nullable = false, min_items = 1, max_items = 2)]
    secrets: Vec<String>,
}

/// Who begins a delivery; the other mode is not supported by this version yet.
#[derive(ToSchema)]
#[schema(as = NewMode, rename_all = "lowercase")]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) enum ModeGiven {
    Active,
}

/// Who begins a delivery: Flare, or the client.
#[derive(ToSchema)]
#[schema(as = Mode, rename_all = "lowercase")]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) enum ModeWord {
    Active,
    Passive,
}

/// Where a subscription stands.
#[derive(ToSchema)]
#[schema(as = SubscriptionStatus, rename_all = "lowercase")]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) enum StatusWord {
    Preparing,
    Active,
    Paused,
    Suspended,
    /// This version cannot read it, so it sends nothing for it.
    Unreadable,
}

/// How a subscription is doing.
#[derive(ToSchema)]
#[schema(as = SubscriptionReport, rename_all = "camelCase")]
#[allow(dead_code, reason = "describes for the OpenAPI document what the model writes")]
pub(crate) struct ReportShape {
    status: StatusWord,
    /// Why it stands there, if not by the user's wish.
    #[schema(nullable = false)]
    reason: Option<String>,
    /// How many documents the client does not have in their newest version yet. Exact.
    lag: u64,
    /// Changes of its resource that are still being spread, and are not part of the lag yet.
    spreading: u64,
    /// Since how long the oldest of what is pending is so.
    oldest_pending_seconds: u64,
    /// Requests in flight.
    in_flight: u64,
    /// Notifications the client accepted.
    delivered: u64,
    /// Attempts that failed.
    failed: u64,
    /// Notifications the client refused.
    discarded: u64,
    /// Notifications that were given up and are still listed.
    dead_letters: u64,
    /// When the client last accepted one; null if it never did.
    #[schema(required = true, format = DateTime)]
    last_success_at: Option<String>,
    /// Why an attempt last failed.
    #[schema(nullable = false)]
    last_error: Option<String>,
    /// When that was; earlier than `lastSuccessAt`, it is past.
    #[schema(nullable = false, format = DateTime)]
    last_error_at: Option<String>,
    /// Whether the client is taken for down, and sent one request at a time until it answers one.
    probing: bool,
    /// Attempts that have failed since one last succeeded.
    consecutive_failures: u32,
    /// When something is sent next, if anything is to be; never in the past.
    #[schema(nullable = false, format = DateTime)]
    next_attempt_at: Option<String>,
    /// The node that works its lanes.
    #[schema(nullable = false)]
    node: Option<String>,
    /// The queue its lanes are woken by, shared with others (`slot-7`) or the first lane's own.
    queue: String,
    /// When a queue of its lanes had vanished and was made again.
    #[schema(nullable = false, format = DateTime)]
    queue_restored_at: Option<String>,
}

/// Describes the path of a subscription; [`Ids`](crate::extract::Ids) reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct SubscriptionPath {
    /// The id of the resource.
    #[param(format = "uuid")]
    rid: String,
    /// The id of the subscription.
    #[param(format = "uuid")]
    id: String,
}
