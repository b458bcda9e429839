//! A version of an order: what a host says of it when its transaction has ended, and what its client is told.

use std::fmt::Display;

use flare_testkit::{HttpTarget, RawRequest};

/// A version, or that an order of this version was removed; of one order the newer one is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change {
    pub(crate) id: i64,
    pub(crate) version: i64,
    pub(crate) removed: bool,
}

/// How a transaction ended, by the server's own answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Committed,
    TakenBack,
}

impl Change {
    /// What a host says of one; `psql` puts the version in by itself.
    pub(crate) fn line(ended: Ended, id: i64, version: impl Display, removed: bool) -> String {
        let kind = if removed { "delete" } else { "put" };
        let ended = match ended {
            Ended::Committed => "committed",
            Ended::TakenBack => "taken-back",
        };
        format!("{ended} {kind} {id} {version}")
    }

    /// What a host has said; nothing where there was no version, as nothing was there to remove.
    pub(crate) fn heard(line: &str) -> Option<(Ended, Self)> {
        let mut words = line.split_whitespace();
        let ended = match words.next().unwrap() {
            "committed" => Ended::Committed,
            "taken-back" => Ended::TakenBack,
            other => panic!("a host says {other}"),
        };
        let removed = words.next().unwrap() == "delete";
        let (id, version) = (words.next().unwrap().parse().unwrap(), words.next()?);
        Some((ended, Self { id, version: version.parse().unwrap(), removed }))
    }

    fn told(request: &RawRequest) -> Self {
        let words = request.target.trim_start_matches('/').split_once('/').unwrap();
        let (id, version) = (words.0.parse().unwrap(), words.1.parse().unwrap());
        Self { id, version, removed: request.values("flare-action") == ["delete"] }
    }
}

/// All that the client was told, in that order.
pub(crate) fn told(client: &HttpTarget) -> Vec<Change> {
    client.requests().iter().map(Change::told).collect()
}
