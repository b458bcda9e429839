//! What the log and the metrics have of a lane.

use tracing::{debug, info, warn};

use super::machine::{AttemptReport, LaneNotice, RequestTimes};
use crate::pipeline::meter;

/// Says what came of a request.
pub(super) fn report(report: &AttemptReport) {
    let AttemptReport { attempt, judgement, latency, took, request } = report;
    debug!(
        document = %attempt.row.key.url,
        version = %attempt.telling.version,
        verdict = ?judgement.verdict,
        error = judgement.error.as_deref(),
        duration = ?took,
        "attempt ended"
    );
    meter::attempted(judgement, *latency);
    if let Some(RequestTimes { took, phases }) = request {
        meter::requested(*took, phases);
    }
}

/// Says what became of the client, or of the lane.
pub(super) fn log(notice: &LaneNotice) {
    match notice {
        LaneNotice::Down { failures, error } => warn!(
            error,
            failures, "the client is down: it is tried by one request at a time until it answers"
        ),
        LaneNotice::Back => info!("the client is back"),
        LaneNotice::Fenced => warn!("a later owner works this lane"),
        LaneNotice::UnknownIds(count) => {
            debug!(count, "the client named notifications that it was not told of");
            meter::named_unknown(*count);
        }
    }
}
