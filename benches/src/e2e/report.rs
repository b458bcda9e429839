//! Takes the rounds of both sides; gives a table of their medians, and JSON.

use std::fmt;

use flare_benches::measure::{median, quantile};
use serde_json::{Value, json};

use super::at_load::AtLoad;
use super::large::Large;
use super::options::Options;
use super::round::Round;
use super::stores::{StoreKind, Weight};

/// The most that deliveries at little load may take, in bare commits: at the median, at the 99th percentile.
const MOST_COMMITS: (f64, f64) = (4.0, 8.0);
/// The most that a put may cost among very many documents, by what it costs among few.
const MOST_WHEN_LARGE: f64 = 1.5;
/// The most that a status with a lag of 1,000 may take then, in milliseconds, and a restart, in seconds.
const MOST_STATUS: f64 = 20.0;
const MOST_RESTART: f64 = 2.0;

/// The most that a put may cost with subscriptions that it does not concern, by what it costs without them.
const MOST_FILTERED: f64 = 2.0;
/// How many times as many deliveries a second many in a request are claimed to be.
const BATCH_RATIO: f64 = 3.0;

/// What was measured, round by round.
#[derive(Debug)]
pub(super) struct Report {
    options: Options,
    /// Connections without Flare: the number that was fastest.
    connections: usize,
    pub(super) flare: Vec<Round>,
    pub(super) raw: Vec<Round>,
    /// Flare without the clients that hang, fail or are not concerned, or without the documents that do not
    /// change, if there are any.
    pub(super) plain: Vec<Round>,
    /// Flare with many notifications in a request, if that is measured.
    pub(super) batched: Vec<Round>,
    /// How long deliveries take while there is little to do, if that was measured.
    pub(super) at_load: Option<AtLoad>,
    /// What takes its time among very many documents, if there are.
    pub(super) large: Option<Large>,
    /// What a document and a row take on disk.
    pub(super) weights: Vec<Weight>,
}

impl Report {
    pub(super) fn new(options: &Options, connections: usize) -> Self {
        let (flare, raw, plain, batched) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (options, at_load, large, weights) = (options.clone(), None, None, Vec::new());
        Self { options, connections, flare, raw, plain, batched, at_load, large, weights }
    }

    /// What Flare does at most.
    pub(super) fn deliveries_per_second(&self) -> f64 {
        middle(&self.flare, |round| round.per_second)
    }

    /// Deliveries per second by those without Flare.
    fn ratio_to_raw(&self) -> f64 {
        ratio(&self.flare, &self.raw, |round| round.per_second)
    }

    /// CPU per delivery by that without Flare.
    fn cpu_ratio(&self) -> f64 {
        ratio(&self.flare, &self.raw, |round| round.cpu)
    }

    /// Share of deliveries per second that is lost to clients that hang or fail.
    fn hang_loss(&self) -> Option<f64> {
        let some = self.options.is_disturbed() && !self.plain.is_empty();
        some.then(|| 1.0 - ratio(&self.flare, &self.plain, |round| round.per_second))
    }

    /// What a put and its deliveries cost with filters and clients that are not concerned, by what they cost
    /// without.
    fn filter_cost(&self) -> Option<f64> {
        let some = self.options.filter && !self.plain.is_empty();
        some.then(|| ratio(&self.flare, &self.plain, |round| round.cpu))
    }

    /// What a put costs among all documents by what it costs among those alone that change.
    fn put_when_large(&self) -> Option<f64> {
        let some = self.options.is_large() && !self.plain.is_empty();
        some.then(|| ratio(&self.flare, &self.plain, |round| round.put))
    }

    /// Deliveries per second with many in a request, by those with one in each.
    fn batch_ratio(&self) -> Option<f64> {
        let some = !self.batched.is_empty();
        some.then(|| ratio(&self.batched, &self.flare, |round| round.per_second))
    }

    fn all(&self) -> impl Iterator<Item = &Round> {
        self.flare.iter().chain(&self.raw).chain(&self.plain).chain(&self.batched)
    }

    fn lost(&self) -> usize {
        self.all().map(|round| round.lost).sum()
    }

    fn duplicates(&self) -> usize {
        self.all().map(|round| round.duplicates).sum()
    }

    /// Whether nothing was lost and Flare is as fast as it is claimed to be.
    pub(super) fn holds(&self) -> bool {
        let fast = match self.options.store {
            StoreKind::Memory => self.is_fast_in_memory(),
            StoreKind::Sqlite => self.is_fast_in_a_file(),
            StoreKind::Postgresql => self.is_fast_on_postgresql(),
            // What is claimed of the server is compared with the server: see `mongo`.
            StoreKind::Mongodb => true,
        };
        // Beside a side that is told of many at once, or has no filters, that is what is claimed.
        let fast = self.batch_ratio().map_or(fast, |ratio| ratio >= BATCH_RATIO);
        let fast = self.filter_cost().map_or(fast, |cost| cost <= MOST_FILTERED);
        fast && self.lost() == 0 && self.hang_loss().is_none_or(|loss| loss < 0.05)
    }

    fn is_fast_in_memory(&self) -> bool {
        match self.options.subscriptions {
            // A put's request and answer cost as much as a delivery's, so few deliveries to a put
            // cannot be as fast as many.
            0..10 => self.ratio_to_raw() >= if self.options.rest { 0.3 } else { 0.5 },
            10..=100 if self.options.rest => self.ratio_to_raw() >= 0.6,
            10..=100 => self.ratio_to_raw() >= self.claimed_ratio() || self.cpu_ratio() <= 1.43,
            // Beyond, what is claimed is the cost compared with fewer: that needs two runs.
            _ => true,
        }
    }

    fn is_fast_in_a_file(&self) -> bool {
        let claimed = match self.options.subscriptions {
            0..10 if self.options.rest => 0.0,
            0..10 => 0.2,
            10..=100 if self.options.rest => 0.3,
            10..=100 => 0.4,
            _ => 0.0,
        };
        let prompt = |(p50, p99)| p50 <= MOST_COMMITS.0 && p99 <= MOST_COMMITS.1;
        let at_load = self.at_load.as_ref().and_then(AtLoad::by_bare);
        // The more are told of a put, the more of the time is their requests'.
        let prompt = self.options.subscriptions > 1 || at_load.is_none_or(prompt);
        let flat = self.put_when_large().is_none_or(|cost| cost <= MOST_WHEN_LARGE);
        let quick = |it: &Large| it.status < MOST_STATUS && it.restart < MOST_RESTART;
        let quick = self.large.as_ref().is_none_or(quick);
        self.ratio_to_raw() >= claimed && prompt && flat && quick
    }

    fn is_fast_on_postgresql(&self) -> bool {
        let claimed = match self.options.subscriptions {
            0..10 if self.options.rest => 0.0,
            0..10 => 0.05,
            10..=100 if self.options.rest => 0.1,
            10..=100 => 0.12,
            _ => 0.0,
        };
        let prompt = |(_, p99)| p99 <= MOST_COMMITS.1;
        let at_load = self.at_load.as_ref().and_then(AtLoad::by_bare);
        // As in a file: of many that are told, the time is their requests'.
        let prompt = self.options.subscriptions > 1 || at_load.is_none_or(prompt);
        self.ratio_to_raw() >= claimed && prompt
    }

    /// The raw side neither makes signatures nor counts requests: it sends what was recorded.
    fn claimed_ratio(&self) -> f64 {
        if self.options.signing || self.options.rate.is_some() { 0.6 } else { 0.7 }
    }

    pub(super) fn to_json(&self) -> Value {
        let side = |rounds: &[Round]| {
            json!({
                "deliveries_per_second": middle(rounds, |round| round.per_second),
                "cpu_us_per_delivery": middle(rounds, |round| round.cpu),
                "sink_cpu_us_per_delivery": middle(rounds, |round| round.sink_cpu),
                "us_per_put": middle(rounds, |round| round.put),
            })
        };
        json!({
            "ratio_to_raw": self.ratio_to_raw(),
            "cpu_ratio": self.cpu_ratio(),
            "lost": self.lost(),
            "duplicates": self.duplicates(),
            "holds": self.holds(),
            "store": self.options.store.as_str(),
            "subscriptions": self.options.subscriptions,
            "documents": self.options.documents,
            "changes": self.options.changes,
            "putters": self.options.putters,
            "hang": self.options.hang,
            "fail": self.options.fail,
            "hang_loss": self.hang_loss(),
            "filter": self.options.filter,
            "filter_values": self.options.filter_values,
            "filter_cost": self.filter_cost(),
            "signing": self.options.signing,
            "rest": self.options.rest,
            "rate": self.options.rate,
            "batch": self.options.batch,
            "batch_ratio": self.batch_ratio(),
            "pairs": self.flare.len(),
            "raw_connections": self.connections,
            "latency_ms": {
                "p50": middle(&self.flare, |round| round.latency(0.5)),
                "p99": middle(&self.flare, |round| round.latency(0.99)),
            },
            "flare": side(&self.flare),
            "raw": side(&self.raw),
            "batched": (!self.batched.is_empty()).then(|| side(&self.batched)),
            "undisturbed": self.options.is_disturbed().then(|| side(&self.plain)),
            "unfiltered": self.options.filter.then(|| side(&self.plain)),
            "small": self.options.is_large().then(|| side(&self.plain)),
            "put_when_large": self.put_when_large(),
            "large": self.large.map(Large::to_json),
            "at_20_percent": self.at_load.as_ref().map(AtLoad::to_json),
            "bytes_on_disk": self.weights.iter().map(weight_json).collect::<Vec<_>>(),
        })
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, name: &str, rounds: &[Round]) -> fmt::Result {
        let count = |of: fn(&Round) -> usize| rounds.iter().map(of).sum::<usize>();
        write!(
            f,
            "\n{name:<22} {:>12.0} {:>8.1} {:>8.1}",
            middle(rounds, |round| round.per_second),
            middle(rounds, |round| round.cpu),
            middle(rounds, |round| round.sink_cpu),
        )?;
        for share in [0.5, 0.99] {
            match middle(rounds, |round| round.latency(share)) {
                none if none.is_nan() => write!(f, " {:>8}", "-")?,
                milliseconds => write!(f, " {milliseconds:>8.1}")?,
            }
        }
        write!(f, " {:>6} {:>6}", count(|round| round.duplicates), count(|round| round.lost))
    }
}

impl Report {
    fn heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        let Options { subscriptions, documents, changes, hang, fail, .. } = options;
        write!(f, "on {}, ", options.store.as_str())?;
        write!(f, "{subscriptions} subscriptions ({hang} hang, {fail} fail), ")?;
        if options.rest {
            write!(f, "put through REST (its client's CPU included), ")?;
        }
        if options.signing {
            write!(f, "signed, ")?;
        }
        if let Some(rate) = options.rate {
            write!(f, "at most {rate}/s each, ")?;
        }
        if options.is_large() {
            write!(f, "{changes} of ")?;
        }
        writeln!(
            f,
            "{documents} documents, {} puts at a time, {} deliveries a round, medians of {} pairs\n",
            options.putters,
            options.deliveries(),
            self.flare.len(),
        )
    }

    fn load(f: &mut fmt::Formatter<'_>, at_load: &AtLoad) -> fmt::Result {
        let [p50, p99] = [0.5, 0.99].map(|share| quantile(&at_load.latencies, share));
        write!(
            f,
            "\nat 20 % load ({:.0} puts/s), put to client: p50 {p50:.2} ms, p99 {p99:.2} ms",
            at_load.puts
        )?;
        if let Some((by50, by99)) = at_load.by_bare() {
            let [p50, p99] = [0.5, 0.99].map(|share| quantile(&at_load.bare, share));
            write!(
                f,
                "; a bare write of one record: {p50:.2} and {p99:.2} ms, {by50:.1} and {by99:.1} of which"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heading(f)?;
        write!(
            f,
            "{:<22} {:>12} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6}",
            "", "deliveries/s", "µs CPU", "µs sink", "p50 ms", "p99 ms", "double", "lost"
        )?;
        self.line(f, "Flare", &self.flare)?;
        if self.options.is_disturbed() {
            self.line(f, "Flare, all are well", &self.plain)?;
        }
        if self.options.is_large() {
            self.line(f, "Flare, few documents", &self.plain)?;
        }
        if self.options.filter {
            self.line(f, "Flare, no filters", &self.plain)?;
        }
        if let Some(most) = self.options.batch {
            self.line(f, &format!("Flare, {most} in a request"), &self.batched)?;
        }
        self.line(f, &format!("raw, {} connections", self.connections), &self.raw)?;
        write!(
            f,
            "\n\nFlare by raw: {:.2} of the deliveries/s, {:.2} of the CPU per delivery",
            self.ratio_to_raw(),
            self.cpu_ratio()
        )?;
        if let Some(ratio) = self.batch_ratio() {
            write!(f, "\nmany in a request by one in each: {ratio:.2} of the deliveries/s")?;
        }
        if let Some(cost) = self.filter_cost() {
            write!(
                f,
                "\nwith filters, of which 1 % want it, a put costs {cost:.2} of the CPU without"
            )?;
        }
        if let Some(loss) = self.hang_loss() {
            write!(
                f,
                "\nlost to clients that hang or fail: {:.1} % of the deliveries/s",
                loss * 100.0
            )?;
        }
        if let Some(cost) = self.put_when_large() {
            write!(f, "\na put costs {cost:.2} of what it does among few documents")?;
        }
        if let Some(Large { status, restart, pending }) = self.large {
            write!(f, "\na status with a lag of 1,000 takes {status:.1} ms; ")?;
            write!(
                f,
                "after a restart with {pending} rows pending all are told in {restart:.2} s"
            )?;
        }
        if let Some(at_load) = &self.at_load {
            Self::load(f, at_load)?;
        }
        for weight in &self.weights {
            let Weight { what, records, .. } = weight;
            write!(f, "\nbytes on disk per {what}: {:.0} ({records} of them)", weight.each())?;
        }
        if !self.holds() {
            write!(f, "\nNOT as claimed")?;
        }
        Ok(())
    }
}

fn weight_json(weight: &Weight) -> Value {
    json!({
        "of": weight.what,
        "records": weight.records,
        "each": weight.each(),
        "stored": weight.stored,
        "indexes": weight.indexes,
    })
}

fn middle(rounds: &[Round], figure: impl Fn(&Round) -> f64) -> f64 {
    median(rounds.iter().map(figure).collect())
}

/// The median of the ratios of rounds that followed each other.
fn ratio(some: &[Round], others: &[Round], figure: impl Fn(&Round) -> f64) -> f64 {
    let pairs = some.iter().zip(others);
    median(pairs.map(|(one, other)| figure(one) / figure(other)).collect())
}

#[cfg(test)]
mod tests;
