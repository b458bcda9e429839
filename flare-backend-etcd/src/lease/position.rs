//! Takes the changes a watch is told, some of them again; gives which of them are news, and from
//! where to go on. Decides only.
//!
//! A broken watch goes on *at* the last revision that was given, not after it: changes of one
//! revision (a lease that ended with several keys) may come in parts, of which some were given. And
//! where history was cut exactly at the first change asked for, and that is a deletion, etcd may
//! have dropped it without saying so; asked for an earlier one, it says that history was cut.

use std::collections::BTreeSet;

use flare_core::port::StoreRevision;

/// How far a watch has come.
#[derive(Debug)]
pub(super) struct Position {
    revision: StoreRevision,
    /// The keys whose changes at this revision were given; none if all were.
    given: Option<BTreeSet<Vec<u8>>>,
}

impl Position {
    /// Everything up to `revision` was given.
    pub(super) const fn after(revision: StoreRevision) -> Self {
        Self { revision, given: None }
    }

    pub(super) const fn revision(&self) -> StoreRevision {
        self.revision
    }

    /// The first revision to ask for. Nought would mean: what happens from now on.
    pub(super) fn start(&self) -> i64 {
        i64::try_from(self.revision.get()).unwrap_or(i64::MAX).max(1)
    }

    /// Whether a change was not given yet; from now on it was.
    pub(super) fn is_news(&mut self, revision: StoreRevision, key: &[u8]) -> bool {
        if revision < self.revision {
            return false;
        }
        if revision > self.revision {
            *self = Self { revision, given: Some(BTreeSet::new()) };
        }
        self.given.as_mut().is_some_and(|given| given.insert(key.to_vec()))
    }

    /// The store has said that there is nothing else up to `revision`.
    pub(super) fn reached(&mut self, revision: StoreRevision) {
        if revision >= self.revision {
            *self = Self::after(revision);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> StoreRevision {
        StoreRevision::new(number)
    }

    #[test]
    fn what_was_before_is_no_news() {
        let mut position = Position::after(at(5));
        assert!(!position.is_news(at(4), b"a"));
        assert!(!position.is_news(at(5), b"a"));
        assert!(position.is_news(at(6), b"a"));
    }

    #[test]
    fn a_revision_that_came_in_parts_is_given_once() {
        let mut position = Position::after(at(5));
        assert!(position.is_news(at(6), b"a"));
        assert!(position.is_news(at(6), b"b"));
        assert_eq!(position.start(), 6);
        // The stream breaks, and the next one tells all of it.
        for (key, news) in [(b"a", false), (b"b", false), (b"c", true), (b"c", false)] {
            assert_eq!(position.is_news(at(6), key), news, "{key:?}");
        }
        assert!(position.is_news(at(7), b"a"));
        assert!(!position.is_news(at(6), b"d"));
    }

    #[test]
    fn from_the_beginning_means_from_the_first() {
        assert_eq!(Position::after(at(0)).start(), 1);
        assert_eq!(Position::after(at(1)).start(), 1);
        assert_eq!(Position::after(at(u64::MAX)).start(), i64::MAX);
    }

    #[test]
    fn what_the_store_has_told_of_is_never_asked_for_again() {
        let mut position = Position::after(at(5));
        assert!(position.is_news(at(6), b"a"));
        position.reached(at(9));
        assert_eq!(position.start(), 9);
        assert!(!position.is_news(at(9), b"a"));
        position.reached(at(3));
        assert_eq!(position.revision(), at(9));
    }
}
