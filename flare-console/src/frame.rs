//! What is around every page: where it is, who looks at it, and how it shall look. Values for the layout.

use axum::http::{HeaderMap, Method};
use flare_http::auth::{Caller, Scope};

use crate::access::{Viewer, cookie, needs};

/// The cookie that keeps how pages look.
pub(crate) const THEME: &str = "flare-theme";

/// How pages look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Theme {
    /// As the system does.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(crate) fn of(word: &str) -> Self {
        Self::ALL.into_iter().find(|theme| theme.as_str() == word).unwrap_or_default()
    }
}

/// The part of the console that a page belongs to, for the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
}

/// The menu, in its order.
pub(crate) const SECTIONS: [Section; 9] = [
    Section { path: "overview", name: "Overview" },
    Section { path: "subscriptions", name: "Subscriptions" },
    Section { path: "resources", name: "Resources" },
    Section { path: "documents", name: "Documents" },
    Section { path: "consumers", name: "Consumers" },
    Section { path: "nodes", name: "Nodes" },
    Section { path: "jobs", name: "Jobs" },
    Section { path: "log", name: "Log" },
    Section { path: "try", name: "Try" },
];

/// What is around a page.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// From the page to where the console is mounted: empty, or `../` once or more.
    pub(crate) root: String,
    /// Where the page is below that, without its query.
    pub(crate) path: String,
    /// The same with its query.
    pub(crate) full_path: String,
    pub(crate) viewer: Option<Viewer>,
    pub(crate) theme: Theme,
    pub(crate) version: String,
    /// What a form before this page has done.
    pub(crate) done: Option<&'static str>,
}

impl Frame {
    /// The frame of the page at a path below the mount point.
    pub(crate) fn new(path: &str, query: Option<&str>, headers: &HeaderMap, version: &str) -> Self {
        let path = path.trim_start_matches('/').to_owned();
        let full_path = match query {
            Some(query) => format!("{path}?{query}"),
            None => path.clone(),
        };
        Self {
            root: "../".repeat(path.matches('/').count()),
            path,
            full_path,
            viewer: None,
            theme: cookie(headers, THEME).map(Theme::of).unwrap_or_default(),
            version: version.to_owned(),
            done: None,
        }
    }

    pub(crate) fn sections(&self) -> &'static [Section] {
        &SECTIONS
    }

    pub(crate) fn themes(&self) -> [Theme; 3] {
        Theme::ALL
    }

    /// Whether the page is in this part.
    pub(crate) fn is_in(&self, section: &Section) -> bool {
        self.path.split('/').next() == Some(section.path)
    }

    fn may(&self, scope: Scope) -> bool {
        self.viewer.as_ref().is_some_and(|viewer| viewer.may(scope))
    }

    /// Whether the viewer may change subscriptions, consumers and documents.
    pub(crate) fn may_write(&self) -> bool {
        self.may(Scope::Write)
    }

    /// Whether the viewer may change resources and the cluster.
    pub(crate) fn may_admin(&self) -> bool {
        self.may(Scope::Admin)
    }

    /// Whether the viewer can sign out.
    pub(crate) fn signed_in(&self) -> bool {
        self.viewer.as_ref().is_some_and(|viewer| viewer.signed_in)
    }

    /// Whether the viewer may say what documents are pulled from.
    pub(crate) fn may_manage_consumers(&self) -> bool {
        self.may(needs(&Method::POST, "/consumers"))
    }

    /// The name that what the viewer does is told under; empty if there is none.
    pub(crate) fn caller(&self) -> &str {
        let caller = self.viewer.as_ref().and_then(|viewer| viewer.caller.as_ref());
        caller.map_or("", Caller::name)
    }

    /// What the viewer may do, in a word.
    pub(crate) fn scope(&self) -> &'static str {
        self.viewer.as_ref().map_or("", |viewer| viewer.scope().as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_back_to_the_mount_point_from_everywhere() {
        for (path, root) in [
            ("/overview", ""),
            ("/resources/", "../"),
            ("/resources/1", "../"),
            ("/resources/1/delete", "../../"),
        ] {
            assert_eq!(Frame::new(path, None, &HeaderMap::new(), "1").root, root, "{path}");
        }
    }
}
