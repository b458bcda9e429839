//! Takes a plan; gives its bytes, and back. Equal neighbours are one run, nodes and takeovers are
//! named once: 16,384 slots stay far below what any store takes as a value.
//!
//! ```text
//! format (1 byte) generation term grace-ms slots
//! nodes, then 16 bytes each    takeovers, then epoch and time each
//! runs until all slots are told: length, kind, and by kind
//!   0 free
//!   1 owned      node takeover
//!   2 releasing  node takeover to generation-since
//! ```
//! Numbers are LEB128; the time is zig-zag. A reader refuses formats newer than its own.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{SlotPlan, SlotState};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Epoch, NodeId, Takeover, Timestamp};

/// The format this version writes; it reads all up to it.
const FORMAT: u8 = 1;
/// More slots than anybody has: a damaged value must not make us ask for memory without end.
const MOST_SLOTS: u64 = 1 << 20;

const FREE: u64 = 0;
const OWNED: u64 = 1;
const RELEASING: u64 = 2;

impl SlotPlan {
    /// The plan as it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let mut nodes = Table::default();
        let mut takeovers = Table::default();
        let mut runs = Vec::new();
        for run in self.slots.chunk_by(|a, b| a == b) {
            put(&mut runs, run.len() as u64);
            match run[0] {
                SlotState::Free => put(&mut runs, FREE),
                SlotState::Owned { node, takeover } => {
                    put(&mut runs, OWNED);
                    put(&mut runs, nodes.index(node));
                    put(&mut runs, takeovers.index((takeover.epoch, takeover.at)));
                }
                SlotState::Releasing { node, takeover, to, since } => {
                    put(&mut runs, RELEASING);
                    put(&mut runs, nodes.index(node));
                    put(&mut runs, takeovers.index((takeover.epoch, takeover.at)));
                    put(&mut runs, nodes.index(to));
                    put(&mut runs, self.generation.wrapping_sub(since));
                }
            }
        }
        let mut bytes = vec![FORMAT];
        put(&mut bytes, self.generation);
        put(&mut bytes, self.term);
        put(&mut bytes, u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX));
        put(&mut bytes, self.slots.len() as u64);
        put(&mut bytes, nodes.items.len() as u64);
        nodes.items.iter().for_each(|node| bytes.extend_from_slice(node.as_bytes()));
        put(&mut bytes, takeovers.items.len() as u64);
        for (epoch, at) in &takeovers.items {
            put(&mut bytes, epoch.get());
            put(&mut bytes, zigzag(at.unix_nanos()));
        }
        bytes.extend_from_slice(&runs);
        bytes
    }

    /// The plan that was stored as these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader(bytes);
        let format = reader.byte()?;
        if format > FORMAT {
            return Err(corrupt(format!("format {format} is newer than {FORMAT}")));
        }
        let (generation, term) = (reader.number()?, reader.number()?);
        let grace = Duration::from_millis(reader.number()?);
        let expected = reader.number()?;
        if expected > MOST_SLOTS {
            return Err(corrupt(format!("{expected} slots are too many")));
        }
        let nodes = reader.table(ByteReader::node)?;
        let takeovers = reader.table(ByteReader::takeover)?;
        let mut slots = Vec::new();
        while (slots.len() as u64) < expected {
            let length = reader.number()?;
            if length == 0 || length > expected - slots.len() as u64 {
                return Err(corrupt(format!("a run of {length} slots")));
            }
            let state = match reader.number()? {
                FREE => SlotState::Free,
                OWNED => SlotState::Owned {
                    node: reader.item(&nodes)?,
                    takeover: reader.item(&takeovers)?,
                },
                RELEASING => SlotState::Releasing {
                    node: reader.item(&nodes)?,
                    takeover: reader.item(&takeovers)?,
                    to: reader.item(&nodes)?,
                    since: generation.wrapping_sub(reader.number()?),
                },
                kind => return Err(corrupt(format!("a slot of kind {kind}"))),
            };
            slots.extend(std::iter::repeat_n(state, length as usize));
        }
        if !reader.0.is_empty() {
            return Err(corrupt(format!("{} bytes too many", reader.0.len())));
        }
        Ok(Self { generation, term, grace, slots })
    }
}

/// Things in the order in which they were first named.
struct Table<T> {
    items: Vec<T>,
    known: BTreeMap<T, u64>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { items: Vec::new(), known: BTreeMap::new() }
    }
}

impl<T: Ord + Copy> Table<T> {
    fn index(&mut self, item: T) -> u64 {
        *self.known.entry(item).or_insert_with(|| {
            self.items.push(item);
            self.items.len() as u64 - 1
        })
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

struct ByteReader<'a>(&'a [u8]);

impl ByteReader<'_> {
    fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.0.split_first().ok_or_else(|| corrupt("it ends early"))?;
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(corrupt("a number is too large"))
    }

    fn node(&mut self) -> Result<NodeId> {
        let (id, rest) = self.0.split_first_chunk().ok_or_else(|| corrupt("it ends early"))?;
        self.0 = rest;
        Ok(NodeId::from_bytes(*id))
    }

    fn takeover(&mut self) -> Result<Takeover> {
        let epoch = Epoch::new(self.number()?);
        let at = Timestamp::from_unix_nanos(unzigzag(self.number()?));
        Ok(Takeover { epoch, at })
    }

    fn table<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let length = self.number()?;
        // Every item takes a byte at least, so a wrong length ends with the bytes.
        (0..length).map(|_| item(self)).collect()
    }

    fn item<T: Copy>(&mut self, items: &[T]) -> Result<T> {
        let index = usize::try_from(self.number()?).ok();
        index.and_then(|at| items.get(at)).copied().ok_or_else(|| corrupt("a name is missing"))
    }
}

fn corrupt(detail: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Corrupt, "read_plan").with_detail(detail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: u8) -> NodeId {
        NodeId::from_bytes([number; 16])
    }

    prop_compose! {
        fn takeover()(epoch in any::<u64>(), at in any::<i64>()) -> Takeover {
            Takeover { epoch: Epoch::new(epoch), at: Timestamp::from_unix_nanos(at) }
        }
    }

    fn state() -> impl Strategy<Value = SlotState> {
        let id = || (0..9_u8).prop_map(id);
        prop_oneof![
            Just(SlotState::Free),
            (id(), takeover()).prop_map(|(node, takeover)| SlotState::Owned { node, takeover }),
            (id(), takeover(), id(), any::<u64>()).prop_map(|(node, takeover, to, since)| {
                SlotState::Releasing { node, takeover, to, since }
            }),
        ]
    }

    fn plan() -> impl Strategy<Value = SlotPlan> {
        let runs = prop::collection::vec((state(), 1..20_usize), 0..30);
        (any::<u64>(), any::<u64>(), 0..1_000_000_u64, runs).prop_map(
            |(generation, term, grace, runs)| {
                let repeat = |(state, length)| std::iter::repeat_n(state, length);
                let slots = runs.into_iter().flat_map(repeat).collect();
                SlotPlan { generation, term, grace: Duration::from_millis(grace), slots }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read(plan in plan()) {
            prop_assert_eq!(SlotPlan::decode(&plan.encode()).unwrap(), plan);
        }

        #[test]
        fn a_shortened_plan_is_refused(plan in plan(), cut in any::<prop::sample::Index>()) {
            let bytes = plan.encode();
            let cut = cut.index(bytes.len());
            // Nothing is missing of a plan without slots once the tables are told.
            prop_assert!(SlotPlan::decode(&bytes[..cut]).is_err());
        }

        #[test]
        fn noise_is_no_plan_or_one_but_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(error) = SlotPlan::decode(&bytes) {
                prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
            }
        }
    }

    #[test]
    fn the_worst_plan_of_16_384_slots_is_far_below_a_mebibyte() {
        let state = |slot: u32| SlotState::Releasing {
            node: NodeId::from_bytes(u128::from(slot % 100).to_be_bytes()),
            takeover: Takeover {
                epoch: Epoch::new(1_000_000_000 + u64::from(slot)),
                at: Timestamp::from_unix_nanos(1_800_000_000_000_000_000 + i64::from(slot)),
            },
            to: NodeId::from_bytes(u128::from((slot + 1) % 100).to_be_bytes()),
            since: 1_000_000 - u64::from(slot),
        };
        let plan = SlotPlan {
            generation: 1_000_000,
            term: u64::MAX,
            grace: Duration::from_secs(30),
            slots: (0..16_384).map(state).collect(),
        };
        let bytes = plan.encode();
        assert!(bytes.len() < 450_000, "{} bytes", bytes.len());
        assert_eq!(SlotPlan::decode(&bytes).unwrap(), plan);
    }

    #[test]
    fn a_newer_format_and_trailing_bytes_are_refused() {
        let mut bytes = SlotPlan::empty(3).encode();
        bytes.push(0);
        assert!(SlotPlan::decode(&bytes).unwrap_err().to_string().contains("too many"));
        bytes.pop();
        bytes[0] = FORMAT + 1;
        assert!(SlotPlan::decode(&bytes).unwrap_err().to_string().contains("newer"));
    }
}
