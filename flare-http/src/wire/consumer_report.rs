//! How a consumer is doing, as JSON has it.

use std::collections::BTreeMap;

use flare_core::ConsumerReport;
use flare_core::model::consumer::ConsumerRates;
use flare_core::model::{Checkpoint, ConsumerState, ConsumerStatus, NodeId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::rates::WindowRatesView;
use super::word::{ConsumerStatusWord, Word};

/// How a consumer is doing, as the node that works it stored some seconds ago.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ConsumerReport)]
pub(crate) struct ConsumerReportView {
    status: ConsumerStatusWord,
    /// The node that works it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid", nullable = false)]
    node: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    lag: Option<ConsumerLagView>,
    /// Messages that were received.
    received: u64,
    /// Documents that were created, updated or deleted.
    accepted: u64,
    /// Documents that were as they were already, or older.
    unchanged: u64,
    /// Messages that became no document, or not all that they say.
    rejected: u64,
    /// How many of those by reason.
    reasons: BTreeMap<String, u64>,
    rates: ConsumerRatesView,
    /// When a message was received last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    last_message_at: Option<String>,
    /// What went wrong last, until it goes well again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_error: Option<String>,
    /// When that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    last_error_at: Option<String>,
    /// Up to where everything is done, where Flare keeps that and not the broker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    checkpoints: Vec<CheckpointView>,
}

/// How far behind a consumer is, in what its broker tells.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ConsumerLag)]
struct ConsumerLagView {
    /// Messages that are not settled yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    messages: Option<u64>,
    /// How old the oldest of them is, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    behind_millis: Option<u64>,
}

/// What happens a second.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConsumerRates)]
struct ConsumerRatesView {
    /// Messages received.
    received: WindowRatesView,
    /// Documents created, updated or deleted.
    accepted: WindowRatesView,
    /// Messages rejected.
    rejected: WindowRatesView,
}

/// Up to where everything of one shard of a stream is done, in the words of its broker.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Checkpoint)]
struct CheckpointView {
    shard: String,
    position: String,
}

impl ConsumerReportView {
    fn new(status: ConsumerStatus, node: Option<NodeId>, state: ConsumerState) -> Self {
        let time = |nanos: Option<i64>| nanos.map(|it| Timestamp::from_unix_nanos(it).to_string());
        let lag = ConsumerLagView { messages: state.depth, behind_millis: state.behind_millis };
        let known = state.depth.is_some() || state.behind_millis.is_some();
        Self {
            status: Word(status),
            node,
            lag: Some(lag).filter(|_| known),
            received: state.received,
            accepted: state.accepted,
            unchanged: state.unchanged,
            rejected: state.rejected,
            reasons: state.reasons,
            rates: state.rates.into(),
            last_message_at: time(state.last_message_at),
            last_error: state.last_error,
            last_error_at: time(state.last_error_at),
            checkpoints: state.checkpoints.iter().map(CheckpointView::from).collect(),
        }
    }
}

impl From<ConsumerReport> for ConsumerReportView {
    fn from(report: ConsumerReport) -> Self {
        Self::new(report.status, report.node, report.state)
    }
}

impl From<ConsumerRates> for ConsumerRatesView {
    fn from(rates: ConsumerRates) -> Self {
        Self {
            received: rates.received.into(),
            accepted: rates.accepted.into(),
            rejected: rates.rejected.into(),
        }
    }
}

impl From<&Checkpoint> for CheckpointView {
    fn from(checkpoint: &Checkpoint) -> Self {
        let (shard, position) = (checkpoint.shard(), checkpoint.position());
        Self { shard: shard.to_owned(), position: position.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(status: ConsumerStatus, node: Option<NodeId>, state: ConsumerState) -> String {
        serde_json::to_string(&ConsumerReportView::new(status, node, state)).unwrap()
    }

    #[test]
    fn is_written_as_the_interface_has_it() {
        assert_eq!(
            written(ConsumerStatus::Paused, None, ConsumerState::default()),
            concat!(
                r#"{"status":"paused","received":0,"accepted":0,"unchanged":0,"rejected":0,"#,
                r#""reasons":{},"rates":{"received":{"minute":0.0,"fiveMinutes":0.0},"#,
                r#""accepted":{"minute":0.0,"fiveMinutes":0.0},"#,
                r#""rejected":{"minute":0.0,"fiveMinutes":0.0}}}"#,
            )
        );
        let mut state = ConsumerState::default();
        (state.received, state.accepted, state.unchanged, state.rejected) = (9, 4, 3, 2);
        state.reasons = BTreeMap::from([("missing".to_owned(), 2)]);
        (state.rates.received.minute, state.rates.received.five_minutes) = (1.5, 0.5);
        (state.rates.accepted.minute, state.rates.rejected.five_minutes) = (0.25, 0.125);
        (state.last_message_at, state.last_error_at) = (Some(1_500_000_000), Some(2_000_000_000));
        state.last_error = Some("away".to_owned());
        state.checkpoints = vec![Checkpoint::new("s-1", "7")];
        state.depth = Some(12);
        assert_eq!(
            written(ConsumerStatus::Active, Some(NodeId::from_bytes([1; 16])), state.clone()),
            concat!(
                r#"{"status":"active","node":"01010101-0101-0101-0101-010101010101","#,
                r#""lag":{"messages":12},"received":9,"accepted":4,"unchanged":3,"rejected":2,"#,
                r#""reasons":{"missing":2},"rates":{"received":{"minute":1.5,"fiveMinutes":0.5},"#,
                r#""accepted":{"minute":0.25,"fiveMinutes":0.0},"#,
                r#""rejected":{"minute":0.0,"fiveMinutes":0.125}},"#,
                r#""lastMessageAt":"1970-01-01T00:00:01.5Z","lastError":"away","#,
                r#""lastErrorAt":"1970-01-01T00:00:02Z","#,
                r#""checkpoints":[{"shard":"s-1","position":"7"}]}"#,
            )
        );
        (state.depth, state.behind_millis) = (None, Some(0));
        let behind = written(ConsumerStatus::Active, None, state);
        assert!(behind.contains(r#""lag":{"behindMillis":0},"#), "{behind}");
    }
}
