//! Takes how often things happened; gives a small plot of it as SVG. Coordinates and our own words only: nothing in it
//! has to be escaped.

use std::fmt;
use std::fmt::Write;

use askama::filters::HtmlSafe;
use flare_core::model::RecentOutcomes;

use crate::show::count;

const HEIGHT: f64 = 40.0;
/// Seconds that are counted together.
const STEP: u64 = 10;

/// What became of notifications in the last five minutes: two lines, and what they say in words.
#[derive(Debug, Clone)]
pub(crate) struct Plot(RecentOutcomes);

impl Plot {
    /// Of these, if anything happened.
    pub(crate) fn of(recent: &RecentOutcomes) -> Option<Self> {
        let happened = recent.delivered.iter().chain(&recent.failed).any(|count| *count > 0);
        happened.then(|| Self(recent.clone()))
    }
}

impl HtmlSafe for Plot {}

impl fmt::Display for Plot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(RecentOutcomes { delivered, failed, .. }) = self;
        let most = delivered.iter().chain(failed).copied().max().unwrap_or_default().max(1);
        let width = delivered.len().saturating_sub(1).max(1);
        let [delivered_sum, failed_sum] =
            [delivered, failed].map(|counts| counts.iter().sum::<u64>());
        write!(
            f,
            "<svg class=\"plot\" viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-label=\"The last five minutes: {} delivered, {} attempts failed; at most {} in {STEP} seconds\">",
            count(delivered_sum),
            count(failed_sum),
            count(most)
        )?;
        line(f, "plot-good", delivered, most)?;
        line(f, "plot-bad", failed, most)?;
        f.write_str("</svg>")
    }
}

/// One line of it; none for what never happened.
fn line(f: &mut fmt::Formatter<'_>, class: &str, counts: &[u64], most: u64) -> fmt::Result {
    if counts.iter().all(|count| *count == 0) {
        return Ok(());
    }
    let mut path = String::new();
    for (x, count) in counts.iter().enumerate() {
        let y = HEIGHT - 1.0 - (HEIGHT - 2.0) * *count as f64 / most as f64;
        write!(path, "{}{x} {y:.1}", if x == 0 { 'M' } else { 'L' })?;
    }
    write!(f, "<path class=\"{class}\" d=\"{path}\"/>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_drawn_between_the_edges() {
        let mut recent = RecentOutcomes::default();
        assert!(Plot::of(&recent).is_none());
        (recent.delivered, recent.failed) = (vec![0, 4, 2], vec![0, 0, 0]);
        let drawn = Plot::of(&recent).unwrap().to_string();
        assert!(
            drawn.contains("d=\"M0 39.0L1 1.0L2 20.0\"") && !drawn.contains("plot-bad"),
            "{drawn}"
        );
        assert!(
            drawn.contains("6 delivered, 0 attempts failed; at most 4 in 10 seconds"),
            "{drawn}"
        );
    }
}
