//! Up to where a stream is done: a position that only its source understands.

use serde::{Deserialize, Serialize};

/// Up to where everything of one shard of a stream is done.
///
/// ```
/// use flare_core::model::Checkpoint;
///
/// let place = Checkpoint::new("shardId-000000000000", "49590338271490256608559692538361571095921575989136588898");
/// assert_eq!(place.shard(), "shardId-000000000000");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Checkpoint {
    shard: Box<str>,
    position: Box<str>,
}

impl Checkpoint {
    /// Everything of `shard` up to `position` is done; both in the words of the source.
    pub fn new(shard: impl Into<Box<str>>, position: impl Into<Box<str>>) -> Self {
        Self { shard: shard.into(), position: position.into() }
    }

    /// Which part of the stream.
    pub fn shard(&self) -> &str {
        &self.shard
    }

    /// Up to where.
    pub fn position(&self) -> &str {
        &self.position
    }
}
