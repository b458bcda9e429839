//! Takes hosts on one file, under load; kills one of them again and again, and looks each time whether
//! everything accepted arrives, nothing goes backwards, the file is sound, and how soon everybody is told again.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::process::{Child, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::children::this;
use crate::host::{self, CLIENTS, DOCUMENTS};
use crate::record::Record;
use crate::support::Scratch;
use crate::support::disk::assert_sound;

/// What has not come true by then never does.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);
/// How soon everybody has to be told again.
const SOON: Duration = Duration::from_secs(1);
/// Revisions of a host's next life are above those of the one before.
const LIFE: i64 = 1_000_000;

/// What a run is to be.
#[derive(Debug)]
pub(crate) struct Wish {
    rounds: usize,
    seed: u64,
    /// The machine does other things as well: times are shown, not judged.
    busy: bool,
    hosts: usize,
}

impl Wish {
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let mut wish =
            Self { rounds: 200, seed: fastrand::u64(..1_000_000), busy: false, hosts: 2 };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--busy" => wish.busy = true,
                "--alone" => wish.hosts = 1,
                "--seed" => wish.seed = words.next()?.parse().ok()?,
                number => wish.rounds = number.parse().ok()?,
            }
        }
        Some(wish)
    }
}

/// A few rounds of a single process.
pub(crate) fn alone() {
    let figures = run(&Wish { rounds: 5, seed: fastrand::u64(..), busy: true, hosts: 1 });
    eprintln!("{figures}");
}

/// A few rounds of two.
pub(crate) fn of_two() {
    let figures = run(&Wish { rounds: 5, seed: fastrand::u64(..), busy: true, hosts: 2 });
    eprintln!("{figures}");
}

/// As many as were asked for.
pub(crate) fn main(wish: &Wish) -> ExitCode {
    println!(
        "{} hosts on one file, each puts {DOCUMENTS} documents as fast as it can; {CLIENTS} clients are \
         told of all; seed {}",
        wish.hosts, wish.seed
    );
    println!("{}", run(wish));
    ExitCode::SUCCESS
}

fn run(wish: &Wish) -> String {
    let mut fleet = Fleet::start(wish);
    let mut pauses = Vec::new();
    for round in 1..=wish.rounds {
        let pause = fleet.round(round);
        if !wish.busy {
            assert!(pause < SOON, "round {round}, seed {}: told again after {pause:?}", wish.seed);
        }
        if round.is_multiple_of(20) {
            println!("round {round}: told again after {pause:?}");
        }
        pauses.push(pause);
    }
    pauses.sort();
    let record = fleet.record.lock().unwrap();
    assert_eq!(record.refused, [""; 0], "seed {}", wish.seed);
    let at = |share: usize| pauses[(pauses.len() - 1) * share / 100];
    format!(
        "{} rounds: 0 lost, 0 backwards, quick_check ok each time; told again after p50 {:?}, p95 {:?}, at \
         most {:?}; {} puts accepted, {} notifications, {} of them a second time",
        wish.rounds,
        at(50),
        at(95),
        at(100),
        record.puts,
        record.notifications,
        record.doubled,
    )
}

struct Host {
    process: Child,
    lives: i64,
}

/// The hosts, and what they say.
struct Fleet {
    hosts: BTreeMap<String, Host>,
    record: Arc<Mutex<Record>>,
    pipe: PipeWriter,
    random: fastrand::Rng,
    seed: u64,
    scratch: Scratch,
}

impl Fleet {
    fn start(wish: &Wish) -> Self {
        let scratch = Scratch::new();
        host::prepare(&scratch.path());
        let (reader, pipe) = std::io::pipe().unwrap();
        let record = Arc::new(Mutex::new(Record::default()));
        let heard = Arc::clone(&record);
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines() {
                heard.lock().unwrap().hear(&line.unwrap());
            }
        });
        let random = fastrand::Rng::with_seed(wish.seed);
        let hosts = BTreeMap::new();
        let mut fleet = Self { hosts, record, pipe, random, seed: wish.seed, scratch };
        for number in 0..wish.hosts {
            fleet.launch(&format!("host{number}"), 0);
        }
        fleet.comes_true("all are told", |record| {
            record.notifications > 0 && record.ready.len() == wish.hosts
        });
        fleet
    }

    fn launch(&mut self, name: &str, lives: i64) {
        let (path, first) = (self.scratch.path(), (lives * LIFE + 1).to_string());
        let process = this(&["host", path.to_str().unwrap(), name, &first])
            .stdin(Stdio::piped())
            .stdout(self.pipe.try_clone().unwrap())
            .spawn()
            .unwrap();
        self.hosts.insert(name.to_owned(), Host { process, lives });
    }

    /// Kills one of them and starts it again; gives how long it took until everybody was told of something
    /// that was accepted since.
    fn round(&mut self, round: usize) -> Duration {
        std::thread::sleep(Duration::from_millis(self.random.u64(50..500)));
        let victim = self.random.usize(..self.hosts.len());
        let name = self.hosts.keys().nth(victim).unwrap().clone();
        let mut host = self.hosts.remove(&name).unwrap();
        host.process.kill().unwrap();
        let began = Instant::now();
        host.process.wait().unwrap();
        {
            let mut record = self.record.lock().unwrap();
            record.watch();
            record.ready.remove(&name);
        }
        self.launch(&name, host.lives + 1);
        self.comes_true("everybody is told again", |record| record.watched().is_some());
        let pause = self.record.lock().unwrap().watched().unwrap() - began;
        self.comes_true("it is back", |record| record.ready.contains(&name));
        self.rest(round);
        pause
    }

    /// Pauses the load until everybody has everything, and looks at the file.
    fn rest(&mut self, round: usize) {
        self.order(&format!("pause {round}"));
        let all = self.hosts.len();
        self.comes_true("all pause", |record| record.pausing(round) == all);
        let began = Instant::now();
        while !self.record.lock().unwrap().missing().is_empty() {
            let lost = began.elapsed() > PATIENCE;
            let seed = self.seed;
            assert!(!lost, "round {round}, seed {seed}: lost: {:?}", self.newest().missing());
            std::thread::sleep(LOOK);
        }
        let backwards = std::mem::take(&mut self.record.lock().unwrap().backwards);
        assert!(backwards.is_empty(), "round {round}, seed {}: {backwards:?}", self.seed);
        assert_sound(&self.scratch.connect());
        self.order("go");
    }

    fn newest(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    fn order(&mut self, word: &str) {
        for host in self.hosts.values_mut() {
            let stdin = host.process.stdin.as_mut().unwrap();
            stdin.write_all(format!("{word}\n").as_bytes()).unwrap();
        }
    }

    fn comes_true(&self, what: &str, is_true: impl Fn(&Record) -> bool) {
        let began = Instant::now();
        while !is_true(&self.newest()) {
            assert!(began.elapsed() < PATIENCE, "seed {}: not within time: {what}", self.seed);
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for host in self.hosts.values_mut() {
            drop(host.process.kill());
            drop(host.process.wait());
        }
    }
}
