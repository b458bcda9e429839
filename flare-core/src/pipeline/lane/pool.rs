//! Takes how much of something there is and who holds it; gives how much more one of them may
//! have. Pure. Two things are shared this way: requests in flight, and bytes of documents.

/// Something that all clients share, of which no client gives back what it was given before it is done.
///
/// Each may hold as much as is left for others, so two that take all they can get have a third
/// each, and the last third is there for the client that comes next. What slow clients hold stays away for
/// long, so all of them together have half.
///
/// What a client needs to get on at all (one request, one document) is its own and not counted
/// here: no number of others can keep it from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pool {
    limit: u64,
    held: u64,
    /// The part of it that slow clients hold.
    slow: u64,
}

impl Pool {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, held: 0, slow: 0 }
    }

    /// How much more one may take who holds `own` by now.
    pub(super) fn part(&self, own: u64, slow: bool) -> u64 {
        let mut left = self.limit.saturating_sub(self.held);
        if slow {
            left = left.min((self.limit / 2).saturating_sub(self.slow));
        }
        // Each unit taken is one more held and one less left: halfway the two are equal.
        left.saturating_add(1).saturating_sub(own) / 2
    }

    pub(super) fn take(&mut self, amount: u64, slow: bool) {
        self.held += amount;
        if slow {
            self.slow += amount;
        }
    }

    /// Takes back what was taken, said to be slow as it was then.
    pub(super) fn give_back(&mut self, amount: u64, slow: bool) {
        self.held = self.held.saturating_sub(amount);
        if slow {
            self.slow = self.slow.saturating_sub(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Has some take all they can get, one unit after the other in turn; gives what each has.
    fn greedy(pool: &mut Pool, slow: &[bool]) -> Vec<u64> {
        let mut own = vec![0; slow.len()];
        loop {
            let before = own.clone();
            for (own, slow) in own.iter_mut().zip(slow) {
                if pool.part(*own, *slow) > 0 {
                    pool.take(1, *slow);
                    *own += 1;
                }
            }
            if own == before {
                return own;
            }
        }
    }

    #[test]
    fn nobody_gets_more_than_is_left_for_others() {
        assert_eq!(greedy(&mut Pool::new(1_024), &[false]), [512]);
        assert_eq!(greedy(&mut Pool::new(1_024), &[false, false]), [342, 341]);
        assert_eq!(greedy(&mut Pool::new(1_024), &[true]), [256]);
        let many = greedy(&mut Pool::new(1_024), &[true; 32]);
        assert!(many.iter().all(|own| (15..=16).contains(own)), "{many:?}");
        assert_eq!(greedy(&mut Pool::new(1), &[false, false]), [1, 0]);
        assert_eq!(greedy(&mut Pool::new(1), &[true]), [0]);
    }

    #[test]
    fn what_may_be_taken_at_once_is_what_may_be_taken_one_by_one() {
        for limit in 0..40 {
            for own in 0..limit {
                for held in own..=limit {
                    let mut pool = Pool { limit, held, slow: 0 };
                    let part = pool.part(own, false);
                    let mut taken = 0;
                    while pool.part(own + taken, false) > 0 {
                        pool.take(1, false);
                        taken += 1;
                    }
                    assert_eq!(part, taken, "{own} of {held} of {limit}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// However many slow ones there are and whatever they hold by now, those that are not slow
        /// share half among them, and none of them gets less than its part of that.
        #[test]
        fn slow_ones_leave_half_to_the_others(
            limit in 2..500u64,
            slow in 0..100usize,
            quick in 1..20usize,
        ) {
            let mut pool = Pool::new(limit);
            let before: u64 = greedy(&mut pool, &vec![true; slow]).iter().sum();
            prop_assert!(before <= limit / 2);
            let own = greedy(&mut pool, &vec![false; quick]);
            let least = (limit - limit / 2) / (quick as u64 + 1);
            prop_assert!(own.iter().all(|own| *own >= least), "{own:?} of {limit}");
        }

        #[test]
        fn what_is_given_back_can_be_taken_again(
            limit in 1..1_000u64,
            steps in prop::collection::vec((any::<bool>(), 0..4usize, any::<bool>()), 0..200),
        ) {
            let mut pool = Pool::new(limit);
            let mut held = [(0, false); 4];
            for (take, who, turns) in steps {
                let (own, slow) = &mut held[who];
                if turns {
                    pool.give_back(*own, *slow);
                    *slow = !*slow;
                    pool.take(*own, *slow);
                }
                if take {
                    let part = pool.part(*own, *slow);
                    pool.take(part, *slow);
                    *own += part;
                } else {
                    pool.give_back(*own, *slow);
                    *own = 0;
                }
                prop_assert_eq!(pool.held, held.iter().map(|it| it.0).sum::<u64>());
                prop_assert!(pool.held <= limit);
            }
            for (own, slow) in held {
                pool.give_back(own, slow);
            }
            prop_assert_eq!(pool, Pool::new(limit));
        }
    }
}
