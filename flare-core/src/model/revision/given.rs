//! Takes a revision as a caller has it; gives the text by which Flare shows it.

/// A revision as a caller names it: an integer, or text as Flare shows revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenRevision(String);

impl GivenRevision {
    /// The text of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! from {
    ($($given:ty),*) => {
        $(impl From<$given> for GivenRevision {
            fn from(given: $given) -> Self {
                Self(given.to_string())
            }
        })*
    };
}

from!(i32, i64, u32, u64, &str, &String);

impl From<String> for GivenRevision {
    fn from(given: String) -> Self {
        Self(given)
    }
}
