//! What can happen to a cluster, in an order that follows from a seed.

use std::fmt;

/// What a round does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A node that does not lead is killed, and replaced later.
    Kill,
    /// The leader is killed, and replaced later.
    KillLeader,
    /// A node is stopped for longer than its lease lives, and goes on.
    Freeze,
    /// What a node says to etcd is lost, for longer than its lease lives.
    CutSilently,
    /// A node's connections to etcd are reset, for longer than its lease lives.
    CutByReset,
    /// etcd is killed and started again.
    RestartEtcd,
}

impl Kind {
    pub const ALL: [Self; 6] = [
        Self::Kill,
        Self::KillLeader,
        Self::Freeze,
        Self::CutSilently,
        Self::CutByReset,
        Self::RestartEtcd,
    ];

    /// So many of them: all kinds in some order, then all in another.
    pub fn series(rounds: usize, random: &mut fastrand::Rng) -> Vec<Self> {
        let mut series = Vec::new();
        while series.len() < rounds {
            let mut kinds = Self::ALL;
            random.shuffle(&mut kinds);
            series.extend(kinds);
        }
        series.truncate(rounds);
        series
    }

    /// Whether somebody loses its slots, so that others have to take them over in time.
    pub fn loses_a_node(self) -> bool {
        self != Self::RestartEtcd
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kill => "kill a node",
            Self::KillLeader => "kill the leader",
            Self::Freeze => "freeze a node",
            Self::CutSilently => "cut off, silent",
            Self::CutByReset => "cut off, reset",
            Self::RestartEtcd => "restart etcd",
        })
    }
}
