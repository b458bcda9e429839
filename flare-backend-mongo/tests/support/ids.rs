//! Ids of any age, as they stand in records.

#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use flare_core::model::{IdSource, ResourceId, Timestamp};
use flare_core::port::{Clock, SystemClock};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson};

/// Long enough ago that nothing can be on the way any more.
pub(crate) const LONG_AGO: Duration = Duration::from_secs(2 * 60 * 60);

pub(crate) struct Ids {
    source: IdSource,
    seed: u64,
}

impl Ids {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { source: IdSource::seeded(seed), seed }
    }

    pub(crate) fn old(&self) -> ResourceId {
        self.source.next(ago(LONG_AGO)).into()
    }

    /// One that was made just now; a source of its own, as ids of one never go backwards.
    pub(crate) fn young(&self, number: u64) -> ResourceId {
        IdSource::seeded(self.seed ^ number.wrapping_mul(31)).next(ago(Duration::ZERO)).into()
    }
}

fn ago(time: Duration) -> Timestamp {
    let nanos = i64::try_from(time.as_nanos()).unwrap();
    Timestamp::from_unix_nanos(SystemClock::new().now().unix_nanos() - nanos)
}

/// Nanoseconds of the clock, so long ago.
pub(crate) fn nanos_ago(time: Duration) -> i64 {
    ago(time).unix_nanos()
}

pub(crate) fn bson(id: ResourceId) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
}
