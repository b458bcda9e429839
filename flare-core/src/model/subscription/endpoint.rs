//! Takes where a client wants to be told, in general and per action; gives the request of each
//! action. Sends nothing.

use std::fmt;

use serde::{Serialize, Serializer};

use super::headers::{ExposedHeaders, Headers, MASK};
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

impl ClientEndpoint {
    /// The same with each masked header replaced by the value that `old` has in its place, if any.
    pub(crate) fn unmasked(mut self, old: &Self) -> Self {
        self.draft.headers = self.draft.headers.unmasked(Some(old.headers()));
        for action in Action::ALL {
            let Some(own) = self.draft.actions.place(action) else { continue };
            let before = old.action(action).and_then(EndpointOverride::headers);
            own.headers = own.headers.take().map(|headers| headers.unmasked(before));
        }
        self
    }

    /// Refuses a mask that stands for no value, naming its field.
    pub(crate) fn check_masks(&self) -> Result<(), Invalid> {
        let own = |action| self.action(action).and_then(EndpointOverride::headers);
        let actions = Action::ALL.into_iter().map(|action| (action, own(action)));
        let actions = actions
            .filter_map(|(action, headers)| Some((format!("actions.{action}.headers"), headers?)));
        for (path, headers) in
            std::iter::once(("headers".to_owned(), self.headers())).chain(actions)
        {
            if let Some(place) = headers.masked() {
                let reason = format!("is {MASK:?}, which keeps a value, and there is none to keep");
                return Err(Invalid::new(place, reason).within(&path).within("endpoint"));
            }
        }
        Ok(())
    }
}

/// The stored form: every header as it is.
pub(crate) struct ExposedEndpoint<'a>(pub(crate) &'a ClientEndpoint);

impl Serialize for ExposedEndpoint<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let EndpointDraft { url, method, headers, actions } = &self.0.draft;
        let exposed = ExposedActions {
            create: actions.create.as_ref().map(ExposedOverride::of),
            update: actions.update.as_ref().map(ExposedOverride::of),
            delete: actions.delete.as_ref().map(ExposedOverride::of),
        };
        let form = ExposedForm {
            url: url.as_ref(),
            method: *method,
            headers: ExposedHeaders(headers),
            actions: (!actions.is_empty()).then_some(exposed),
        };
        form.serialize(serializer)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExposedForm<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a UrlTemplate>,
    method: Method,
    headers: ExposedHeaders<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<ExposedActions<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExposedActions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    create: Option<ExposedOverride<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<ExposedOverride<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete: Option<ExposedOverride<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExposedOverride<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a UrlTemplate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<Method>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<ExposedHeaders<'a>>,
}

impl<'a> ExposedOverride<'a> {
    fn of(own: &'a EndpointOverride) -> Self {
        Self {
            url: own.url.as_ref(),
            method: own.method,
            headers: own.headers.as_ref().map(ExposedHeaders),
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
        self.actions.place(action).get_or_insert_default()
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

    fn place(&mut self, action: Action) -> &mut Option<EndpointOverride> {
        match action {
            Action::Create => &mut self.create,
            Action::Update => &mut self.update,
            Action::Delete => &mut self.delete,
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
