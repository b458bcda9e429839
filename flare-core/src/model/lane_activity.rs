//! What a lane's requests came to lately, and how long they took. Part of what is stored of the lane, so that every node
//! tells the same.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{RateWindow, RecentTimes, TimeFigures, Timestamp, WindowRates};

/// What became of a lane's notifications in the last minutes, and how long its requests took.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct LaneActivity {
    /// Notifications the client accepted.
    #[serde(skip_serializing_if = "RateWindow::is_empty")]
    pub delivered: RateWindow,
    /// Attempts that failed.
    #[serde(skip_serializing_if = "RateWindow::is_empty")]
    pub failed: RateWindow,
    /// Notifications the client refused.
    #[serde(skip_serializing_if = "RateWindow::is_empty")]
    pub discarded: RateWindow,
    /// From the store to the client, of notifications it accepted.
    #[serde(skip_serializing_if = "RecentTimes::is_empty")]
    pub latency: RecentTimes,
    /// Whole requests, however they ended.
    #[serde(skip_serializing_if = "RecentTimes::is_empty")]
    pub attempts: RecentTimes,
    /// Looking a client's name up.
    #[serde(skip_serializing_if = "RecentTimes::is_empty")]
    pub dns: RecentTimes,
    /// Making a connection.
    #[serde(skip_serializing_if = "RecentTimes::is_empty")]
    pub connect: RecentTimes,
    /// Securing it, if it is to be.
    #[serde(skip_serializing_if = "RecentTimes::is_empty")]
    pub tls: RecentTimes,
    /// From there to the head of the answer.
    #[serde(skip_serializing_if = "RecentTimes::is_empty")]
    pub first_byte: RecentTimes,
}

/// The parts of an attempt's time that its transport could tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AttemptPhases {
    /// Looking the client's name up, if that was done.
    pub dns: Option<Duration>,
    /// Making a connection over TCP, if one was made.
    pub connect: Option<Duration>,
    /// Securing it by TLS, where the URL says so.
    pub tls: Option<Duration>,
    /// From then, or from the beginning on a connection that was there, to the head of the answer.
    pub first_byte: Option<Duration>,
}

/// What becomes of a subscription's notifications, a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct SubscriptionRates {
    /// Notifications the client accepted.
    pub delivered: WindowRates,
    /// Attempts that failed.
    pub failed: WindowRates,
    /// Notifications the client refused.
    pub discarded: WindowRates,
}

/// What became of a subscription's notifications in each ten seconds of the last five minutes, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RecentOutcomes {
    /// Notifications the client accepted.
    pub delivered: Vec<u64>,
    /// Attempts that failed.
    pub failed: Vec<u64>,
}

impl RecentOutcomes {
    /// Those of lanes together, as of now.
    pub fn of<'a>(lanes: impl Iterator<Item = &'a LaneActivity>, now: Timestamp) -> Self {
        let add = |sums: &mut Vec<u64>, counts: Vec<u64>| {
            sums.resize(counts.len(), 0);
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        };
        lanes.fold(Self::default(), |mut sum, lane| {
            add(&mut sum.delivered, lane.delivered.counts(now));
            add(&mut sum.failed, lane.failed.counts(now));
            sum
        })
    }
}

/// How long a subscription's notifications took, in the last five to ten minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SubscriptionTimes {
    /// From the store to the client, of notifications it accepted.
    pub latency: TimeFigures,
    /// Whole requests, however they ended.
    pub attempts: TimeFigures,
    /// Looking the client's name up, where that was done.
    pub dns: TimeFigures,
    /// Making a connection over TCP, where one was made.
    pub connect: TimeFigures,
    /// Securing it by TLS, where the URL says so.
    pub tls: TimeFigures,
    /// From then, or from the beginning on a connection that was there, to the head of the answer.
    pub first_byte: TimeFigures,
}

impl LaneActivity {
    /// A notification was accepted, so long after its version was stored.
    pub fn told(&mut self, now: Timestamp, latency: Duration) {
        self.latency.add(now, latency);
    }

    /// A request ended.
    pub fn attempted(&mut self, now: Timestamp, took: Duration, phases: &AttemptPhases) {
        self.attempts.add(now, took);
        let parts = [
            (&mut self.dns, phases.dns),
            (&mut self.connect, phases.connect),
            (&mut self.tls, phases.tls),
            (&mut self.first_byte, phases.first_byte),
        ];
        for (times, took) in parts {
            if let Some(took) = took {
                times.add(now, took);
            }
        }
    }
}

impl SubscriptionRates {
    /// The rates of lanes together, as of now.
    pub fn of<'a>(lanes: impl Iterator<Item = &'a LaneActivity>, now: Timestamp) -> Self {
        lanes.fold(Self::default(), |sum, lane| Self {
            delivered: sum.delivered + lane.delivered.rates(now),
            failed: sum.failed + lane.failed.rates(now),
            discarded: sum.discarded + lane.discarded.rates(now),
        })
    }

    /// All outcomes together.
    pub fn all(&self) -> WindowRates {
        self.delivered + self.failed + self.discarded
    }
}

impl std::ops::Add for SubscriptionRates {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            failed: self.failed + other.failed,
            discarded: self.discarded + other.discarded,
        }
    }
}

impl SubscriptionTimes {
    /// The times of lanes together, as of now.
    pub fn of<'a>(lanes: impl Iterator<Item = &'a LaneActivity> + Clone, now: Timestamp) -> Self {
        let figures = |times: fn(&LaneActivity) -> &RecentTimes| {
            RecentTimes::merged(lanes.clone().map(times), now)
        };
        Self {
            latency: figures(|lane| &lane.latency),
            attempts: figures(|lane| &lane.attempts),
            dns: figures(|lane| &lane.dns),
            connect: figures(|lane| &lane.connect),
            tls: figures(|lane| &lane.tls),
            first_byte: figures(|lane| &lane.first_byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_added_up_as_of_now() {
        let now = Timestamp::from_unix_seconds(1_000);
        let mut lanes = [LaneActivity::default(), LaneActivity::default()];
        for lane in &mut lanes {
            lane.delivered.add(now, 60);
            lane.told(now, Duration::from_millis(40));
            let phases =
                AttemptPhases { connect: Some(Duration::from_millis(3)), ..Default::default() };
            lane.attempted(now, Duration::from_millis(10), &phases);
        }
        lanes[1].failed.add(now, 30);
        let rates = SubscriptionRates::of(lanes.iter(), now);
        assert_eq!((rates.delivered.minute, rates.failed.minute), (2.0, 0.5));
        assert_eq!(rates.all().minute, 2.5);
        let times = SubscriptionTimes::of(lanes.iter(), now);
        assert_eq!((times.latency.count, times.connect.count, times.dns.count), (2, 2, 0));
        assert_eq!(times.attempts.mean, Duration::from_millis(10));
        let much_later = now + Duration::from_secs(900);
        assert_eq!(SubscriptionRates::of(lanes.iter(), much_later), SubscriptionRates::default());
        assert_eq!(SubscriptionTimes::of(lanes.iter(), much_later), SubscriptionTimes::default());
    }

    #[test]
    fn what_never_happened_takes_no_room() {
        let text = serde_json::to_string(&LaneActivity::default()).unwrap();
        assert_eq!(text, "{}");
        let mut lane = LaneActivity::default();
        lane.delivered.add(Timestamp::from_unix_seconds(60), 1);
        let text = serde_json::to_string(&lane).unwrap();
        assert_eq!(text, r#"{"delivered":{"step":6,"counts":[1]}}"#);
        assert_eq!(serde_json::from_str::<LaneActivity>(&text).unwrap(), lane);
    }
}
