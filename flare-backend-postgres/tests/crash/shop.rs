//! A shop: a host that runs, the next one when it was killed, and all that they said of their transactions.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::change::{Change, Ended};
use crate::host;
use crate::process::{Process, Role};

/// What hosts have said so far.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// What the server told them is committed.
    pub(crate) committed: BTreeSet<Change>,
    /// How many of those are versions of orders, not removals.
    pub(crate) orders: i64,
    pub(crate) taken_back: i64,
}

pub(crate) struct Shop {
    role: Role,
    host: Process,
    said: Arc<Mutex<Said>>,
    readers: Vec<JoinHandle<()>>,
}

impl Shop {
    pub(crate) fn open(role: Role) -> Self {
        let said = Arc::default();
        let (host, lines) = start(&role);
        let readers = vec![read(lines, &said)];
        Self { role, host, said, readers }
    }

    /// Kills the host, wherever it is, and starts another that goes another way.
    pub(crate) fn kill(&mut self) {
        self.role.seed += 1;
        let _killed = self.host.0.kill();
        let lines;
        (self.host, lines) = start(&self.role);
        self.readers.push(read(lines, &self.said));
    }

    /// How many versions of orders are committed, as hosts know; starts one again that came to its end, as scripts do.
    pub(crate) fn orders(&mut self) -> i64 {
        if self.host.is_done() {
            self.kill();
        }
        self.said.lock().unwrap().orders
    }

    /// Kills the host; gives all that was said.
    pub(crate) fn close(self) -> Said {
        drop(self.host);
        for reader in self.readers {
            reader.join().unwrap();
        }
        Arc::into_inner(self.said).unwrap().into_inner().unwrap()
    }
}

fn start(role: &Role) -> (Process, ChildStdout) {
    if role.name != "psql" {
        return Process::start_heard(role);
    }
    let mut psql = Command::new("psql");
    psql.args(["-q", "-X", "-v", "ON_ERROR_STOP=1", &role.uri]).stdin(Stdio::piped());
    let (mut psql, lines) = Process::heard(&mut psql);
    let (mut pipe, script) = (psql.0.stdin.take().unwrap(), host::script(role));
    // What it does not take before it is killed nobody misses.
    std::thread::spawn(move || pipe.write_all(script.as_bytes()));
    (psql, lines)
}

fn read(lines: ChildStdout, said: &Arc<Mutex<Said>>) -> JoinHandle<()> {
    let said = Arc::clone(said);
    std::thread::spawn(move || {
        let (mut lines, mut line) = (BufReader::new(lines), String::new());
        // A line without its end was cut off by the kill.
        while lines.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
            let heard = Change::heard(&line);
            line.clear();
            let mut said = said.lock().unwrap();
            match heard {
                Some((Ended::Committed, change)) => {
                    said.orders += i64::from(!change.removed);
                    assert!(said.committed.insert(change), "committed twice: {change:?}");
                }
                Some((Ended::TakenBack, _)) => said.taken_back += 1,
                None => {}
            }
        }
    })
}
