//! Where a subscription's lanes are among the slots, whatever number of slots there is. Never changes:
//! stores keep these hashes, so the function is written out here and held by a golden test.

use std::ops::RangeInclusive;

use super::{ConsumerId, SubscriptionId};

/// A stable hash of a subscription's id that says which slot its lanes are in, unless another one is
/// reserved for them.
///
/// It is kept in an order in which the subscriptions of a slot stand together: with a power of two of
/// slots each is one range of hashes, and two neighbouring slots of twice as many are one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotHash(u32);

impl SlotHash {
    /// The hash of a subscription.
    pub const fn of(subscription: SubscriptionId) -> Self {
        Self::of_id(subscription.as_bytes())
    }

    /// The hash of a consumer.
    pub const fn of_consumer(consumer: ConsumerId) -> Self {
        Self::of_id(consumer.as_bytes())
    }

    const fn of_id(id: &[u8; 16]) -> Self {
        // The last bytes of an id are random, so they need no further mixing. What a slot is chosen by
        // are their lowest bits, which are the highest of the hash.
        let [.., a, b, c, d] = *id;
        Self(u32::from_be_bytes([a, b, c, d]).reverse_bits())
    }

    /// The hash with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The hash as a number, in which it is ordered.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The slot it belongs to among `slots` of them. No slots count as one.
    pub const fn slot(self, slots: u32) -> u32 {
        self.0.reverse_bits() % if slots == 0 { 1 } else { slots }
    }

    /// Which hashes the ones named of `slots` slots have, in ascending order and with gaps between
    /// them. With a power of two of slots no others; with 2^k times an odd number those of the slots
    /// besides that are the same modulo 2^k.
    pub fn ranges(
        named: impl IntoIterator<Item = u32>,
        slots: u32,
    ) -> Vec<RangeInclusive<SlotHash>> {
        let slots = slots.max(1);
        let bits = slots.trailing_zeros();
        let rest = u32::MAX >> bits;
        let firsts = named.into_iter().filter(|slot| *slot < slots);
        let mut firsts: Vec<u32> = firsts.map(|slot| slot.reverse_bits() & !rest).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let mut ranges: Vec<RangeInclusive<SlotHash>> = Vec::new();
        for first in firsts {
            let last = Self(first | rest);
            match ranges.last_mut() {
                Some(before) if before.end().0.checked_add(1) == Some(first) => {
                    *before = *before.start()..=last;
                }
                _ => ranges.push(Self(first)..=last),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{IdSource, Timestamp};

    fn ids() -> Vec<SubscriptionId> {
        let ids = IdSource::seeded(1);
        (0..16_000).map(|second| ids.next(Timestamp::from_unix_seconds(second)).into()).collect()
    }

    /// Stores keep the hashes, and nodes of other versions go by the slots: a change here has a lane
    /// worked by two nodes, or by none.
    #[test]
    fn hashes_and_slots_never_change() {
        let id =
            SubscriptionId::from_bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let hash = SlotHash::of(id);
        assert_eq!(hash.number(), 0x08F0_70B0);
        assert_eq!(SlotHash::of_consumer(ConsumerId::from_bytes(*id.as_bytes())), hash);
        assert_eq!(SlotHash::new(0x08F0_70B0), hash);
        let number = 0x0D0E_0F10_u32;
        for slots in [1, 2, 3, 7, 16, 48, 64, 1_000, 1_024, 65_536] {
            assert_eq!(hash.slot(slots), number % slots);
        }
        assert_eq!(hash.slot(0), 0);
    }

    #[test]
    fn subscriptions_spread_over_the_slots() {
        let mut counts = [0_u32; 16];
        ids().into_iter().for_each(|id| counts[SlotHash::of(id).slot(16) as usize] += 1);
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn ranges_have_the_hashes_of_their_slots_and_of_no_others() {
        let ids = ids();
        for slots in [1, 2, 64, 1_024, 65_536] {
            for named in [vec![], vec![0], vec![1, 0], (0..slots).step_by(3).collect::<Vec<u32>>()]
            {
                let ranges = SlotHash::ranges(named.iter().copied(), slots);
                for id in &ids {
                    let hash = SlotHash::of(*id);
                    let within = ranges.iter().any(|range| range.contains(&hash));
                    assert_eq!(within, named.contains(&hash.slot(slots)), "{slots} {named:?}");
                }
            }
        }
    }

    #[test]
    fn an_odd_factor_has_more_hashes_and_never_too_few() {
        let ids = ids();
        for (slots, share) in [(48, 16), (100, 4), (7, 1), (1_000, 8)] {
            let ranges = SlotHash::ranges([5], slots);
            let within = |hash: SlotHash| ranges.iter().any(|range| range.contains(&hash));
            for id in &ids {
                let hash = SlotHash::of(*id);
                assert_eq!(within(hash), hash.slot(slots) % share == 5 % share, "{slots}");
            }
        }
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let all = SlotHash::new(0)..=SlotHash::new(u32::MAX);
        let all = [all];
        assert_eq!(SlotHash::ranges(0..1_024, 1_024), all);
        assert_eq!(SlotHash::ranges([0, 0], 1), all);
        // Slots 0 and 2 of 4 are slot 0 of 2.
        assert_eq!(SlotHash::ranges([0, 2], 4), SlotHash::ranges([0], 2));
        assert_eq!(SlotHash::ranges([0, 1], 4).len(), 2);
        assert_eq!(SlotHash::ranges([4, 9], 4), [], "reserved slots have no hashes");
    }
}
