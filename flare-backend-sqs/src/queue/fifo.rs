//! Takes messages for FIFO queues; gives what such queues want to know of each: a group, and an id that
//! no other message has.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The longest name of a group.
const LONGEST_GROUP: usize = 128;

/// What the group begins with that a message has to itself.
const ALONE: char = '!';

/// What the group begins with whose name SQS would not take.
const HASHED: char = '#';

/// Ids that no message and no request had before, of this sender or any other: SQS swallows what has the
/// id of a message of the last five minutes. The SDK's repetitions of one request share them, so that
/// these are swallowed.
#[derive(Debug)]
pub(crate) struct Ids {
    sender: u64,
    next: AtomicU64,
}

impl Ids {
    /// Ids of a sender that nobody else is.
    pub(crate) fn random() -> Self {
        Self::of(RandomState::new().hash_one("sender"))
    }

    fn of(sender: u64) -> Self {
        Self { sender, next: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> String {
        format!("{:016x}-{:x}", self.sender, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// What SQS calls the group of a message with this id; without a group it has one to itself, so that it
/// holds back nothing.
pub(super) fn group_id(group: Option<&str>, id: &str) -> String {
    match group {
        None => format!("{ALONE}{id}"),
        Some(group) if is_taken_as_it_is(group) => group.to_owned(),
        Some(group) => {
            format!("{HASHED}{}", URL_SAFE_NO_PAD.encode(Sha256::digest(group.as_bytes())))
        }
    }
}

fn is_taken_as_it_is(group: &str) -> bool {
    (1..=LONGEST_GROUP).contains(&group.len())
        && group.bytes().all(|byte| byte.is_ascii_graphic())
        && !group.starts_with([ALONE, HASHED])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_id_is_given_twice() {
        let (one, other) = (Ids::of(1), Ids::of(2));
        let ids: HashSet<String> = (0..1_000).flat_map(|_| [one.next(), other.next()]).collect();
        assert_eq!(ids.len(), 2_000);
        assert_ne!(Ids::random().next(), Ids::random().next());
    }

    #[test]
    fn a_group_is_called_as_it_is_where_sqs_takes_that() {
        assert_eq!(
            group_id(Some("https://api.example/users/1?"), "id"),
            "https://api.example/users/1?"
        );
        assert_eq!(group_id(Some(&"x".repeat(128)), "id"), "x".repeat(128));
        for odd in ["", "a b", "ü", "#x", "!id", &"x".repeat(129), &"x".repeat(2_048)] {
            let group = group_id(Some(odd), "id");
            assert!(group.starts_with(HASHED) && group.len() == 44, "{odd:?} is {group}");
        }
        assert_eq!(group_id(None, "id"), "!id");
    }

    proptest! {
        #[test]
        fn groups_are_apart_and_sqs_takes_them(one in "\\PC{0,200}", other in "\\PC{0,200}") {
            let (first, second) = (group_id(Some(&one), "a"), group_id(Some(&other), "b"));
            prop_assert_eq!(one == other, first == second);
            for group in [first, second] {
                prop_assert!((1..=LONGEST_GROUP).contains(&group.len()));
                prop_assert!(group.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
