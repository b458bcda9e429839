//! Takes what is worst; gives those of it that get metrics under a name of their own. However many there are and take
//! turns at being worst, so many names are given at most.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

/// Recorders may have forgotten a name after this time.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(1);
/// So many times as many names as are shown at once are given within that time.
const NAMES: usize = 10;
/// What all are called that have no name of their own.
pub(super) const OTHERS: &str = "others";

/// Those that have metrics of their own.
#[derive(Debug)]
pub(super) struct MeteredNames<I> {
    most: usize,
    /// When each was named last, by the monotonic clock.
    named: HashMap<I, Duration>,
    /// Those that were named the last time.
    shown: HashSet<I>,
}

impl<I: Copy + Eq + Hash> MeteredNames<I> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, named: HashMap::new(), shown: HashSet::new() }
    }

    /// Whether any may have a name.
    pub(super) fn is_off(&self) -> bool {
        self.most == 0
    }

    /// Half of them from the first of two orders, the rest from the second; each begins with the worst.
    pub(super) fn choose(&mut self, orders: [Vec<I>; 2], now: Duration) -> HashSet<I> {
        self.named.retain(|_, at| now.saturating_sub(*at) < FORGOTTEN_AFTER);
        let mut worst = HashSet::new();
        for (order, room) in orders.into_iter().zip([self.most / 2, self.most]) {
            for id in order {
                if worst.len() >= room {
                    break;
                }
                let known = self.named.contains_key(&id);
                if known || self.named.len() < self.most.saturating_mul(NAMES) {
                    self.named.insert(id, now);
                    worst.insert(id);
                }
            }
        }
        worst
    }

    /// Those are shown now; gives those that were, and are well again.
    pub(super) fn show(&mut self, worst: HashSet<I>) -> Vec<I> {
        let well = self.shown.difference(&worst).copied().collect();
        self.shown = worst;
        well
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_names_are_for_each_order() {
        let mut names = MeteredNames::new(4);
        let chosen = names.choose([vec![1, 2, 3], vec![4, 1, 5, 6]], Duration::ZERO);
        assert_eq!(chosen, HashSet::from([1, 2, 4, 5]));
        assert!(names.show(chosen).is_empty());
        let fewer = names.choose([vec![1], vec![]], Duration::ZERO);
        let mut well = names.show(fewer);
        well.sort_unstable();
        assert_eq!(well, [2, 4, 5]);
    }

    #[test]
    fn few_names_are_given_however_many_take_turns() {
        let mut names = MeteredNames::new(2);
        let mut given = HashSet::new();
        for turn in 0..1_000 {
            let orders = [vec![turn + 1, turn], vec![turn, turn + 1]];
            given.extend(names.choose(orders, Duration::from_secs(1)));
        }
        assert_eq!(given.len(), 2 * NAMES);
        assert!(names.named.len() <= 2 * NAMES);
        let later = names.choose([vec![5_000], vec![5_000]], Duration::from_hours(2));
        assert_eq!(later, HashSet::from([5_000]), "others are forgotten by then");
    }
}
