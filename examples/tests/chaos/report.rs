//! What rounds gave, as a table, and what did not hold.

use std::time::Duration;

use crate::faults::Kind;

/// The figures of a round.
#[derive(Debug)]
pub struct Round {
    pub kind: Kind,
    /// From the fault until the plan gave all slots to nodes that are there.
    pub planned: Option<Duration>,
    /// From the fault until a lane of those slots was told something by another node.
    pub delivered: Option<Duration>,
    /// The longest that MongoDB took to answer anything.
    pub store: Duration,
    /// From the fault until every node was back with its share.
    pub well: Duration,
    /// From when the load paused until every lane had the newest of everything.
    pub settled: Duration,
    /// Requests that came.
    pub requests: usize,
    /// Versions that came again.
    pub doubled: usize,
    /// How often a process lost its place: the victim, but on a busy machine others may too.
    pub losses: usize,
    /// Rows that were pending when that happened: no more than these can be in doubt.
    pub in_doubt: usize,
    /// Older versions that a frozen node had in flight, and that came once it went on.
    pub late: usize,
    /// What did not hold.
    pub violations: Vec<String>,
}

const HEAD: &str = "round  what              planned  delivered   store    well  settled  requests  \
                    losses  doubled/in doubt  late";

pub fn head() {
    println!("{HEAD}");
}

impl Round {
    pub fn print(&self, number: usize) {
        let seconds = |it: Option<Duration>| match it {
            Some(it) => format!("{:.2} s", it.as_secs_f64()),
            None => "–".to_owned(),
        };
        println!(
            "{number:>5}  {:<16}  {:>7}  {:>9}  {:>6}  {:>6}  {:>7}  {:>8}  {:>6}  {:>7}/{:<8}  {:>4}",
            self.kind,
            seconds(self.planned),
            seconds(self.delivered),
            seconds(Some(self.store)),
            seconds(Some(self.well)),
            seconds(Some(self.settled)),
            self.requests,
            self.losses,
            self.doubled,
            self.in_doubt,
            self.late,
        );
        for violation in &self.violations {
            println!("       VIOLATION {violation}");
        }
    }
}

/// The sums and the worst of all rounds, by kind.
pub fn summary(rounds: &[Round]) {
    println!(
        "\nwhat              rounds  planned median/worst  delivered median/worst  doubled  late"
    );
    for kind in Kind::ALL {
        let of: Vec<&Round> = rounds.iter().filter(|round| round.kind == kind).collect();
        let spread = |of: Vec<Duration>| match (median(&of), of.iter().max()) {
            (Some(median), Some(worst)) => {
                format!("{:.2} / {:.2} s", median.as_secs_f64(), worst.as_secs_f64())
            }
            _ => "–".to_owned(),
        };
        println!(
            "{kind:<16}  {:>6}  {:>20}  {:>22}  {:>7}  {:>4}",
            of.len(),
            spread(of.iter().filter_map(|round| round.planned).collect()),
            spread(of.iter().filter_map(|round| round.delivered).collect()),
            of.iter().map(|round| round.doubled).sum::<usize>(),
            of.iter().map(|round| round.late).sum::<usize>(),
        );
    }
}

fn median(of: &[Duration]) -> Option<Duration> {
    let mut of = of.to_vec();
    of.sort_unstable();
    of.get(of.len() / 2).copied()
}
