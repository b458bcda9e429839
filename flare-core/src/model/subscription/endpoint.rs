//! Takes where a client wants to be told, in general and per action; gives the request of each
//! action. Sends nothing.

use std::fmt;

use serde::Serialize;

use super::headers::Headers;
use super::method::Method;
use super::url::UrlTemplate;
use crate::model::json::Json;
use crate::model::{Action, Invalid};

/// Where notifications go: one request for every action, or one of its own for some.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ClientEndpoint {
    /// The URL given; where none was, the one of create, which then nobody falls back on.
    #[serde(skip)]
    fallback: UrlTemplate,
    draft: EndpointDraft,
}

/// An endpoint whose actions may still lack a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointDraft {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<UrlTemplate>,
    pub(crate) method: Method,
    pub(crate) headers: Headers,
    #[serde(skip_serializing_if = "Actions::is_empty")]
    actions: Actions,
}

/// What one action does differently. What is not given is the endpoint's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointOverride {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<UrlTemplate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<Method>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) headers: Option<Headers>,
}

/// The request an action is told with, before its placeholders are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestTemplate<'a> {
    /// Where to.
    pub url: &'a UrlTemplate,
    /// How.
    pub method: Method,
    /// With which headers, besides Flare's own.
    pub headers: &'a Headers,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Actions {
    #[serde(skip_serializing_if = "Option::is_none")]
    create: Option<EndpointOverride>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<EndpointOverride>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete: Option<EndpointOverride>,
}

impl ClientEndpoint {
    /// The URL of every action that has none of its own.
    pub fn url(&self) -> Option<&UrlTemplate> {
        self.draft.url.as_ref()
    }

    /// The method of every action that has none of its own.
    pub fn method(&self) -> Method {
        self.draft.method
    }

    /// The headers of every action that has none of its own.
    pub fn headers(&self) -> &Headers {
        &self.draft.headers
    }

    /// What `action` does differently, if anything.
    pub fn action(&self, action: Action) -> Option<&EndpointOverride> {
        self.draft.actions.get(action)
    }

    /// The request of `action`: its own settings, then the endpoint's. Headers of its own replace
    /// the endpoint's, they are not added to them.
    pub fn request_for(&self, action: Action) -> RequestTemplate<'_> {
        let own = self.action(action);
        RequestTemplate {
            url: own.and_then(EndpointOverride::url).unwrap_or(&self.fallback),
            method: own.and_then(EndpointOverride::method).unwrap_or(self.draft.method),
            headers: own.and_then(EndpointOverride::headers).unwrap_or(&self.draft.headers),
        }
    }
}

impl fmt::Debug for ClientEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.draft.fmt(f)
    }
}

impl EndpointDraft {
    pub(crate) fn action_mut(&mut self, action: Action) -> &mut EndpointOverride {
        let actions = &mut self.actions;
        let slot = match action {
            Action::Create => &mut actions.create,
            Action::Update => &mut actions.update,
            Action::Delete => &mut actions.delete,
        };
        slot.get_or_insert_default()
    }

    /// The endpoint, if every action has a URL.
    pub(crate) fn finish(self) -> Result<ClientEndpoint, Invalid> {
        let own = |action| self.actions.get(action).and_then(EndpointOverride::url);
        let fallback = match &self.url {
            Some(url) => Some(url),
            None if Action::ALL.into_iter().all(|action| own(action).is_some()) => {
                own(Action::Create)
            }
            None => None,
        };
        match fallback.cloned() {
            Some(fallback) => Ok(ClientEndpoint { fallback, draft: self }),
            None => {
                let reason = "is required unless create, update and delete all have their own";
                Err(Invalid::new("url", reason))
            }
        }
    }

    pub(crate) fn read(json: Json<'_>) -> Result<Self, Invalid> {
        let mut fields = json.fields()?;
        let endpoint = Self {
            url: fields.read("url", |url| UrlTemplate::parse(&url.string()?))?,
            method: fields.read("method", |method| method.string()?.parse())?.unwrap_or_default(),
            headers: fields.read("headers", Headers::read)?.unwrap_or_default(),
            actions: fields.read("actions", Actions::read)?.unwrap_or_default(),
        };
        fields.finish(&["url", "method", "headers", "actions"])?;
        Ok(endpoint)
    }
}

impl EndpointOverride {
    /// The action's own URL.
    pub fn url(&self) -> Option<&UrlTemplate> {
        self.url.as_ref()
    }

    /// The action's own method.
    pub fn method(&self) -> Option<Method> {
        self.method
    }

    /// The action's own headers; empty ones replace the endpoint's by none.
    pub fn headers(&self) -> Option<&Headers> {
        self.headers.as_ref()
    }

    fn read(json: Json<'_>) -> Result<Self, Invalid> {
        let mut fields = json.fields()?;
        let own = Self {
            url: fields.read("url", |url| UrlTemplate::parse(&url.string()?))?,
            method: fields.read("method", |method| method.string()?.parse())?,
            headers: fields.read("headers", Headers::read)?,
        };
        fields.finish(&["url", "method", "headers"])?;
        Ok(own)
    }
}

impl Actions {
    fn get(&self, action: Action) -> Option<&EndpointOverride> {
        match action {
            Action::Create => self.create.as_ref(),
            Action::Update => self.update.as_ref(),
            Action::Delete => self.delete.as_ref(),
        }
    }

    fn is_empty(&self) -> bool {
        self.create.is_none() && self.update.is_none() && self.delete.is_none()
    }

    fn read(json: Json<'_>) -> Result<Self, Invalid> {
        let mut fields = json.fields()?;
        let actions = Self {
            create: fields.read("create", EndpointOverride::read)?,
            update: fields.read("update", EndpointOverride::read)?,
            delete: fields.read("delete", EndpointOverride::read)?,
        };
        fields.finish(&["create", "update", "delete"])?;
        Ok(actions)
    }
}
