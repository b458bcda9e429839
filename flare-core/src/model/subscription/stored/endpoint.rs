//! Where notifications go, as stores keep it.

use serde::{Deserialize, Serialize};

use super::Secrets;
use crate::model::Action;
use crate::model::entries::Entries;
use crate::model::subscription::builder::SubscriptionBuilder;
use crate::model::subscription::endpoint::{ClientEndpoint, EndpointOverride};
use crate::model::subscription::headers::Headers;
use crate::model::subscription::method::Method;

#[derive(Serialize, Deserialize)]
pub(super) struct StoredEndpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default)]
    method: Method,
    #[serde(default)]
    headers: Entries<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<StoredActions>,
}

#[derive(Default, Serialize, Deserialize)]
struct StoredActions {
    #[serde(skip_serializing_if = "Option::is_none")]
    create: Option<StoredOverride>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<StoredOverride>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete: Option<StoredOverride>,
}

#[derive(Serialize, Deserialize)]
struct StoredOverride {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<Method>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Entries<Vec<String>>>,
}

impl StoredEndpoint {
    pub(super) fn of(endpoint: &ClientEndpoint, secrets: Secrets) -> Self {
        let own = |action| endpoint.action(action).map(|own| StoredOverride::of(own, secrets));
        let [create, update, delete] = Action::ALL.map(own);
        let any = create.is_some() || update.is_some() || delete.is_some();
        Self {
            url: endpoint.url().map(|url| url.as_str().to_owned()),
            method: endpoint.method(),
            headers: headers(endpoint.headers(), secrets),
            actions: any.then_some(StoredActions { create, update, delete }),
        }
    }

    /// A subscription that is told there.
    pub(super) fn give(self, mut to: SubscriptionBuilder) -> SubscriptionBuilder {
        if let Some(url) = self.url {
            to = to.url(url);
        }
        to = to.method(self.method).headers(self.headers.0);
        let StoredActions { create, update, delete } = self.actions.unwrap_or_default();
        for (action, own) in Action::ALL.into_iter().zip([create, update, delete]) {
            let Some(own) = own else { continue };
            // One that does nothing differently is there all the same.
            to.endpoint.action_mut(action).method = own.method;
            if let Some(url) = own.url {
                to = to.action_url(action, url);
            }
            if let Some(Entries(headers)) = own.headers {
                to = to.action_headers(action, headers);
            }
        }
        to
    }
}

impl StoredOverride {
    fn of(own: &EndpointOverride, secrets: Secrets) -> Self {
        Self {
            url: own.url().map(|url| url.as_str().to_owned()),
            method: own.method(),
            headers: own.headers().map(|own| headers(own, secrets)),
        }
    }
}

fn headers(headers: &Headers, secrets: Secrets) -> Entries<Vec<String>> {
    let exposed = |(name, values): (&str, &[crate::model::Template])| {
        (name.to_owned(), values.iter().map(|value| value.as_str().to_owned()).collect())
    };
    let masked = |(name, values): (&str, Vec<&str>)| {
        (name.to_owned(), values.into_iter().map(str::to_owned).collect())
    };
    Entries(match secrets {
        Secrets::Kept => headers.iter().map(exposed).collect(),
        Secrets::Hidden => headers.shown().map(masked).collect(),
    })
}
