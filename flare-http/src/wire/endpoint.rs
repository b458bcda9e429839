//! Where a subscription's notifications go, as JSON has it.

use std::fmt;

use flare_core::model::subscription::{
    ClientEndpoint, EndpointOverride, Headers, SubscriptionBuilder,
};
use flare_core::model::{Action, Method};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::entries::Entries;
use super::word::Word;

/// Where notifications go.
#[derive(Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Endpoint {
    /// An http or https URL; wildcards of the resource and `{revision}` are filled in. Required unless
    /// create, update and delete all have their own, or the mode is passive.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// GET, POST, PUT, PATCH or DELETE; POST unless set.
    #[schema(value_type = Option<String>)]
    method: Option<Word<Method>>,
    /// Header names with their values, filled in like the URL. Values of names that look like a
    /// credential (`authorization`, `cookie`, `*-key`, `*-token`, `*-secret`) are shown as
    /// `********`, which keeps them when it is sent back.
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    headers: Option<Entries<HeaderValues>>,
    /// What an action does differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<Actions>,
}

/// What each action does differently.
#[derive(Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Actions {
    #[serde(skip_serializing_if = "Option::is_none")]
    create: Option<Override>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<Override>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete: Option<Override>,
}

/// What one action does differently; headers given here replace the others.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Override {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    method: Option<Word<Method>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    headers: Option<Entries<HeaderValues>>,
}

/// The values of one header.
#[derive(Serialize)]
#[serde(transparent)]
struct HeaderValues(Vec<String>);

impl Endpoint {
    /// A subscription that is told there.
    pub(super) fn give(self, mut to: SubscriptionBuilder) -> SubscriptionBuilder {
        if let Some(url) = self.url {
            to = to.url(url);
        }
        if let Some(Word(method)) = self.method {
            to = to.method(method);
        }
        if let Some(headers) = self.headers {
            to = to.headers(values(headers));
        }
        let Actions { create, update, delete } = self.actions.unwrap_or_default();
        for (action, own) in Action::ALL.into_iter().zip([create, update, delete]) {
            if let Some(own) = own {
                to = own.give(action, to);
            }
        }
        to
    }
}

impl Override {
    fn give(self, action: Action, mut to: SubscriptionBuilder) -> SubscriptionBuilder {
        if let Some(url) = self.url {
            to = to.action_url(action, url);
        }
        if let Some(Word(method)) = self.method {
            to = to.action_method(action, method);
        }
        if let Some(headers) = self.headers {
            to = to.action_headers(action, values(headers));
        }
        to
    }
}

fn values(Entries(headers): Entries<HeaderValues>) -> impl Iterator<Item = (String, Vec<String>)> {
    headers.into_iter().map(|(name, HeaderValues(values))| (name, values))
}

fn shown(headers: &Headers) -> Entries<HeaderValues> {
    let owned = |values: Vec<&str>| HeaderValues(values.into_iter().map(str::to_owned).collect());
    Entries(headers.shown().map(|(name, values)| (name.to_owned(), owned(values))).collect())
}

impl From<&ClientEndpoint> for Endpoint {
    fn from(endpoint: &ClientEndpoint) -> Self {
        let [create, update, delete] =
            Action::ALL.map(|action| endpoint.action(action).map(Override::from));
        let any = create.is_some() || update.is_some() || delete.is_some();
        Self {
            url: endpoint.url().map(|url| url.as_str().to_owned()),
            method: Some(Word(endpoint.method())),
            headers: Some(shown(endpoint.headers())),
            actions: any.then_some(Actions { create, update, delete }),
        }
    }
}

impl From<&EndpointOverride> for Override {
    fn from(own: &EndpointOverride) -> Self {
        Self {
            url: own.url().map(|url| url.as_str().to_owned()),
            method: own.method().map(Word),
            headers: own.headers().map(shown),
        }
    }
}

impl<'de> Deserialize<'de> for HeaderValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Strings;
        impl<'de> Visitor<'de> for Strings {
            type Value = HeaderValues;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of strings, like [\"value\"]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(HeaderValues)
            }
        }
        deserializer.deserialize_any(Strings)
    }
}
