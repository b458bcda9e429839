//! Takes the time and a seed; gives ids that sort by creation. Never reads a clock or the
//! system's randomness itself.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Invalid, Timestamp};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The id with these 16 bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The id's 16 bytes.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl From<FreshId> for $name {
            fn from(fresh: FreshId) -> Self {
                Self(fresh.0)
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                // Only the hyphenated form is an id: one thing, one name.
                match Uuid::try_parse(text) {
                    Ok(id) if text.len() == 36 => Ok(Self(id)),
                    _ => Err(Invalid::new("id", concat!("is not the id of a ", $what))),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// Names a resource.
    ResourceId, "resource"
);
id!(
    /// Names a subscription.
    SubscriptionId, "subscription"
);
id!(
    /// Names a consumer.
    ConsumerId, "consumer"
);
id!(
    /// Names a message that became no document.
    RejectId, "reject"
);
id!(
    /// Names a notification that was given up.
    DeadLetterId, "dead letter"
);
id!(
    /// Names a stored job.
    JobId, "job"
);
id!(
    /// Names an entry of the log of what operators and nodes did.
    AuditEntryId, "log entry"
);
id!(
    /// Names one claim of rows; its holder may settle them until it expires.
    ClaimId, "claim"
);

id!(
    /// Names one running node; fresh for every start, so that no node is taken for its predecessor.
    NodeId, "node"
);

/// An id that has not been given a meaning yet: turns into any of the id types.
#[derive(Debug, Clone, Copy)]
pub struct FreshId(Uuid);

/// Makes UUIDv7s that strictly increase within this source, from a seed and the caller's clock.
///
/// The same seed and the same times give the same ids, so a failing run can be replayed.
///
/// ```
/// use flare_core::model::{IdSource, ResourceId, Timestamp};
///
/// let ids = IdSource::seeded(7);
/// let now = Timestamp::from_unix_seconds(1_700_000_000);
/// let first: ResourceId = ids.next(now).into();
/// let second: ResourceId = ids.next(now).into();
/// assert!(first < second);
/// ```
pub struct IdSource {
    state: Mutex<IdState>,
}

struct IdState {
    random: fastrand::Rng,
    millis: u64,
    /// The 74 bits after the time, of which the upper are random and the lower count.
    tail: u128,
}

const TAIL_BITS: u32 = 74;

impl IdSource {
    /// A source whose ids follow from `seed` alone.
    pub fn seeded(seed: u64) -> Self {
        let state = IdState { random: fastrand::Rng::with_seed(seed), millis: 0, tail: 0 };
        Self { state: Mutex::new(state) }
    }

    /// The next id: greater than all this source gave before, even if `now` went backwards.
    pub fn next(&self, now: Timestamp) -> FreshId {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = u64::try_from(now.unix_millis()).unwrap_or(0);
        if millis > state.millis {
            state.millis = millis;
            // The top bit stays clear: room to count on within the millisecond.
            state.tail = state.random.u128(..) >> (128 - TAIL_BITS + 1);
        } else {
            state.tail += 1 + u128::from(state.random.u32(..));
            if state.tail >> TAIL_BITS != 0 {
                state.millis += 1;
                state.tail = 0;
            }
        }
        FreshId(uuid_v7(state.millis, state.tail))
    }
}

impl fmt::Debug for IdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdSource").finish_non_exhaustive()
    }
}

/// Lays 48 bits of time and 74 bits of tail around the version and variant bits of RFC 9562.
fn uuid_v7(millis: u64, tail: u128) -> Uuid {
    let upper = tail >> 62;
    let lower = tail & ((1 << 62) - 1);
    let time = u128::from(millis) << 80;
    Uuid::from_u128(time | (0x7 << 76) | (upper << 64) | (0b10 << 62) | lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_carry_their_time() {
        let id = IdSource::seeded(1).next(Timestamp::from_unix_millis(1_700_000_000_123)).0;
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(id.as_u128() >> 80, 1_700_000_000_123);
    }

    #[test]
    fn ids_increase_even_when_the_clock_goes_backwards() {
        let ids = IdSource::seeded(2);
        let mut last = ids.next(Timestamp::from_unix_millis(5_000)).0;
        for millis in [5_000, 4_000, 5_000, 0, -1, 5_001, 5_001] {
            for _ in 0..1_000 {
                let next = ids.next(Timestamp::from_unix_millis(millis)).0;
                assert!(next > last);
                last = next;
            }
        }
    }

    #[test]
    fn an_exhausted_millisecond_borrows_from_the_next() {
        let ids = IdSource::seeded(3);
        let before = ids.next(Timestamp::from_unix_millis(10)).0;
        ids.state.lock().unwrap().tail = (1 << TAIL_BITS) - 1;
        let after = ids.next(Timestamp::from_unix_millis(10)).0;
        assert!(after > before);
        assert_eq!(after.get_version_num(), 7);
    }

    #[test]
    fn the_same_seed_gives_the_same_ids() {
        let (a, b) = (IdSource::seeded(9), IdSource::seeded(9));
        for millis in [1, 1, 2] {
            let now = Timestamp::from_unix_millis(millis);
            assert_eq!(a.next(now).0, b.next(now).0);
        }
    }

    #[test]
    fn only_the_hyphenated_form_is_an_id() {
        let id: ResourceId = "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap();
        assert_eq!(id.to_string(), "0190163d-8694-739b-aea5-966c26f8ad91");
        for wrong in
            ["", "x", "0190163d8694739baea5966c26f8ad91", "{0190163d-8694-739b-aea5-966c26f8ad91}"]
        {
            let refused = wrong.parse::<ResourceId>().unwrap_err();
            assert_eq!(refused.field(), "id");
        }
    }
}
