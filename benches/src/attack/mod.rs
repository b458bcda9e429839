//! Runs that once broke Flare, each with the figure that showed it. A run builds what it attacks,
//! attacks it for a bounded time and says what it found; the table shows all of them.

mod bytes;
mod clients;
mod fairness;
mod finding;
mod ingest;
mod names;
mod places;
mod stages;

pub use clients::Clients;
pub use finding::Finding;

/// Anything may go wrong in a run, and all that can be done about it is to say so.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// What comes of what may go wrong.
pub type Result<T> = std::result::Result<T, Error>;

/// How much of a run is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// As the tests make it: seconds, on a machine that may be busy.
    Short,
    /// As the figures of the README are made.
    Full,
}

/// A way to attack Flare.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Makes the run.
    pub make: fn(Size) -> Result<Vec<Finding>>,
}

/// All runs, in the order in which they are made.
pub const RUNS: &[Run] =
    &[stages::RUN, ingest::RUN, bytes::RUN, places::RUN, names::RUN, fairness::RUN];

/// Makes the runs named, or all; tells whether every finding holds.
pub fn attack(args: &[&str]) -> Result<bool> {
    let size = if args.contains(&"--short") { Size::Short } else { Size::Full };
    let names: Vec<&str> = args.iter().copied().filter(|arg| *arg != "--short").collect();
    if let Some(unknown) = names.iter().find(|name| RUNS.iter().all(|run| run.name != **name)) {
        let known: Vec<&str> = RUNS.iter().map(|run| run.name).collect();
        return Err(format!("there is no run {unknown:?}, only {}", known.join(", ")).into());
    }
    let mut holds = true;
    for run in RUNS.iter().filter(|run| names.is_empty() || names.contains(&run.name)) {
        println!("{}: {}", run.name, run.about);
        for finding in (run.make)(size)? {
            println!("  {finding}");
            holds &= finding.holds;
        }
    }
    Ok(holds)
}
