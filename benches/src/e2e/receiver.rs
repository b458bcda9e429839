//! Takes what a round sends; starts the sink's process, tells it, and gives what came.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use flare_benches::measure::cpu_time;
use tokio::sync::mpsc;

use super::head::BATCH;
use super::sink::SINK;
use crate::Result;

/// How long a round may take before what is missing counts as lost.
const LIMIT: Duration = Duration::from_secs(60);

/// The sink's process, seen from outside.
pub(crate) struct Receiver {
    process: Child,
    tell: ChildStdin,
    said: mpsc::Receiver<String>,
    port: u16,
}

/// What came of a round.
#[derive(Debug, Clone, Default)]
pub(super) struct Received {
    /// When each came, in nanoseconds since 1970; zero if it did not. By subscription, then by
    /// document.
    pub(super) arrivals: Vec<u64>,
    pub(super) duplicates: usize,
}

impl Received {
    pub(super) fn lost(&self) -> usize {
        self.arrivals.iter().filter(|at| **at == 0).count()
    }

    /// How long each that came took since its document was put, in milliseconds, shortest first.
    pub(super) fn latencies(&self, put_at: &[u64]) -> Vec<f64> {
        // A delivery may overtake the answer to its put.
        let latency = |(place, at): (usize, &u64)| {
            at.saturating_sub(put_at[place % put_at.len()]) as f64 / 1e6
        };
        let arrived = self.arrivals.iter().enumerate().filter(|(_, at)| **at > 0);
        let mut latencies: Vec<f64> = arrived.map(latency).collect();
        latencies.sort_unstable_by(f64::total_cmp);
        latencies
    }

    /// When the last one came.
    pub(super) fn end(&self) -> u64 {
        self.arrivals.iter().copied().max().unwrap_or_default()
    }
}

impl Receiver {
    /// Starts the process; the first `failing` clients beyond those a round expects something of
    /// answer 500. It ends by itself once this is dropped.
    pub(crate) async fn start(failing: usize) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([SINK, &failing.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(tell), Some(out)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the sink's process has no standard input or output".into());
        };
        let (say, said) = mpsc::channel(4);
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(std::result::Result::ok) {
                if say.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        let mut receiver = Self { process, tell, said, port: 0 };
        receiver.port = receiver.hear().await?.parse()?;
        Ok(receiver)
    }

    /// Where notifications of a subscription go.
    pub(crate) fn url(&self, round: &str, subscription: usize, document: &str) -> String {
        format!("http://127.0.0.1:{}/{round}/{subscription}/{document}", self.port)
    }

    /// Where notifications of a subscription go that is told of many at once.
    pub(crate) fn batch_url(&self, subscription: usize) -> String {
        self.url(&BATCH.to_string(), subscription, "0")
    }

    /// CPU time the sink has used so far.
    pub(super) fn cpu(&self) -> Result<Duration> {
        Ok(cpu_time(self.process.id())?)
    }

    /// Makes ready for a round. Of those beyond `subscriptions` the first ones fail, as many as this
    /// was started with, and the others are not answered.
    pub(crate) async fn expect(
        &mut self,
        round: i64,
        subscriptions: usize,
        documents: usize,
    ) -> Result<()> {
        self.expect_some(round, subscriptions, documents, 1).await
    }

    /// The same, where one of every `step` documents changes.
    pub(super) async fn expect_some(
        &mut self,
        round: i64,
        subscriptions: usize,
        documents: usize,
        step: usize,
    ) -> Result<()> {
        self.say(&format!("expect {round} {subscriptions} {documents} {step}"))?;
        self.hear_only("ready").await
    }

    /// Waits until everything came, but not for ever.
    pub(super) async fn complete(&mut self) -> Result<()> {
        match super::within(LIMIT, self.said.recv()).await {
            Some(Some(line)) if line == "complete" => Ok(()),
            Some(other) => Err(format!("the sink said {other:?} instead of complete").into()),
            None => Ok(()),
        }
    }

    /// What came until now.
    pub(super) async fn received(&mut self) -> Result<Received> {
        self.say("tell")?;
        let line = self.hear().await?;
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        let duplicates = numbers.next().transpose()?.unwrap_or_default() as usize;
        Ok(Received { duplicates, arrivals: numbers.collect::<std::result::Result<_, _>>()? })
    }

    fn say(&mut self, line: &str) -> Result<()> {
        Ok(writeln!(self.tell, "{line}")?)
    }

    async fn hear(&mut self) -> Result<String> {
        self.said.recv().await.ok_or_else(|| "the sink's process ended".into())
    }

    async fn hear_only(&mut self, expected: &str) -> Result<()> {
        match self.hear().await?.as_str() {
            line if line == expected => Ok(()),
            line => Err(format!("the sink said {line} instead of {expected}").into()),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It may be gone already; either way nobody waits for it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
