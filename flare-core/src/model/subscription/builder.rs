//! Takes a subscription's settings one by one; gives the whole once its parts agree.
//! Remembers the first refusal until the end, so that calls can be chained.

use std::time::Duration;

use super::batch::BatchOptions;
use super::content::ContentOptions;
use super::data::{Data, DataValue};
use super::delivery::DeliveryOptions;
use super::endpoint::EndpointDraft;
use super::filter::Filter;
use super::headers::Headers;
use super::method::Method;
use super::mode::Mode;
use super::rate::Rate;
use super::retry::RetryPolicy;
use super::signing::Signing;
use super::spec::SubscriptionSpec;
use super::status_codes::StatusCodes;
use super::url::UrlTemplate;
use crate::model::kept::KeptFields;
use crate::model::{Action, Invalid};

/// Puts a [`SubscriptionSpec`] together.
///
/// ```
/// use flare_core::model::subscription::{Method, SubscriptionSpec};
/// use flare_core::model::Action;
/// use std::time::Duration;
///
/// let spec = SubscriptionSpec::post("http://127.0.0.1:9000/hook/{id}")
///     .header("X-Tenant", "acme")
///     .action_method(Action::Delete, Method::Delete)
///     .concurrency(4)
///     .rate(100, Duration::from_secs(1))
///     .data("source", "flare/{revision}")
///     .build()?;
/// assert_eq!(spec.request_for(Action::Delete).method, Method::Delete);
///
/// let refused = SubscriptionSpec::post("http://127.0.0.1:9000/").concurrency(0).build();
/// assert_eq!(refused.unwrap_err().field(), "delivery.concurrency");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "nothing is made until build is called"]
pub struct SubscriptionBuilder {
    pub(crate) endpoint: EndpointDraft,
    pub(crate) delivery: DeliveryOptions,
    pub(crate) content: ContentOptions,
    pub(crate) data: Option<Data>,
    pub(crate) filter: Option<Filter>,
    pub(crate) mode: Mode,
    pub(crate) backfill: bool,
    signing: Option<Signing>,
    refused: Option<Invalid>,
}

impl SubscriptionBuilder {
    /// Where notifications go.
    pub fn url(mut self, url: impl AsRef<str>) -> Self {
        let url = UrlTemplate::parse(url.as_ref());
        self.endpoint.url = self.note("endpoint.url", url);
        self
    }

    /// How they go there; POST unless set.
    pub fn method(mut self, method: Method) -> Self {
        self.endpoint.method = method;
        self
    }

    /// Adds a header, or another value to one. Values are templates.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let added = self.endpoint.headers.append(name.as_ref(), value.as_ref());
        self.note("endpoint.headers", added);
        self
    }

    /// All headers at once: names, each with its values. Values are templates.
    pub fn headers<N, V>(mut self, entries: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: IntoIterator,
        V::Item: AsRef<str>,
    {
        if let Some(headers) = self.note("endpoint.headers", Headers::new(entries)) {
            self.endpoint.headers = headers;
        }
        self
    }

    /// Where notifications of one action go.
    pub fn action_url(mut self, action: Action, url: impl AsRef<str>) -> Self {
        let url = UrlTemplate::parse(url.as_ref());
        let url = self.note(&format!("endpoint.actions.{action}.url"), url);
        self.endpoint.action_mut(action).url = url;
        self
    }

    /// How notifications of one action go there.
    pub fn action_method(mut self, action: Action, method: Method) -> Self {
        self.endpoint.action_mut(action).method = Some(method);
        self
    }

    /// Adds a header to those of one action, which then has none of the endpoint's.
    pub fn action_header(
        mut self,
        action: Action,
        name: impl AsRef<str>,
        value: impl AsRef<str>,
    ) -> Self {
        let headers = self.endpoint.action_mut(action).headers.get_or_insert_default();
        let added = headers.append(name.as_ref(), value.as_ref());
        self.note(&format!("endpoint.actions.{action}.headers"), added);
        self
    }

    /// All headers of one action at once, which then has none of the endpoint's.
    pub fn action_headers<N, V>(
        mut self,
        action: Action,
        entries: impl IntoIterator<Item = (N, V)>,
    ) -> Self
    where
        N: Into<String>,
        V: IntoIterator,
        V::Item: AsRef<str>,
    {
        let path = format!("endpoint.actions.{action}.headers");
        self.endpoint.action_mut(action).headers = self.note(&path, Headers::new(entries));
        self
    }

    /// Gives one action no headers, not even the endpoint's.
    pub fn action_without_headers(mut self, action: Action) -> Self {
        self.endpoint.action_mut(action).headers = Some(Default::default());
        self
    }

    /// The status codes by which the client takes a version; 200, 201, 202, 204 unless set.
    pub fn success(mut self, codes: impl IntoIterator<Item = u16>) -> Self {
        if let Some(codes) = self.note("delivery.success", StatusCodes::new(codes)) {
            self.delivery.success = codes;
        }
        self
    }

    /// The status codes by which the client refuses a version for good.
    pub fn discard(mut self, codes: impl IntoIterator<Item = u16>) -> Self {
        if let Some(codes) = self.note("delivery.discard", StatusCodes::new(codes)) {
            self.delivery.discard = codes;
        }
        self
    }

    /// When a failed notification is tried again; about three days unless set.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.delivery.retry = policy;
        self
    }

    /// How long a version is tried, at most what the configuration allows.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.delivery.ttl = Some(ttl);
        self
    }

    /// At most `limit` requests in every `period`.
    pub fn rate(mut self, limit: u32, period: Duration) -> Self {
        self.delivery.rate = self.note("delivery.rate", Rate::new(limit, period));
        self
    }

    /// At most this many requests in flight.
    pub fn concurrency(mut self, requests: u32) -> Self {
        self.delivery.concurrency = Some(requests);
        self
    }

    /// How long one request may take, from connect to last byte.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.delivery.timeout = Some(timeout);
        self
    }

    /// Over how many lanes the subscription is spread; 1 unless set.
    pub fn lanes(mut self, lanes: u32) -> Self {
        self.delivery.lanes = lanes;
        self
    }

    /// Tells the client of a document at most once in this time, and of its newest version then: what
    /// changes a hundred times a second arrives once in each interval, and the last version certainly.
    pub fn min_interval(mut self, interval: Duration) -> Self {
        self.delivery.min_interval = Some(interval);
        self
    }

    /// Tells of many documents in one request. URL, method and headers have to be the same for all actions
    /// then, and without placeholders; and it needs the envelope.
    pub fn batch(mut self, batch: BatchOptions) -> Self {
        self.delivery.batch = Some(batch);
        self
    }

    /// Whether the document is sent, not just that it changed; true unless set.
    pub fn document(mut self, document: bool) -> Self {
        self.content.document = document;
        self
    }

    /// Whether the body is an envelope, not the bare document; true unless set.
    pub fn envelope(mut self, envelope: bool) -> Self {
        self.content.envelope = envelope;
        self
    }

    /// Adds a value of the client's own to the envelope: a boolean, a number, a string (which is a
    /// template) or a list of those.
    pub fn data(mut self, name: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        let name = name.into();
        let data = self.data.get_or_insert_default();
        let added = DataValue::read(&value.into().to_string())
            .map_err(|invalid| invalid.within(&name))
            .and_then(|value| data.add(name, value));
        self.note("data", added);
        self
    }

    /// All values of the client's own at once, numbers exactly as they are written.
    pub fn all_data(mut self, data: Data) -> Self {
        self.data = Some(data);
        self
    }

    /// A CEL expression: should the client have this document?
    pub fn filter(mut self, expression: impl Into<String>) -> Self {
        self.filter = self.note("filter", Filter::new(expression));
        self
    }

    /// Signs notifications with one `whsec_…` secret, or two while rotating.
    pub fn signing<S: AsRef<str>>(mut self, secrets: impl IntoIterator<Item = S>) -> Self {
        self.signing = self.note("signing", Signing::new(secrets));
        self
    }

    /// Who begins a delivery; Flare does unless set.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether the documents present at creation are delivered; not unless set.
    pub fn backfill(mut self, backfill: bool) -> Self {
        self.backfill = backfill;
        self
    }

    /// The subscription, or the first thing that is wrong with it.
    pub fn build(self) -> Result<SubscriptionSpec, Invalid> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let endpoint =
            self.endpoint.finish(self.mode).map_err(|invalid| invalid.within("endpoint"))?;
        self.delivery.check().map_err(|invalid| invalid.within("delivery"))?;
        self.content.check().map_err(|invalid| invalid.within("content"))?;
        if self.data.is_some() && !self.content.envelope {
            return Err(Invalid::new("data", "needs the envelope, but content.envelope is false"));
        }
        if self.delivery.batch.is_some() {
            if !self.content.envelope {
                let reason = "needs the envelope, but content.envelope is false";
                return Err(Invalid::new("delivery.batch", reason));
            }
            endpoint.check_same_for_all().map_err(|invalid| invalid.within("endpoint"))?;
        }
        Ok(SubscriptionSpec {
            endpoint,
            delivery: self.delivery,
            content: self.content,
            data: self.data,
            filter: self.filter,
            signing: self.signing,
            mode: self.mode,
            backfill: self.backfill,
            kept: KeptFields::default(),
        })
    }

    /// Keeps the first refusal for the end.
    fn note<T>(&mut self, field: &str, result: Result<T, Invalid>) -> Option<T> {
        result
            .map_err(|invalid| {
                self.refused.get_or_insert(invalid.within(field));
            })
            .ok()
    }
}

impl TryFrom<SubscriptionBuilder> for SubscriptionSpec {
    type Error = Invalid;

    fn try_from(builder: SubscriptionBuilder) -> Result<Self, Invalid> {
        builder.build()
    }
}
