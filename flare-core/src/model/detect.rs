//! Takes what is stored and what was asked; decides whether anything really changed (SPEC of
//! `put` and `delete`, and of a document's move to a more specific resource). Pure: stores apply it inside their one atomic write, or say the same in
//! their own language.

use serde::{Deserialize, Serialize};

use super::{Revision, Version};

/// What a put or delete turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DocumentChange {
    /// The document is new, or came back after a deletion. Clients are told.
    Created,
    /// A newer revision replaced the stored one. Clients are told.
    Updated,
    /// The document is deleted now. Clients are told.
    Deleted,
    /// The store holds this very state already. No client is told.
    Unchanged,
    /// The store holds something newer. No client is told.
    Stale,
}

impl DocumentChange {
    /// Whether clients are told about it.
    pub const fn notifies(self) -> bool {
        matches!(self, Self::Created | Self::Updated | Self::Deleted)
    }

    /// The word shown to callers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Unchanged => "unchanged",
            Self::Stale => "stale",
        }
    }
}

/// What to store for a put or delete, and what to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detected {
    /// The answer.
    pub change: DocumentChange,
    /// The version to store; `None` leaves the store as it is.
    pub store: Option<Version>,
}

impl Detected {
    const fn nothing(change: DocumentChange) -> Self {
        Self { change, store: None }
    }

    const fn store(change: DocumentChange, version: Version) -> Self {
        Self { change, store: Some(version) }
    }
}

/// Decides a put of `revision` over `stored`.
///
/// ```
/// use flare_core::model::{detect_put, DocumentChange, Revision, Version};
///
/// let r = Revision::new;
/// assert_eq!(detect_put(None, r(1)).change, DocumentChange::Created);
/// assert_eq!(detect_put(Some(Version::live(r(1))), r(2)).change, DocumentChange::Updated);
/// assert_eq!(detect_put(Some(Version::live(r(2))), r(2)).change, DocumentChange::Unchanged);
/// assert_eq!(detect_put(Some(Version::gone(r(2))), r(2)).change, DocumentChange::Stale);
/// ```
pub fn detect_put(stored: Option<Version>, revision: Revision) -> Detected {
    let version = Version::live(revision);
    match stored {
        None => Detected::store(DocumentChange::Created, version),
        Some(stored) if version > stored => {
            let change =
                if stored.is_gone() { DocumentChange::Created } else { DocumentChange::Updated };
            Detected::store(change, version)
        }
        Some(stored) if version == stored => Detected::nothing(DocumentChange::Unchanged),
        Some(_) => Detected::nothing(DocumentChange::Stale),
    }
}

/// Decides a delete over `stored`, which may name the revision it deletes.
pub fn detect_delete(stored: Option<Version>, named: Option<Revision>) -> Detected {
    match (stored, named) {
        (None, None) => Detected::nothing(DocumentChange::Unchanged),
        // Remembered, so that a put that was overtaken on its way stays deleted.
        (None, Some(named)) => Detected::store(DocumentChange::Unchanged, Version::gone(named)),
        (Some(stored), Some(named)) if named < stored.revision() => {
            Detected::nothing(DocumentChange::Stale)
        }
        (Some(stored), named) => {
            let target = Version::gone(named.unwrap_or(stored.revision()));
            match (stored.is_gone(), target > stored) {
                (false, _) => Detected::store(DocumentChange::Deleted, target),
                (true, true) => Detected::store(DocumentChange::Unchanged, target),
                (true, false) => Detected::nothing(DocumentChange::Unchanged),
            }
        }
    }
}

/// Decides that a document left the resource where it was stored as `at`, because a more specific
/// one has taken it over: the very live version named becomes gone. Anything else stays as it is,
/// for it was put there after the move, by a put that found that resource to be the right one.
pub fn detect_leave(stored: Option<Version>, at: Version) -> Detected {
    match stored {
        Some(stored) if stored == at && !stored.is_gone() => {
            Detected::store(DocumentChange::Deleted, Version::gone(stored.revision()))
        }
        _ => Detected::nothing(DocumentChange::Unchanged),
    }
}

#[cfg(test)]
mod tests {
    use super::DocumentChange::*;
    use super::*;

    fn live(r: i64) -> Version {
        Version::live(Revision::new(r))
    }

    fn gone(r: i64) -> Version {
        Version::gone(Revision::new(r))
    }

    #[test]
    fn puts() {
        let cases = [
            (None, 5, Created, Some(live(5))),
            (Some(live(5)), 6, Updated, Some(live(6))),
            (Some(live(5)), 5, Unchanged, None),
            (Some(live(5)), 4, Stale, None),
            (Some(gone(5)), 4, Stale, None),
            (Some(gone(5)), 5, Stale, None),
            (Some(gone(5)), 6, Created, Some(live(6))),
            (Some(live(i64::MIN)), i64::MAX, Updated, Some(live(i64::MAX))),
        ];
        for (stored, revision, change, store) in cases {
            let detected = detect_put(stored, Revision::new(revision));
            assert_eq!(detected, Detected { change, store }, "put {revision} over {stored:?}");
        }
    }

    #[test]
    fn deletes() {
        let cases = [
            (None, None, Unchanged, None),
            (None, Some(5), Unchanged, Some(gone(5))),
            (Some(live(5)), None, Deleted, Some(gone(5))),
            (Some(live(5)), Some(5), Deleted, Some(gone(5))),
            (Some(live(5)), Some(7), Deleted, Some(gone(7))),
            (Some(live(5)), Some(4), Stale, None),
            (Some(gone(5)), None, Unchanged, None),
            (Some(gone(5)), Some(5), Unchanged, None),
            (Some(gone(5)), Some(7), Unchanged, Some(gone(7))),
            (Some(gone(5)), Some(4), Stale, None),
        ];
        for (stored, named, change, store) in cases {
            let detected = detect_delete(stored, named.map(Revision::new));
            assert_eq!(detected, Detected { change, store }, "delete {named:?} over {stored:?}");
        }
    }

    #[test]
    fn leaves() {
        let cases = [
            (None, live(5), Unchanged, None),
            (Some(live(5)), live(5), Deleted, Some(gone(5))),
            (Some(live(5)), live(4), Unchanged, None),
            (Some(live(5)), live(6), Unchanged, None),
            (Some(live(5)), gone(5), Unchanged, None),
            (Some(gone(5)), live(5), Unchanged, None),
            (Some(gone(5)), gone(5), Unchanged, None),
        ];
        for (stored, at, change, store) in cases {
            let detected = detect_leave(stored, at);
            assert_eq!(detected, Detected { change, store }, "leave {at} over {stored:?}");
        }
    }

    #[test]
    fn only_real_changes_notify() {
        for (change, notifies) in
            [(Created, true), (Updated, true), (Deleted, true), (Unchanged, false), (Stale, false)]
        {
            assert_eq!(change.notifies(), notifies, "{}", change.as_str());
        }
    }
}
