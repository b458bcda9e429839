//! The three things a client can be told.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a notification tells the client to do with a document.
///
/// ```
/// use flare_core::model::Action;
/// assert_eq!(Action::Create.to_string(), "create");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The client does not hold the document, and should.
    Create,
    /// The client holds the document, in an older version.
    Update,
    /// The client holds the document, and should not any more.
    Delete,
}

impl Action {
    /// Every action, in the order in which they are documented.
    pub const ALL: [Self; 3] = [Self::Create, Self::Update, Self::Delete];

    /// The action as it is written in JSON and in `Flare-Action`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
