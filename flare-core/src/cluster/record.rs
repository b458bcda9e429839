//! Takes what a node says of itself; gives the JSON it is stored as, and back. Readers ignore
//! fields they do not know and refuse formats newer than their own.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::held::StillHeld;
use crate::error::{Error, ErrorKind, Result};

/// The format this version writes; it reads all up to it.
const FORMAT: u32 = 1;

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NodeRecord {
    format: u32,
    /// What it is called; need not be unique.
    pub name: String,
    /// The version of Flare it runs.
    pub version: String,
    /// What it may be used for.
    pub roles: Roles,
    /// Its part of the slots, in relation to the others' weights: what it was given, less what it has
    /// shed.
    pub weight: u32,
    /// How much of its weight it has shed for being overloaded, in percent.
    #[serde(default)]
    pub shed_percent: u32,
    /// Whether it is about to leave.
    pub draining: bool,
    /// How busy it is, rounded but for the consumers.
    pub load: NodeLoad,
    /// How many slots it is set to; versions of before do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// How long its lease lives without being prolonged, in milliseconds.
    ttl_ms: u64,
}

/// What a node may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Roles {
    /// It may become the leader.
    pub leads: bool,
    /// It may be given slots.
    pub works: bool,
    /// It accepts documents. Nothing here depends on it; it tells operators.
    pub ingests: bool,
}

impl Roles {
    /// A node for everything.
    pub const ALL: Self = Self { leads: true, works: true, ingests: true };
    /// A node that works and ingests, and never leads.
    pub const NOT_ELIGIBLE: Self = Self { leads: false, works: true, ingests: true };
    /// A node that accepts documents and leaves the slots to others.
    pub const INGEST_ONLY: Self = Self { leads: true, works: false, ingests: true };
    /// A node that works slots and accepts nothing.
    pub const WORKER_ONLY: Self = Self { leads: true, works: true, ingests: false };
}

impl Default for Roles {
    fn default() -> Self {
        Self::ALL
    }
}

/// How busy a node is. Figures that go up and down by themselves are rounded when they are stored, so that small
/// changes write nothing; consumers are counted exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct NodeLoad {
    /// Lanes it works.
    pub lanes: u64,
    /// Consumers it works.
    pub consumers: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// How much of what it can do it does, in percent: at 100 something waits. A Flare says here which
    /// part of its places for requests is taken, or how late its timers ring if that is more.
    pub busy_percent: u64,
}

impl NodeLoad {
    /// These figures, of a node without consumers.
    pub const fn new(lanes: u64, in_flight: u64, busy_percent: u64) -> Self {
        Self { lanes, consumers: 0, in_flight, busy_percent }
    }

    /// The same, with so many consumers.
    #[must_use]
    pub const fn consumers(mut self, consumers: u64) -> Self {
        self.consumers = consumers;
        self
    }

    /// The figures to one digit and a half: 1 2 … 10 15 20 … 100 150 …
    pub(crate) fn rounded(self) -> Self {
        Self {
            lanes: rounded(self.lanes),
            // Few, and another number only when one of them or a slot has moved.
            consumers: self.consumers,
            in_flight: rounded(self.in_flight),
            busy_percent: rounded(self.busy_percent),
        }
    }
}

fn rounded(number: u64) -> u64 {
    let digits = number.checked_ilog10().unwrap_or(0);
    let step = if digits == 0 { 1 } else { 10_u64.pow(digits) / 2 };
    number / step * step
}

impl NodeRecord {
    pub(crate) fn new(name: String, roles: Roles, weight: u32, ttl: Duration) -> Self {
        Self {
            format: FORMAT,
            name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roles,
            weight,
            shed_percent: 0,
            draining: false,
            load: NodeLoad::default(),
            slots: None,
            ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// How long its lease lives without being prolonged.
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }

    /// Whether it may work by a plan of so many slots.
    pub(crate) fn agrees(&self, slots: usize) -> bool {
        self.slots.is_none_or(|set| set as usize == slots)
    }

    /// Whether it may be given slots now.
    pub(crate) fn is_working(&self) -> bool {
        self.roles.works && !self.draining
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        encode(self)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let record: Self = decode(bytes)?;
        checked(record.format).map(|()| record)
    }
}

impl StillHeld {
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        encode(&StoredHeld { format: FORMAT, generation: self.generation, slots: self.runs() })
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let stored: StoredHeld = decode(bytes)?;
        checked(stored.format)?;
        Ok(Self::from_runs(stored.generation, &stored.slots))
    }
}

#[derive(Serialize, Deserialize)]
struct StoredHeld {
    format: u32,
    generation: u64,
    /// First and last of each run.
    slots: Vec<(u32, u32)>,
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    let failed = |error| Error::new(ErrorKind::Internal, "write_record").with_source(error);
    serde_json::to_vec(value).map_err(failed)
}

fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T> {
    let failed = |error| Error::new(ErrorKind::Corrupt, "read_record").with_source(error);
    serde_json::from_slice(bytes).map_err(failed)
}

fn checked(format: u32) -> Result<()> {
    if format > FORMAT {
        let detail = format!("format {format} is newer than {FORMAT}");
        return Err(Error::new(ErrorKind::Corrupt, "read_record").with_detail(detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let ttl = Duration::from_secs(15);
        let mut record = NodeRecord::new("a".to_owned(), Roles::INGEST_ONLY, 7, ttl);
        record.load = NodeLoad::new(1, 2, 3);
        assert_eq!(NodeRecord::decode(&record.encode().unwrap()).unwrap(), record);
        assert_eq!(record.ttl(), ttl);
    }

    #[test]
    fn unknown_fields_are_ignored_and_newer_formats_refused() {
        let record = NodeRecord::new("a".to_owned(), Roles::ALL, 1, Duration::ZERO);
        let text = String::from_utf8(record.encode().unwrap()).unwrap();
        let more = text.replace("\"name\"", "\"more\":1,\"name\"");
        assert_eq!(NodeRecord::decode(more.as_bytes()).unwrap(), record);
        let newer = text.replace("\"format\":1", "\"format\":2");
        assert_eq!(NodeRecord::decode(newer.as_bytes()).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(NodeRecord::decode(b"{").unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn load_is_rounded_down_to_few_figures() {
        let shown: Vec<u64> = [0, 7, 12, 19, 101, 149, 1_234, 99_999].map(rounded).into();
        assert_eq!(shown, [0, 7, 10, 15, 100, 100, 1_000, 95_000]);
        let told = NodeLoad::new(11, 12, 13).consumers(14).rounded();
        assert_eq!(
            told,
            NodeLoad::new(10, 10, 10).consumers(14),
            "consumers are few, and told exactly"
        );
    }
}
