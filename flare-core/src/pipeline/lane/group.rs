//! Takes what the lanes of one term have to store; gives it to the store in calls they share:
//! a lane that comes while as many as allowed are under way goes with the next one, and all who wait
//! go together. Waits for nothing but the store.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, oneshot};

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Applied, Epoch, LaneState};
use crate::pipeline::context::Context;
use crate::port::RowUpdate;
use crate::tools::lock;

/// Calls of a kind under way at a time. More would make each of them smaller, fewer would have
/// the lanes wait for the answer to a large one.
const CALLS: usize = 2;

type Answers = Vec<Result<Applied>>;
type Call<T> = Box<dyn Fn(Vec<T>) -> BoxFuture<'static, Answers> + Send + Sync>;

/// What all lanes of a term store, fenced by its epoch.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(super) rows: Group<RowUpdate>,
    pub(super) lanes: Group<LaneState>,
}

impl Groups {
    pub(crate) fn new(context: &Context, epoch: Epoch) -> Self {
        let limit = context.batch_limit();
        let store = Arc::clone(&context.repository);
        let rows = move |rows| {
            let store = Arc::clone(&store);
            async move { store.apply_rows(epoch, rows).await }.boxed()
        };
        let store = Arc::clone(&context.repository);
        let lanes = move |lanes| {
            let store = Arc::clone(&store);
            async move { store.store_lanes(epoch, lanes).await }.boxed()
        };
        Self { rows: Group::new(limit, Box::new(rows)), lanes: Group::new(limit, Box::new(lanes)) }
    }
}

/// One kind of fenced write.
pub(super) struct Group<T> {
    limit: usize,
    call: Call<T>,
    turns: Semaphore,
    waiting: Mutex<VecDeque<WaitingWrite<T>>>,
}

struct WaitingWrite<T> {
    items: Vec<T>,
    answer: oneshot::Sender<Answers>,
}

impl<T> Group<T> {
    /// Writes by `call`, about no more than `limit` items at a time.
    fn new(limit: usize, call: Call<T>) -> Self {
        Self { limit, call, turns: Semaphore::new(CALLS), waiting: Mutex::default() }
    }

    /// Stores items, no more than fit into a batch; one answer per item.
    pub(super) async fn store(&self, items: Vec<T>) -> Answers {
        if let Ok(_turn) = self.turns.try_acquire() {
            // No lane is waiting, or the turn would be its.
            return (self.call)(items).await;
        }
        let count = items.len();
        let (answer, mut answered) = oneshot::channel();
        self.lock().push_back(WaitingWrite { items, answer });
        loop {
            tokio::select! {
                biased;
                answers = &mut answered => return answers.unwrap_or_else(|_| unknown(count)),
                Ok(_turn) = self.turns.acquire() => self.store_waiting().await,
            }
        }
    }

    /// Stores as much of what waits as goes into one call.
    async fn store_waiting(&self) {
        let mut items = Vec::new();
        let mut parts = Vec::new();
        {
            let mut waiting = self.lock();
            while let Some(next) = waiting.pop_front() {
                if !items.is_empty() && items.len() + next.items.len() > self.limit {
                    waiting.push_front(next);
                    break;
                }
                // A lane that is gone was lost.
                if !next.answer.is_closed() {
                    parts.push((next.items.len(), next.answer));
                    items.extend(next.items);
                }
            }
        }
        if items.is_empty() {
            return;
        }
        let mut answers = (self.call)(items).await.into_iter();
        for (count, answer) in parts {
            // One who left meanwhile does not want to know.
            let _ = answer.send(answers.by_ref().take(count).collect());
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<WaitingWrite<T>>> {
        lock(&self.waiting)
    }
}

/// The lane that stored for us was dropped half-way.
fn unknown(count: usize) -> Answers {
    let error =
        Error::new(ErrorKind::Unavailable, "store").with_detail("the lane that stored it ended");
    (0..count).map(|_| Err(error.clone())).collect()
}

impl<T> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("waiting", &self.lock().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store that answers one call each time it is told to, and what it was called with.
    #[derive(Clone)]
    struct Slow {
        calls: Arc<Mutex<Vec<Vec<u32>>>>,
        answers: Arc<Semaphore>,
    }

    impl Slow {
        fn group(limit: usize) -> (Self, Group<u32>) {
            let slow = Self { calls: Arc::default(), answers: Arc::new(Semaphore::new(0)) };
            let store = slow.clone();
            let call = move |items: Vec<u32>| {
                let (count, answers) = (items.len(), Arc::clone(&store.answers));
                store.calls.lock().unwrap().push(items);
                async move {
                    answers.acquire().await.unwrap().forget();
                    (0..count).map(|_| Ok(Applied::Done)).collect()
                }
                .boxed()
            };
            (slow, Group::new(limit, Box::new(call)))
        }

        fn calls(&self) -> Vec<Vec<u32>> {
            self.calls.lock().unwrap().clone()
        }
    }

    type Storing<'a> = BoxFuture<'a, Answers>;

    fn begin(group: &Group<u32>, items: Vec<u32>) -> Storing<'_> {
        let mut storing = group.store(items).boxed();
        assert!(storing.as_mut().now_or_never().is_none());
        storing
    }

    /// How many of them have their answers now, each as many as it asked for.
    fn ended(storing: &mut Vec<Storing<'_>>) -> Vec<usize> {
        let mut ended = Vec::new();
        storing.retain_mut(|storing| match storing.as_mut().now_or_never() {
            Some(answers) => {
                assert!(answers.iter().all(Result::is_ok));
                ended.push(answers.len());
                false
            }
            None => true,
        });
        ended
    }

    #[test]
    fn whoever_waits_goes_with_the_next_call_as_far_as_it_takes_them() {
        let (slow, group) = Slow::group(3);
        let items = [vec![1], vec![2], vec![3], vec![4, 5], vec![6], vec![7, 8, 9]];
        let mut storing: Vec<_> = items.into_iter().map(|items| begin(&group, items)).collect();
        assert_eq!(slow.calls(), [vec![1], vec![2]]);
        slow.answers.add_permits(2);
        assert_eq!(ended(&mut storing), [1, 1]);
        assert!(ended(&mut storing).is_empty());
        assert_eq!(slow.calls()[2..], [vec![3, 4, 5], vec![6]]);
        slow.answers.add_permits(2);
        let all = std::iter::repeat_with(|| ended(&mut storing)).take(4).flatten();
        assert_eq!(all.collect::<Vec<_>>(), [1, 2, 1]);
        assert_eq!(slow.calls()[4..], [vec![7, 8, 9]]);
    }

    #[test]
    fn nobody_waits_for_one_who_left() {
        let (slow, group) = Slow::group(10);
        let [first, second, mut third, mut fourth, fifth] =
            [1, 2, 3, 4, 5].map(|item| begin(&group, vec![item]));
        drop(fifth);
        drop((first, second));
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(slow.calls()[2..], [vec![3, 4]], "the fifth has left");
        drop(third);
        let answers = fourth.as_mut().now_or_never().unwrap();
        assert_eq!(answers[0].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
        drop(begin(&group, vec![6]));
        assert_eq!(slow.calls()[3..], [vec![6]]);
    }
}
