//! Takes calls of two parties that share the connections of a pool; gives each call a connection in
//! its turn, and each party a part of them that the other one never holds.
//!
//! The driver lets calls wait for a connection as well, but keeps those that were given up in its
//! line and serves one per event, so that whoever comes after a thousand of them waits for minutes.

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// Who calls. Two of them share a pool: work and puts that of repository and queue, steps and looks
/// that of the leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    /// Whatever goes on with what was accepted, or is asked for beside it.
    Work,
    /// An origin's puts and deletes, up to their announcement: as many as it likes.
    Puts,
    /// A change of the leases, a keep-alive among them.
    Steps,
    /// A look at the leases.
    Looks,
}

/// The connections of a pool, by number.
#[derive(Debug)]
pub(crate) struct Places {
    all: Semaphore,
    /// What work, or steps, may hold.
    first: Semaphore,
    /// What puts, or looks, may hold.
    second: Semaphore,
}

/// The right to use a connection.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// Given back first: who waits for it has the other one already.
    _any: SemaphorePermit<'a>,
    _own: SemaphorePermit<'a>,
}

impl Places {
    /// So many places, at least one.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.max(1);
        let most = most_of_one(count);
        Self {
            all: Semaphore::new(count),
            first: Semaphore::new(most),
            second: Semaphore::new(most),
        }
    }

    /// A place, once there is one. Calls of a party are served in turn; where both wait for the
    /// same place, so are they.
    pub(crate) async fn take(&self, party: Party) -> Result<Place<'_>, AcquireError> {
        let own = match party {
            Party::Work | Party::Steps => &self.first,
            Party::Puts | Party::Looks => &self.second,
        };
        // In this order no more of a party wait for one of all places than it may hold.
        let own = own.acquire().await?;
        Ok(Place { _any: self.all.acquire().await?, _own: own })
    }
}

/// How many of so many places one party may hold: a tenth is left to the other one, and at least one
/// where there are two. It need not be more, for the rest is shared out in turn as soon as both want it:
/// what is left is for when the calls of one party hang.
fn most_of_one(count: usize) -> usize {
    let left = (count / 10).max(1);
    count.saturating_sub(left).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use futures::FutureExt;
    use futures::future::LocalBoxFuture;

    use super::*;

    /// All that can be taken now.
    fn take_all(places: &Places, party: Party) -> Vec<Place<'_>> {
        std::iter::from_fn(|| places.take(party).now_or_never()?.ok()).collect()
    }

    #[test]
    fn each_party_leaves_a_tenth_to_the_other_and_uses_all_but_that() {
        for (count, most) in [(1, 1), (2, 1), (3, 2), (10, 9), (19, 18), (100, 90)] {
            for (greedy, other) in [(Party::Puts, Party::Work), (Party::Steps, Party::Looks)] {
                let places = Places::new(count);
                let held = take_all(&places, greedy);
                assert_eq!(held.len(), most, "{greedy:?} of {count}");
                assert_eq!(take_all(&places, other).len(), count - most, "{other:?} of {count}");
            }
        }
    }

    #[test]
    fn a_place_given_back_is_anybodys() {
        let places = Places::new(10);
        drop(take_all(&places, Party::Puts));
        assert_eq!(take_all(&places, Party::Work).len(), 9);
    }

    #[test]
    fn what_both_want_they_share_in_turn() {
        let places = Places::new(10);
        let mut held: VecDeque<(Party, Place<'_>)> =
            take_all(&places, Party::Puts).into_iter().map(|place| (Party::Puts, place)).collect();
        type Waiting<'a> = LocalBoxFuture<'a, Result<Place<'a>, AcquireError>>;
        let wait = |party| -> (Party, Waiting<'_>) { (party, places.take(party).boxed_local()) };
        let mut waiting: Vec<_> = [Party::Puts, Party::Work]
            .into_iter()
            .flat_map(|it| (0..50).map(move |_| it))
            .map(wait)
            .collect();
        let mut served = Vec::new();
        for _ in 0..200 {
            waiting.retain_mut(|(party, place)| match place.now_or_never() {
                Some(place) => {
                    held.push_back((*party, place.unwrap()));
                    false
                }
                None => true,
            });
            let Some((party, _)) = held.pop_front() else { break };
            // Whoever was served comes again.
            served.push(party);
            waiting.push(wait(party));
        }
        let work = served.iter().skip(20).filter(|party| **party == Party::Work).count();
        assert!((70..=110).contains(&work), "work was served {work} of 180 times");
    }

    #[test]
    fn with_a_single_place_the_parties_take_turns() {
        let places = Places::new(1);
        let held = take_all(&places, Party::Puts);
        let mut next_put = Box::pin(places.take(Party::Puts));
        let mut work = Box::pin(places.take(Party::Work));
        assert!((&mut next_put).now_or_never().is_none());
        assert!((&mut work).now_or_never().is_none());
        drop(held);
        // The put came first, and yet had to wait for its own party's place.
        assert!((&mut next_put).now_or_never().is_none());
        assert!(work.now_or_never().is_some_and(|place| place.is_ok()));
        assert!(next_put.now_or_never().is_some_and(|place| place.is_ok()));
    }
}
