//! Takes where a client wants to be told, in general and per action; gives the request of each
//! action. Sends nothing.

use std::fmt;

use super::headers::{Headers, MASK};
use super::method::Method;
use super::mode::Mode;
use super::url::UrlTemplate;
use crate::model::{Action, Invalid};

/// Where notifications go: one request for every action, or one of its own for some.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientEndpoint {
    draft: EndpointDraft,
}

/// An endpoint whose actions may still lack a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EndpointDraft {
    pub(crate) url: Option<UrlTemplate>,
    pub(crate) method: Method,
    pub(crate) headers: Headers,
    actions: Actions,
}

/// What one action does differently. What is not given is the endpoint's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointOverride {
    pub(crate) url: Option<UrlTemplate>,
    pub(crate) method: Option<Method>,
    pub(crate) headers: Option<Headers>,
}

/// The request an action is told with, before its placeholders are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestTemplate<'a> {
    /// Where to; nowhere, for a client that only pulls.
    pub url: Option<&'a UrlTemplate>,
    /// How.
    pub method: Method,
    /// With which headers, besides Flare's own.
    pub headers: &'a Headers,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Actions {
    create: Option<EndpointOverride>,
    update: Option<EndpointOverride>,
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

    /// Whether there is somewhere to send every action to.
    pub fn is_reachable(&self) -> bool {
        Action::ALL.into_iter().all(|action| self.request_for(action).url.is_some())
    }

    /// The request of `action`: its own settings, then the endpoint's. Headers of its own replace
    /// the endpoint's, they are not added to them.
    pub fn request_for(&self, action: Action) -> RequestTemplate<'_> {
        let own = self.action(action);
        RequestTemplate {
            url: own.and_then(EndpointOverride::url).or(self.url()),
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

impl ClientEndpoint {
    /// Refuses what would differ from notification to notification: a request that tells of many has one
    /// URL, one method and one set of headers.
    pub(crate) fn check_same_for_all(&self) -> Result<(), Invalid> {
        let first = self.request_for(Action::Create);
        for action in Action::ALL {
            if let Some(part) = first.difference(&self.request_for(action)) {
                // One of the two has it of its own, or they would agree.
                let whose = if self.gives(action, part) { action } else { Action::Create };
                let reason = "must be the same for all actions with delivery.batch";
                return Err(Invalid::new(format!("actions.{whose}.{part}"), reason));
            }
        }
        let url = first.url.and_then(|url| url.template().names().next());
        let url = url.map(|name| ("url", String::new(), name));
        let headers = first.headers.iter().find_map(|(header, values)| {
            let name = values.iter().find_map(|value| value.names().next())?;
            Some(("headers", format!(".{header}"), name))
        });
        let Some((part, place, name)) = url.or(headers) else { return Ok(()) };
        let whose = if self.gives(Action::Create, part) { "actions.create." } else { "" };
        let reason = format!(
            "has {{{name}}}, which differs between the documents of one request; delivery.batch needs \
             it without placeholders"
        );
        Err(Invalid::new(format!("{whose}{part}{place}"), reason))
    }

    /// Whether an action has a part of its request of its own.
    fn gives(&self, action: Action, part: &str) -> bool {
        self.action(action).is_some_and(|own| match part {
            "url" => own.url.is_some(),
            "method" => own.method.is_some(),
            _ => own.headers.is_some(),
        })
    }
}

impl RequestTemplate<'_> {
    /// The first part in which another request differs.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let parts = [
            ("url", self.url == other.url),
            ("method", self.method == other.method),
            ("headers", self.headers == other.headers),
        ];
        parts.into_iter().find(|(_, same)| !same).map(|(part, _)| part)
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

    /// The endpoint, if every action has a URL; a client that only pulls needs none.
    pub(crate) fn finish(self, mode: Mode) -> Result<ClientEndpoint, Invalid> {
        let endpoint = ClientEndpoint { draft: self };
        if endpoint.is_reachable() || mode == Mode::Passive {
            return Ok(endpoint);
        }
        let reason = "is required unless create, update and delete all have their own, or the mode is \
                      passive";
        Err(Invalid::new("url", reason))
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
}
