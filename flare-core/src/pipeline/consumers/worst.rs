//! Takes how all consumers are doing; gives figures of those few that fail or are furthest behind, and of all others
//! together.

use metrics::gauge;

use super::picture::{ConsumerSummary, ConsumersPicture};
use crate::error::Result;
use crate::model::ConsumerId;
use crate::observe;
use crate::pipeline::context::Context;
use crate::pipeline::metered_names::{MeteredNames, OTHERS};

/// The consumers that have figures of their own.
#[derive(Debug)]
pub(crate) struct WorstConsumers(MeteredNames<ConsumerId>);

/// The figures of one, or of several together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct ConsumerFigures {
    failing: u64,
    depth: u64,
    behind: f64,
}

impl WorstConsumers {
    pub(crate) fn new(most: usize) -> Self {
        Self(MeteredNames::new(most))
    }

    /// Shows how they are.
    pub(crate) async fn show(&mut self, context: &Context) -> Result<()> {
        if self.0.is_off() {
            return Ok(());
        }
        let picture = context.consumers_picture().await?;
        let worst = self.0.choose(orders(&picture), context.clock.monotonic());
        let mut others = ConsumerFigures::default();
        for summary in &picture.summaries {
            let figures = ConsumerFigures::of(summary);
            if worst.contains(&summary.id) {
                figures.show(&summary.id.to_string());
            } else {
                others = others.with(figures);
            }
        }
        others.show(OTHERS);
        for well in self.0.show(worst) {
            ConsumerFigures::default().show(&well.to_string());
        }
        Ok(())
    }
}

/// Those that fail, and those that are behind, each with the furthest behind first.
fn orders(picture: &ConsumersPicture) -> [Vec<ConsumerId>; 2] {
    let mut summaries: Vec<&ConsumerSummary> = picture.summaries.iter().collect();
    summaries.sort_unstable_by_key(|it| (std::cmp::Reverse((it.depth, it.behind)), it.id));
    let those = |fits: fn(&ConsumerSummary) -> bool| {
        summaries.iter().filter(|it| fits(it)).map(|it| it.id).collect()
    };
    let is_behind = |it: &ConsumerSummary| it.depth > 0 || !it.behind.is_zero();
    [those(|it| it.failing), those(is_behind)]
}

impl ConsumerFigures {
    fn of(summary: &ConsumerSummary) -> Self {
        let behind = summary.behind.as_secs_f64();
        Self { failing: summary.failing.into(), depth: summary.depth, behind }
    }

    fn with(self, other: Self) -> Self {
        Self {
            failing: self.failing + other.failing,
            depth: self.depth.saturating_add(other.depth),
            behind: self.behind.max(other.behind),
        }
    }

    fn show(&self, name: &str) {
        let labelled = |metric: &'static str| gauge!(metric, "consumer" => name.to_owned());
        labelled(observe::CONSUMER_LAG).set(self.depth as f64);
        labelled(observe::CONSUMER_BEHIND).set(self.behind);
        labelled(observe::CONSUMER_FAILING).set(self.failing as f64);
    }
}
