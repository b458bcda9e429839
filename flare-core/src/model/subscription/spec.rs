//! Takes the checked parts of a subscription; gives the whole, and what to ask of it.
//! Knows no resource but by the names it is told.

use super::builder::SubscriptionBuilder;
use super::content::ContentOptions;
use super::data::Data;
use super::delivery::DeliveryOptions;
use super::endpoint::{ClientEndpoint, RequestTemplate};
use super::filter::Filter;
use super::headers::Headers;
use super::mode::Mode;
use super::signing::Signing;
use super::url::UrlTemplate;
use crate::model::kept::KeptFields;
use crate::model::{Action, Invalid, Template};

/// The placeholder that every template may use.
const REVISION: &str = "revision";

/// A client's wish to be told: where, what, and under which policy. Always valid.
///
/// `Serialize` gives what may be shown: every default written out, of the secrets their number
/// only, and of headers that look like credentials [a mask](super::MASK). [`stored`](Self::stored)
/// gives the form to keep, which [`from_stored`](Self::from_stored) takes. Both need serde_json and its
/// text: `data` keeps numbers exactly as they were written, which other formats cannot.
///
/// ```
/// use flare_core::model::{Action, SubscriptionSpec};
///
/// let spec = SubscriptionSpec::post("https://client.example/hook/{id}").concurrency(4).build()?;
/// spec.check_placeholders(&["id"])?;
/// assert_eq!(spec.request_for(Action::Create).method.as_str(), "POST");
///
/// let refused = SubscriptionSpec::post("ftp://x/").build();
/// assert_eq!(refused.unwrap_err().field(), "endpoint.url");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionSpec {
    pub(crate) endpoint: ClientEndpoint,
    pub(crate) delivery: DeliveryOptions,
    pub(crate) content: ContentOptions,
    pub(crate) data: Option<Data>,
    pub(crate) filter: Option<Filter>,
    pub(crate) signing: Option<Signing>,
    pub(crate) mode: Mode,
    pub(crate) backfill: bool,
    /// What a newer version stored with it.
    pub(crate) kept: KeptFields,
}

impl SubscriptionSpec {
    /// Begins a subscription that is told by POST requests to `url`.
    pub fn post(url: impl AsRef<str>) -> SubscriptionBuilder {
        Self::builder().url(url)
    }

    /// Begins a subscription whose client pulls what waits, so that it needs no URL.
    pub fn passive() -> SubscriptionBuilder {
        Self::builder().mode(Mode::Passive)
    }

    /// Begins a subscription without a URL, which then comes from
    /// [`url`](SubscriptionBuilder::url) or from each action's own.
    pub fn builder() -> SubscriptionBuilder {
        SubscriptionBuilder::default()
    }

    /// Where notifications go.
    pub fn endpoint(&self) -> &ClientEndpoint {
        &self.endpoint
    }

    /// Under which policy.
    pub fn delivery(&self) -> &DeliveryOptions {
        &self.delivery
    }

    /// What a notification's body is.
    pub fn content(&self) -> ContentOptions {
        self.content
    }

    /// The client's own values for the envelope.
    pub fn data(&self) -> Option<&Data> {
        self.data.as_ref()
    }

    /// Which documents the client should have; `None`: all.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// What notifications are signed with; `None`: they are not.
    pub fn signing(&self) -> Option<&Signing> {
        self.signing.as_ref()
    }

    /// Who begins a delivery.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Which format a worker must know, so that nothing it does not know of is left aside; stores write
    /// it with the record.
    pub fn needs(&self) -> u32 {
        match (&self.filter, self.mode) {
            // A client that expects many in a request would take a single one for an empty request.
            _ if self.delivery.batch.is_some() => 4,
            (Some(_), _) => 3,
            (None, Mode::Passive) => 2,
            (None, Mode::Active) => 1,
        }
    }

    /// Whether the documents present at creation are delivered.
    pub fn backfill(&self) -> bool {
        self.backfill
    }

    /// The request `action` is told with.
    pub fn request_for(&self, action: Action) -> RequestTemplate<'_> {
        self.endpoint.request_for(action)
    }

    /// The keys of every URL given, main and per action, each once and in order. Two subscriptions
    /// of a resource may not share one.
    pub fn urls(&self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for (_, url) in self.given_urls() {
            if !keys.iter().any(|key| key == url.key()) {
                keys.push(url.key().to_owned());
            }
        }
        keys
    }

    /// Where one of [`urls`](Self::urls) is given: `endpoint.url`, or an action's own.
    pub fn field_of_url(&self, key: &str) -> String {
        let given = self.given_urls().into_iter().find(|(_, url)| url.key() == key);
        given.map_or_else(|| "endpoint.url".to_owned(), |(field, _)| field)
    }

    /// Every URL given, main and per action, with the full path of its field.
    fn given_urls(&self) -> Vec<(String, &UrlTemplate)> {
        let own = |action: Action| {
            let url = self.endpoint.action(action)?.url()?;
            Some((format!("endpoint.actions.{action}.url"), url))
        };
        let main = self.endpoint.url().map(|url| ("endpoint.url".to_owned(), url));
        main.into_iter().chain(Action::ALL.into_iter().filter_map(own)).collect()
    }

    /// Refuses placeholders that are neither among the resource's `wildcards` nor `{revision}`.
    pub fn check_placeholders(&self, wildcards: &[&str]) -> Result<(), Invalid> {
        for (field, template) in self.templates() {
            let known = |name: &&str| *name == REVISION || wildcards.contains(name);
            if let Some(name) = template.names().find(|name| !known(name)) {
                let names: Vec<String> =
                    wildcards.iter().chain(&[REVISION]).map(|name| format!("{{{name}}}")).collect();
                let reason = format!(
                    "has {{{name}}}, which the resource does not; it has {}; \
                     write {{{{ and }}}} for braces",
                    names.join(", ")
                );
                return Err(Invalid::new(field, reason));
            }
        }
        Ok(())
    }

    /// Refuses a [mask](super::MASK) in the place of a credential: what stands for a value is none. And
    /// what masks hid that a request of many cannot have: headers that differ between actions.
    pub fn check_masks(&self) -> Result<(), Invalid> {
        self.endpoint.check_masks()?;
        match self.delivery.batch {
            Some(_) => self.endpoint.check_same_for_all().map_err(|e| e.within("endpoint")),
            None => Ok(()),
        }
    }

    /// Every template with the full path of its field.
    fn templates(&self) -> Vec<(String, &Template)> {
        let endpoint = &self.endpoint;
        let urls = self.given_urls().into_iter();
        let mut all: Vec<_> = urls.map(|(field, url)| (field, url.template())).collect();
        all.extend(header_templates("endpoint.headers", endpoint.headers()));
        for action in Action::ALL {
            let Some(own) = endpoint.action(action) else { continue };
            if let Some(headers) = own.headers() {
                all.extend(header_templates(
                    &format!("endpoint.actions.{action}.headers"),
                    headers,
                ));
            }
        }
        let data = self.data.iter().flat_map(Data::templates);
        all.extend(data.map(|(path, template)| (format!("data.{path}"), template)));
        all
    }
}

fn header_templates<'a>(path: &str, headers: &'a Headers) -> Vec<(String, &'a Template)> {
    let each = headers.iter().flat_map(|(name, values)| {
        values.iter().enumerate().map(move |(i, value)| (format!("{path}.{name}[{i}]"), value))
    });
    each.collect()
}
