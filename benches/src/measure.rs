//! Takes work; gives how long it took, next to other work of the same run, and how much memory
//! the process has.

#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use std::io;
use std::time::{Duration, Instant};

/// How long `work` takes.
pub fn time<E>(work: impl FnOnce() -> Result<(), E>) -> Result<Duration, E> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

/// Two kinds of work next to each other.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// The median, over the rounds, of what the first took by what the second took.
    pub ratio: f64,
    /// The median of what one item of the first took, in nanoseconds.
    pub first: f64,
    /// The median of what one item of the second took, in nanoseconds.
    pub second: f64,
}

/// Has two kinds of work take turns for some rounds, each going first every other round, after
/// two that do not count. Each is told the round and says how long its `items` took.
pub fn compare<E>(
    rounds: usize,
    items: usize,
    mut first: impl FnMut(usize) -> Result<Duration, E>,
    mut second: impl FnMut(usize) -> Result<Duration, E>,
) -> Result<Comparison, E> {
    const UNCOUNTED: usize = 2;
    let (mut ratios, mut firsts, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..UNCOUNTED + rounds {
        let (one, other) = if round % 2 == 0 {
            let one = first(round)?;
            (one, second(round)?)
        } else {
            let other = second(round)?;
            (first(round)?, other)
        };
        if round >= UNCOUNTED {
            ratios.push(one.as_secs_f64() / other.as_secs_f64());
            firsts.push(one.as_secs_f64() * 1e9 / items as f64);
            seconds.push(other.as_secs_f64() * 1e9 / items as f64);
        }
    }
    Ok(Comparison { ratio: median(ratios), first: median(firsts), second: median(seconds) })
}

/// The middle value; of none, not a number.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value that `share` (0 to 1) of all values are not above; of none, not a number.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// CPU time a process has used so far, user and system, all threads (Linux). In steps of 10 ms.
pub fn cpu_time(process: u32) -> io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is a name in brackets and may hold anything; the third follows the last.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = |field: usize| fields.split_whitespace().nth(field)?.parse::<u64>().ok();
    let (user, system) = (ticks(11), ticks(12));
    let sum = user.zip(system).map(|(user, system)| user + system);
    // The kernel shows 100 ticks a second to programs, whatever it counts inside.
    sum.map(|ticks| Duration::from_millis(ticks * 10))
        .ok_or_else(|| io::Error::other("/proc/<pid>/stat has no utime and stime"))
}

/// Bytes of memory the process has in RAM (Linux).
pub fn resident_bytes() -> io::Result<u64> {
    // Like /proc/self/statm, but in kB instead of pages of a size one would have to ask for.
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.map(|kb| kb * 1024).ok_or_else(|| io::Error::other("/proc/self/status has no VmRSS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn quantiles_are_values_that_were_there() {
        let sorted: Vec<f64> = (1..=101).map(f64::from).collect();
        assert_eq!(quantile(&sorted, 0.5), 51.0);
        assert_eq!(quantile(&sorted, 0.99), 100.0);
        assert_eq!(quantile(&sorted, 1.0), 101.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn cpu_time_passes_while_one_works() {
        let before = cpu_time(std::process::id()).unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        assert!(cpu_time(std::process::id()).unwrap() > before);
    }
}
