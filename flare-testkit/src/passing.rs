//! Takes a future and a number of ticks; gives what the future gives, letting time pass for the
//! port only while it is waited for.

use std::pin::pin;

use futures::future::{Either, select};

use crate::Subject;

impl<P: ?Sized> Subject<P> {
    /// Waits for `future` while at most `ticks` pass for the port: `None` if it is not done then.
    ///
    /// No time passes on a manual clock if the future needs none. Everything happens in one task,
    /// so that it goes the same way every time.
    pub async fn within<T>(&self, ticks: u32, future: impl Future<Output = T>) -> Option<T> {
        self.timed(ticks, future).await.map(|(value, _)| value)
    }

    /// The same, with the number of whole ticks that had passed when it was done.
    pub async fn timed<T>(&self, ticks: u32, future: impl Future<Output = T>) -> Option<(T, u32)> {
        let mut future = pin!(future);
        for passed in 0..ticks {
            let tick = pin!(self.pass_ticks(1));
            match select(future.as_mut(), tick).await {
                Either::Left((value, _)) => return Some((value, passed)),
                Either::Right(((), _)) => {}
            }
        }
        // What became ready with the last tick is still in time.
        match select(future, pin!(tokio::task::yield_now())).await {
            Either::Left((value, _)) => Some((value, ticks)),
            Either::Right(_) => None,
        }
    }
}
