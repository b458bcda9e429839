//! How a subscription is doing, as JSON has it.

use flare_core::model::{BackfillProgress, SubscriptionReport, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::rates::{RatesView, TimesView};
use super::word::{StatusWord, Word};

/// How a subscription is doing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SubscriptionReport)]
pub(crate) struct ReportView {
    status: StatusWord,
    /// Why it stands there, if not by the user's wish.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
    /// How many documents the client does not have in their newest version yet. Exact.
    lag: u64,
    /// Changes of its resource that are still being spread, and are not part of the lag yet.
    spreading: u64,
    /// Since how long the oldest of what is pending is so.
    oldest_pending_seconds: u64,
    /// Requests in flight.
    in_flight: u64,
    /// Notifications the client accepted.
    delivered: u64,
    /// Attempts that failed.
    failed: u64,
    /// Notifications the client refused.
    discarded: u64,
    rates: RatesView,
    times: TimesView,
    /// Notifications that were given up and are still listed.
    dead_letters: u64,
    /// When the client last accepted one; null if it never did.
    #[schema(required = true, format = DateTime)]
    last_success_at: Option<String>,
    /// Why an attempt last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_error: Option<String>,
    /// When that was; earlier than `lastSuccessAt`, it is past.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    last_error_at: Option<String>,
    /// Whether the client is taken for down, and sent one request at a time until it answers one.
    probing: bool,
    /// Attempts that have failed since one last succeeded.
    consecutive_failures: u32,
    /// When something is sent next, if anything is to be; never in the past.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    next_attempt_at: Option<String>,
    /// The node that works its lanes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    node: Option<String>,
    /// The queue its lanes are woken by, shared with others (`slot-7`) or the first lane's own.
    queue: String,
    /// When a queue of its lanes had vanished and was made again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    queue_restored_at: Option<String>,
    /// How far the documents that were there are delivered, if that was asked for lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    backfill: Option<ProgressView>,
    /// How far everything is delivered again, if that was asked for lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resync: Option<ProgressView>,
}

/// How far a backfill or resync is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BackfillProgress)]
pub(crate) struct ProgressView {
    /// Documents that were looked at.
    scanned: u64,
    /// Documents there are to look at, as far as is known.
    total: u64,
    /// Whether the client was told of all of them, or they were given up.
    done: bool,
}

impl From<BackfillProgress> for ProgressView {
    fn from(progress: BackfillProgress) -> Self {
        Self { scanned: progress.scanned, total: progress.total, done: progress.done }
    }
}

impl From<SubscriptionReport> for ReportView {
    fn from(report: SubscriptionReport) -> Self {
        let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
        Self {
            status: Word(report.status),
            reason: report.reason,
            lag: report.lag,
            spreading: report.spreading,
            oldest_pending_seconds: report.oldest_pending.as_secs(),
            in_flight: report.in_flight,
            delivered: report.delivered,
            failed: report.failed,
            discarded: report.discarded,
            rates: report.rates.into(),
            times: report.times.into(),
            dead_letters: report.dead_letters,
            last_success_at: text(report.last_success_at),
            last_error: report.last_error,
            last_error_at: text(report.last_error_at),
            probing: report.probing,
            consecutive_failures: report.consecutive_failures,
            next_attempt_at: text(report.next_attempt_at),
            node: report.node,
            queue: report.queue,
            queue_restored_at: text(report.queue_restored_at),
            backfill: report.backfill.map(ProgressView::from),
            resync: report.resync.map(ProgressView::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use flare_core::model::{SubscriptionRates, SubscriptionStatus, SubscriptionTimes};

    use super::*;

    #[test]
    fn is_written_as_the_interface_has_it() {
        let mut report = ReportView {
            status: Word(SubscriptionStatus::Active),
            reason: None,
            lag: 3,
            spreading: 4,
            oldest_pending_seconds: 30,
            in_flight: 0,
            delivered: 2,
            failed: 0,
            discarded: 0,
            rates: SubscriptionRates::default().into(),
            times: SubscriptionTimes::default().into(),
            dead_letters: 5,
            last_success_at: None,
            last_error: None,
            last_error_at: None,
            probing: false,
            consecutive_failures: 0,
            next_attempt_at: None,
            node: None,
            queue: "slot-1".to_owned(),
            queue_restored_at: None,
            backfill: None,
            resync: None,
        };
        let written = |report: &ReportView| {
            let text = serde_json::to_string(report).unwrap();
            // What is in there is tried in `rates`.
            let (from, to) =
                (text.find(r#""rates""#).unwrap(), text.find(r#""deadLetters""#).unwrap());
            format!("{}{}", &text[..from], &text[to..])
        };
        assert_eq!(
            written(&report),
            concat!(
                r#"{"status":"active","lag":3,"spreading":4,"oldestPendingSeconds":30,"#,
                r#""inFlight":0,"delivered":2,"failed":0,"discarded":0,"deadLetters":5,"#,
                r#""lastSuccessAt":null,"probing":false,"consecutiveFailures":0,"#,
                r#""queue":"slot-1"}"#,
            )
        );
        let some = |text: &str| Some(text.to_owned());
        (report.status, report.reason) = (Word(SubscriptionStatus::Suspended), some("410"));
        (report.last_error, report.last_error_at) = (some("x"), some("t1"));
        (report.next_attempt_at, report.node) = (some("t2"), some("n1"));
        report.queue_restored_at = some("t3");
        report.backfill = Some(ProgressView { scanned: 1, total: 2, done: false });
        report.resync = Some(ProgressView { scanned: 2, total: 2, done: true });
        assert_eq!(
            written(&report),
            concat!(
                r#"{"status":"suspended","reason":"410","lag":3,"spreading":4,"#,
                r#""oldestPendingSeconds":30,"inFlight":0,"delivered":2,"failed":0,"discarded":0,"#,
                r#""deadLetters":5,"lastSuccessAt":null,"lastError":"x","lastErrorAt":"t1","#,
                r#""probing":false,"consecutiveFailures":0,"nextAttemptAt":"t2","node":"n1","#,
                r#""queue":"slot-1","queueRestoredAt":"t3","#,
                r#""backfill":{"scanned":1,"total":2,"done":false},"#,
                r#""resync":{"scanned":2,"total":2,"done":true}}"#,
            )
        );
    }
}
