//! Takes every request before its route does; gives it an id, a time limit and a safe landing.

mod edge;
mod timeout;

pub(crate) use edge::edge;
pub(crate) use timeout::Reading;
