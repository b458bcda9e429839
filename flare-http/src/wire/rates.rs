//! How often something happens and how long it takes, as JSON has it.

use std::time::Duration;

use flare_core::model::{SubscriptionRates, SubscriptionTimes, TimeFigures, WindowRates};
use serde::Serialize;
use utoipa::ToSchema;

/// Something a second, on the average of two times.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WindowRates)]
pub(crate) struct WindowRatesView {
    /// Of the last minute.
    minute: f64,
    /// Of the last five.
    five_minutes: f64,
}

impl From<WindowRates> for WindowRatesView {
    fn from(rates: WindowRates) -> Self {
        Self { minute: rates.minute, five_minutes: rates.five_minutes }
    }
}

/// What becomes of notifications, a second.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SubscriptionRates)]
pub(crate) struct RatesView {
    /// Notifications the client accepted.
    delivered: WindowRatesView,
    /// Attempts that failed.
    failed: WindowRatesView,
    /// Notifications the client refused.
    discarded: WindowRatesView,
}

impl From<SubscriptionRates> for RatesView {
    fn from(rates: SubscriptionRates) -> Self {
        Self {
            delivered: rates.delivered.into(),
            failed: rates.failed.into(),
            discarded: rates.discarded.into(),
        }
    }
}

/// How long notifications took, in the last five to ten minutes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SubscriptionTimes)]
pub(crate) struct TimesView {
    /// From the store to the client, of notifications it accepted.
    latency: TimeFiguresView,
    /// Whole requests, however they ended.
    attempts: TimeFiguresView,
    /// Looking the client's name up, where that was done.
    dns: TimeFiguresView,
    /// Making a connection over TCP, where one was made.
    connect: TimeFiguresView,
    /// Securing it by TLS, where the URL says so.
    tls: TimeFiguresView,
    /// From then, or from the beginning on a connection that was there, to the head of the answer.
    first_byte: TimeFiguresView,
}

impl From<SubscriptionTimes> for TimesView {
    fn from(times: SubscriptionTimes) -> Self {
        Self {
            latency: times.latency.into(),
            attempts: times.attempts.into(),
            dns: times.dns.into(),
            connect: times.connect.into(),
            tls: times.tls.into(),
            first_byte: times.first_byte.into(),
        }
    }
}

/// How long something took. Quantiles are as exact as the buckets they are counted in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TimeFigures)]
struct TimeFiguresView {
    /// How often it was measured.
    count: u64,
    /// How long it took on the average, in milliseconds.
    mean_millis: f64,
    /// Half of them took no longer.
    p50_millis: f64,
    /// Ninety-nine of a hundred took no longer.
    p99_millis: f64,
}

impl From<TimeFigures> for TimeFiguresView {
    fn from(figures: TimeFigures) -> Self {
        let millis = |time: Duration| time.as_micros() as f64 / 1_000.0;
        Self {
            count: figures.count,
            mean_millis: millis(figures.mean),
            p50_millis: millis(figures.p50),
            p99_millis: millis(figures.p99),
        }
    }
}

#[cfg(test)]
mod tests {
    use flare_core::model::{AttemptPhases, LaneActivity, Timestamp};

    use super::*;

    #[test]
    fn rates_and_times_are_written_as_the_interface_has_them() {
        let now = Timestamp::from_unix_seconds(1_000);
        let mut lane = LaneActivity::default();
        lane.delivered.add(now, 90);
        lane.failed.add(now, 30);
        lane.told(now, Duration::from_micros(1_500));
        lane.attempted(now, Duration::from_millis(1), &AttemptPhases::default());
        let lanes = [&lane];
        let rates = SubscriptionRates::of(lanes.into_iter(), now);
        assert_eq!(
            serde_json::to_string(&RatesView::from(rates)).unwrap(),
            concat!(
                r#"{"delivered":{"minute":1.5,"fiveMinutes":0.3},"#,
                r#""failed":{"minute":0.5,"fiveMinutes":0.1},"#,
                r#""discarded":{"minute":0.0,"fiveMinutes":0.0}}"#
            )
        );
        let times = SubscriptionTimes::of(lanes.into_iter(), now);
        let none = r#"{"count":0,"meanMillis":0.0,"p50Millis":0.0,"p99Millis":0.0}"#;
        assert_eq!(
            serde_json::to_string(&TimesView::from(times)).unwrap(),
            format!(
                "{}{}\"dns\":{none},\"connect\":{none},\"tls\":{none},\"firstByte\":{none}}}",
                r#"{"latency":{"count":1,"meanMillis":1.5,"p50Millis":2.0,"p99Millis":2.0},"#,
                r#""attempts":{"count":1,"meanMillis":1.0,"p50Millis":1.0,"p99Millis":1.0},"#,
            )
        );
    }
}
