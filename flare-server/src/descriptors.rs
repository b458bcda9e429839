//! Takes the process's limit of open files; gives how many connections it can bear, so that a
//! flood of them leaves descriptors for deliveries and files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, warn};

/// Standard streams, log, epoll, signals, and whatever libraries keep open.
const OWN: u64 = 128;

/// More would only make the kernel's tables larger.
const ENOUGH: u64 = 1 << 20;

/// Raises the limit as far as this user may, and says how many connections may be accepted
/// beside `in_flight` deliveries: what is `wanted`, or less.
pub(crate) fn connections(wanted: u32, in_flight: u32) -> usize {
    let limit = raise();
    let bearable = bearable(limit, in_flight);
    if u64::from(wanted) > bearable {
        warn!(
            descriptors = limit,
            "http.server.connection-limit is lowered from {wanted} to {bearable}: the limit of \
             open files (ulimit -n) allows no more"
        );
    }
    usize::try_from(bearable.min(wanted.into())).unwrap_or(usize::MAX)
}

fn bearable(limit: u64, in_flight: u32) -> u64 {
    // Whatever deliveries may want, a quarter is for those who call us.
    limit.saturating_sub(OWN).saturating_sub(in_flight.into()).max(limit / 4).max(1)
}

fn raise() -> u64 {
    let found = getrlimit(Resource::Nofile);
    let most = found.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    let now = found.current.unwrap_or(ENOUGH);
    if now >= most {
        return now;
    }
    let raised = Rlimit { current: Some(most), maximum: found.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => most,
        Err(error) => {
            debug!(%error, "the limit of open files stays {now}");
            now
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_keep_their_descriptors_and_callers_a_quarter() {
        assert_eq!(bearable(20_000, 1_024), 20_000 - 128 - 1_024);
        assert_eq!(bearable(1_024, 1_024), 256);
        assert_eq!(bearable(2, 1_024), 1);
    }
}
