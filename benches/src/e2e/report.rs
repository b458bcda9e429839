//! Takes the rounds of both sides; gives a table of their medians, and JSON.

use std::fmt;

use flare_benches::measure::median;
use serde_json::{Value, json};

use super::options::Options;
use super::round::Round;

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
    /// Flare without the clients that hang or fail, if there are any.
    pub(super) undisturbed: Vec<Round>,
    /// Flare with many notifications in a request, if that is measured.
    pub(super) batched: Vec<Round>,
}

impl Report {
    pub(super) fn new(options: &Options, connections: usize) -> Self {
        Self {
            options: options.clone(),
            connections,
            flare: Vec::new(),
            raw: Vec::new(),
            undisturbed: Vec::new(),
            batched: Vec::new(),
        }
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
        let some = !self.undisturbed.is_empty();
        some.then(|| 1.0 - ratio(&self.flare, &self.undisturbed, |round| round.per_second))
    }

    /// Deliveries per second with many in a request, by those with one in each.
    fn batch_ratio(&self) -> Option<f64> {
        let some = !self.batched.is_empty();
        some.then(|| ratio(&self.batched, &self.flare, |round| round.per_second))
    }

    fn all(&self) -> impl Iterator<Item = &Round> {
        self.flare.iter().chain(&self.raw).chain(&self.undisturbed).chain(&self.batched)
    }

    fn lost(&self) -> usize {
        self.all().map(|round| round.lost).sum()
    }

    fn duplicates(&self) -> usize {
        self.all().map(|round| round.duplicates).sum()
    }

    /// Whether nothing was lost and Flare is as fast as it is claimed to be.
    pub(super) fn holds(&self) -> bool {
        let fast = match self.options.subscriptions {
            // A put's request and answer cost as much as a delivery's, so few deliveries to a put
            // cannot be as fast as many.
            0..10 => self.ratio_to_raw() >= if self.options.rest { 0.3 } else { 0.5 },
            10..=100 if self.options.rest => self.ratio_to_raw() >= 0.6,
            10..=100 => self.ratio_to_raw() >= self.claimed_ratio() || self.cpu_ratio() <= 1.43,
            // Beyond, what is claimed is the cost compared with fewer: that needs two runs.
            _ => true,
        };
        let batched = self.batch_ratio().is_none_or(|ratio| ratio >= BATCH_RATIO);
        // Beside a side that is told of many at once, that is what is claimed.
        let fast = batched && (fast || self.batch_ratio().is_some());
        fast && self.lost() == 0 && self.hang_loss().is_none_or(|loss| loss < 0.05)
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
            })
        };
        json!({
            "ratio_to_raw": self.ratio_to_raw(),
            "cpu_ratio": self.cpu_ratio(),
            "lost": self.lost(),
            "duplicates": self.duplicates(),
            "holds": self.holds(),
            "subscriptions": self.options.subscriptions,
            "documents": self.options.documents,
            "hang": self.options.hang,
            "fail": self.options.fail,
            "hang_loss": self.hang_loss(),
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
            "undisturbed": (!self.undisturbed.is_empty()).then(|| side(&self.undisturbed)),
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { subscriptions, documents, hang, fail, signing, rate, rest, .. } =
            self.options;
        write!(f, "{subscriptions} subscriptions ({hang} hang, {fail} fail), ")?;
        if rest {
            write!(f, "put through REST (its client's CPU included), ")?;
        }
        if signing {
            write!(f, "signed, ")?;
        }
        if let Some(rate) = rate {
            write!(f, "at most {rate}/s each, ")?;
        }
        writeln!(
            f,
            "{documents} documents, {} deliveries a round, medians of {} pairs\n",
            self.options.deliveries(),
            self.flare.len(),
        )?;
        write!(
            f,
            "{:<22} {:>12} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6}",
            "", "deliveries/s", "µs CPU", "µs sink", "p50 ms", "p99 ms", "double", "lost"
        )?;
        self.line(f, "Flare", &self.flare)?;
        if !self.undisturbed.is_empty() {
            self.line(f, "Flare, all are well", &self.undisturbed)?;
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
        if let Some(loss) = self.hang_loss() {
            write!(
                f,
                "\nlost to clients that hang or fail: {:.1} % of the deliveries/s",
                loss * 100.0
            )?;
        }
        if !self.holds() {
            write!(f, "\nNOT as claimed")?;
        }
        Ok(())
    }
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
mod tests {
    use super::*;

    fn round(per_second: f64, cpu: f64) -> Round {
        Round { per_second, cpu, ..Round::default() }
    }

    fn report(args: &[&str], flare: Round, raw: Round) -> Report {
        let mut report = Report::new(&Options::parse(args).unwrap(), 64);
        (report.flare, report.raw) = (vec![flare], vec![raw]);
        report
    }

    #[test]
    fn less_is_claimed_of_what_the_raw_side_does_not_do() {
        let holds = |args: &[&str], per_second, cpu| {
            report(args, round(per_second, cpu), round(100.0, 1.0)).holds()
        };
        for (args, least) in [(&[][..], 70.0), (&["--signing"], 60.0), (&["--rate", "9"], 60.0)] {
            assert!(holds(args, least, 2.0) && !holds(args, least - 1.0, 2.0), "{args:?}");
            assert!(holds(args, 10.0, 1.4), "{args:?}");
        }
    }

    #[test]
    fn less_is_claimed_of_puts_through_rest() {
        for (subscriptions, least) in [("1", 30.0), ("10", 60.0), ("100", 60.0)] {
            let args = ["--rest", "--subscriptions", subscriptions];
            let holds = |speed| report(&args, round(speed, 9.0), round(100.0, 1.0)).holds();
            assert!(holds(least) && !holds(least - 1.0), "{args:?}");
        }
    }

    #[test]
    fn clients_that_fail_may_cost_as_little_as_those_that_hang() {
        let mut report = report(&["--fail", "1"], round(96.0, 1.0), round(100.0, 1.0));
        report.undisturbed = vec![round(100.0, 1.0)];
        assert!(report.holds());
        let printed = report.to_string();
        assert!(printed.contains("(0 hang, 1 fail)"), "{printed}");
        assert!(printed.contains("lost to clients that hang or fail: 4.0 %"), "{printed}");
        assert_eq!(report.to_json()["fail"], 1);
        report.flare[0].per_second = 94.0;
        assert!(!report.holds());
    }

    #[test]
    fn many_in_a_request_are_three_times_as_many() {
        let mut report = report(&["--batch", "100"], round(10.0, 9.0), round(100.0, 1.0));
        for (speed, holds) in [(30.0, true), (29.0, false)] {
            report.batched = vec![round(speed, 1.0)];
            assert_eq!(report.holds(), holds);
        }
        assert_eq!(report.to_json()["batch_ratio"], 2.9);
        assert!(report.to_string().contains("one in each: 2.90"), "{report}");
    }

    #[test]
    fn ratios_are_taken_within_pairs() {
        let options = Options::parse(&["--subscriptions", "10"]).unwrap();
        let mut report = Report::new(&options, 64);
        report.flare = vec![round(80.0, 3.0), round(8.0, 3.0), round(90.0, 3.0)];
        report.raw = vec![round(100.0, 2.0), round(10.0, 2.0), round(100.0, 2.0)];
        assert_eq!(report.ratio_to_raw(), 0.8);
        assert_eq!(report.cpu_ratio(), 1.5);
        assert!(report.holds());
        assert_eq!(report.to_json()["hang_loss"], Value::Null);
        report.flare[0].lost = 1;
        assert!(!report.holds());
    }
}
