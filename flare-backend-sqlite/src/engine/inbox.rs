//! Takes jobs from any thread; gives them to those who work, urgent ones first, as many as wait. Bounded by
//! weight: whoever brings more is told that it is full.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs that wait for a thread.
#[derive(Debug)]
pub(super) struct Inbox<J> {
    state: Mutex<Waiting<J>>,
    filled: Condvar,
    most: usize,
}

#[derive(Debug)]
struct Waiting<J> {
    urgent: VecDeque<Weighed<J>>,
    others: VecDeque<Weighed<J>>,
    weight: usize,
    closed: bool,
}

#[derive(Debug)]
struct Weighed<J> {
    job: J,
    weight: usize,
}

/// Why a job was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// As much waits as may.
    Full,
    /// Nobody works any more.
    Closed,
}

impl<J> Inbox<J> {
    /// An inbox for jobs of `most` weight together. One alone may be of any weight.
    pub(super) fn new(most: usize) -> Self {
        let (urgent, others) = (VecDeque::new(), VecDeque::new());
        let state = Mutex::new(Waiting { urgent, others, weight: 0, closed: false });
        Self { state, filled: Condvar::new(), most }
    }

    /// Has a job wait for its turn. Urgent ones wait in any case: they are few.
    pub(super) fn put(&self, job: J, weight: usize, urgent: bool) -> Result<(), NotTaken> {
        let mut state = self.lock();
        if state.closed {
            return Err(NotTaken::Closed);
        }
        if !urgent && state.weight > 0 && state.weight + weight > self.most {
            return Err(NotTaken::Full);
        }
        state.weight += weight;
        let line = if urgent { &mut state.urgent } else { &mut state.others };
        line.push_back(Weighed { job, weight });
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// What waits, up to `most` weight and one job at least; waits for some. `None` once it is closed and
    /// empty.
    pub(super) fn take(&self, most: usize) -> Option<Vec<J>> {
        let mut state = self.lock();
        loop {
            if let Some(taken) = state.take(most) {
                return Some(taken);
            }
            if state.closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The same, if anything waits.
    pub(super) fn take_now(&self, most: usize) -> Option<Vec<J>> {
        self.lock().take(most)
    }

    /// Takes nothing more; what waits is still worked.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    /// Takes nothing more and forgets what waits: nobody is left to work it.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.urgent.clear();
        state.others.clear();
        state.weight = 0;
    }

    // A panic while the lock is held leaves no half-made change behind.
    fn lock(&self) -> MutexGuard<'_, Waiting<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J> Waiting<J> {
    fn take(&mut self, most: usize) -> Option<Vec<J>> {
        let (mut taken, mut weight) = (Vec::new(), 0);
        while let Some(next) = self.urgent.front().or_else(|| self.others.front()) {
            if !taken.is_empty() && weight + next.weight > most {
                break;
            }
            let next = self.urgent.pop_front().or_else(|| self.others.pop_front());
            let Some(Weighed { job, weight: its }) = next else { break };
            weight += its;
            self.weight -= its;
            taken.push(job);
        }
        (!taken.is_empty()).then_some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_what_waits_together_urgent_ones_first() {
        let inbox = Inbox::new(10);
        inbox.put("a", 1, false).unwrap();
        inbox.put("b", 1, false).unwrap();
        inbox.put("c", 1, true).unwrap();
        assert_eq!(inbox.take(10).unwrap(), ["c", "a", "b"]);
        assert_eq!(inbox.take_now(10), None);
    }

    #[test]
    fn gives_up_to_a_weight_and_one_at_least() {
        let inbox = Inbox::new(100);
        for (job, weight) in [("a", 50), ("b", 1), ("c", 1), ("d", 3)] {
            inbox.put(job, weight, false).unwrap();
        }
        assert_eq!(inbox.take(4).unwrap(), ["a"]);
        assert_eq!(inbox.take(4).unwrap(), ["b", "c"]);
        assert_eq!(inbox.take(4).unwrap(), ["d"]);
    }

    #[test]
    fn says_when_it_is_full_and_when_it_is_closed() {
        let inbox = Inbox::new(3);
        inbox.put("huge, but alone", 9, false).unwrap();
        assert_eq!(inbox.put("more", 1, false), Err(NotTaken::Full));
        inbox.put("urgent", 1, true).unwrap();
        assert_eq!(inbox.take(100).unwrap().len(), 2);
        inbox.put("more", 3, false).unwrap();
        inbox.close();
        assert_eq!(inbox.put("late", 1, false), Err(NotTaken::Closed));
        assert_eq!(inbox.take(1).unwrap(), ["more"], "what waits is worked");
        assert_eq!(inbox.take(1), None);
    }

    #[test]
    fn whoever_waits_is_woken() {
        let inbox = Inbox::new(3);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| inbox.take(1));
            inbox.put(7, 1, false).unwrap();
            assert_eq!(waits.join().unwrap(), Some(vec![7]));
            let waits = scope.spawn(|| inbox.take(1));
            inbox.close();
            assert_eq!(waits.join().unwrap(), None);
        });
    }
}
