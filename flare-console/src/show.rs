//! Takes values of the core; gives how pages write them: times relative to now with the exact one on hover,
//! numbers with separators, states as coloured words. Everything that is made here as HTML is escaped here.

use std::fmt;
use std::time::Duration;

use askama::filters::HtmlSafe;
use flare_core::model::{SubscriptionStatus, Timestamp};

/// The time that a page is told from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now(pub(crate) Timestamp);

/// A value or a reference to it: templates give either.
pub(crate) trait Given<T> {
    fn value(self) -> T;
}

impl<T> Given<T> for T {
    fn value(self) -> T {
        self
    }
}

impl<T: Copy> Given<T> for &T {
    fn value(self) -> T {
        *self
    }
}

impl<T: Copy> Given<T> for &&T {
    fn value(self) -> T {
        **self
    }
}

impl Now {
    /// A moment, seen from now.
    pub(crate) fn when(self, at: impl Given<Timestamp>) -> When {
        When { at: at.value(), now: self.0 }
    }

    /// A moment, if there is one.
    pub(crate) fn when_given(self, at: impl Given<Option<Timestamp>>) -> Option<When> {
        at.value().map(|at| self.when(at))
    }
}

/// A moment: how long ago or how soon, and exactly on hover.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When {
    at: Timestamp,
    now: Timestamp,
}

impl HtmlSafe for When {}

impl fmt::Display for When {
    /// Digits, letters and punctuation of times: nothing that has to be escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, now } = *self;
        write!(f, "<time datetime=\"{at}\" title=\"{at}\">")?;
        let (past, coming) = (now.since(at), at.since(now));
        match (past < Duration::from_secs(1), coming < Duration::from_secs(1)) {
            (true, true) => f.write_str("now")?,
            (false, _) => write!(f, "{} ago", span(past))?,
            (_, false) => write!(f, "in {}", span(coming))?,
        }
        f.write_str("</time>")
    }
}

/// A time's length in one unit, rounded down.
pub(crate) fn span(time: impl Given<Duration>) -> String {
    let seconds = time.value().as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// How long something took, as exactly as is of interest.
pub(crate) fn took(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1_000.0;
    match millis {
        0.0..10.0 => format!("{millis:.1} ms"),
        10.0..10_000.0 => format!("{} ms", count(millis.round() as u64)),
        _ => span(time),
    }
}

/// What can be counted, or a reference to it.
pub(crate) trait Number {
    fn number(&self) -> u64;
}

impl Number for u64 {
    fn number(&self) -> u64 {
        *self
    }
}

impl Number for u32 {
    fn number(&self) -> u64 {
        u64::from(*self)
    }
}

impl Number for usize {
    fn number(&self) -> u64 {
        *self as u64
    }
}

impl<T: Number> Number for &T {
    fn number(&self) -> u64 {
        (**self).number()
    }
}

/// 1234567 as 1,234,567.
pub(crate) fn count(number: impl Number) -> String {
    let digits = number.number().to_string();
    let mut written = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// So many things of a kind: 1 document, 2 documents.
pub(crate) fn many(number: impl Number, one: &str) -> String {
    let s = if number.number() == 1 { "" } else { "s" };
    format!("{} {one}{s}", count(number))
}

/// Something a second: 12.3, 0.05, 1,234.
pub(crate) fn rate(a_second: impl Given<f64>) -> String {
    match a_second.value() {
        rate if rate >= 100.0 => count(rate.round() as u64),
        rate if rate >= 1.0 => format!("{rate:.1}"),
        rate if rate >= 0.01 => format!("{rate:.2}"),
        rate if rate > 0.0 => "< 0.01".to_owned(),
        _ => "0".to_owned(),
    }
}

/// A part of a whole in percent, for a bar.
pub(crate) fn percent(part: impl Given<u64>, whole: impl Given<u64>) -> u64 {
    let share = u128::from(part.value()) * 100 / u128::from(whole.value().max(1));
    u64::try_from(share.min(100)).unwrap_or(100)
}

/// A word with a colour. The words are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) word: &'static str,
    tone: &'static str,
}

impl State {
    pub(crate) const fn good(word: &'static str) -> Self {
        Self { word, tone: "good" }
    }

    pub(crate) const fn fair(word: &'static str) -> Self {
        Self { word, tone: "fair" }
    }

    pub(crate) const fn bad(word: &'static str) -> Self {
        Self { word, tone: "bad" }
    }

    pub(crate) const fn plain(word: &'static str) -> Self {
        Self { word, tone: "plain" }
    }

    /// Where a subscription stands.
    pub(crate) fn of(status: SubscriptionStatus) -> Self {
        let word = status.as_str();
        match status {
            SubscriptionStatus::Active => Self::good(word),
            SubscriptionStatus::Suspended | SubscriptionStatus::Unreadable => Self::bad(word),
            SubscriptionStatus::Paused => Self::fair(word),
            _ => Self::plain(word),
        }
    }
}

impl HtmlSafe for State {}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<span class=\"state state-{}\">{}</span>", self.tone, self.word)
    }
}

/// What the page before has done, by the word in the query: only what is listed here is ever shown.
pub(crate) fn done(word: &str) -> Option<&'static str> {
    Some(match word {
        "created" => "Created.",
        "changed" => "Changed. What is accepted from now on is delivered by the new settings.",
        "saved" => "Changed. From now on it pulls by these settings.",
        "deleted" => "Deleted. What is left of it is removed in the background.",
        "paused" => "Paused. Changes are held until it is resumed.",
        "resumed" => "Resumed. What was held is due now.",
        "retried" => "What waited for a later attempt is due now.",
        "replayed" => "Replayed: the newest versions are due now.",
        "backfill" => "The backfill is under way; its progress is below.",
        "resync" => "The resync is under way; its progress is below.",
        "cancelled" => "Cancelled. What was pending already is delivered all the same.",
        "demanded" => "What waits is being sent.",
        "pinned" => "Pinned. The lanes move by themselves.",
        "unpinned" => "The pin is taken back.",
        "draining" => "The node was asked to hand over and leave.",
        "put-created" => "Stored: created. Clients are told.",
        "put-updated" => "Stored: updated. Clients are told.",
        "put-unchanged" => "Unchanged: the store has this revision already. No client is told.",
        "put-stale" => "Stale: the store has a newer revision. No client is told.",
        "put-deleted" => "Deleted. Clients are told.",
        "rejects" => {
            "Tried again by the mapping as it is now. What was rejected again is still listed."
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_now() {
        let now = Now(Timestamp::from_unix_seconds(1_000_000));
        let told = |seconds| now.when(Timestamp::from_unix_seconds(seconds)).to_string();
        for (seconds, words) in [
            (1_000_000, ">now<"),
            (999_999, ">1 s ago<"),
            (999_941, ">59 s ago<"),
            (999_940, ">1 min ago<"),
            (1_003_600, ">in 1 h<"),
            (0, ">11 days ago<"),
        ] {
            assert!(told(seconds).contains(words), "{}", told(seconds));
        }
        assert!(told(0).contains("title=\"1970-01-01T00:00:00Z\""), "{}", told(0));
    }

    #[test]
    fn numbers_are_written_to_be_read() {
        assert_eq!([0_u64, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 0.001, 0.049, 1.26, 1_234.5].map(rate),
            ["0", "< 0.01", "0.05", "1.3", "1,235"]
        );
        assert_eq!(
            (percent(1_u64, 3_u64), percent(5_u64, 0_u64), percent(0_u64, 0_u64)),
            (33, 100, 0)
        );
        assert_eq!(
            (many(1_u64, "node"), many(2_000_u64, "node")),
            ("1 node".to_owned(), "2,000 nodes".to_owned())
        );
    }
}
