//! Takes names; gives a process for each, which works as a node until it is killed or told to leave.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

/// What a node last said of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    pub(crate) lanes: u64,
    pub(crate) delivered: u64,
}

/// The processes by their names.
pub(crate) struct Processes {
    namespace: String,
    running: BTreeMap<String, Process>,
}

struct Process {
    child: Child,
    told: Arc<Mutex<Told>>,
}

impl Processes {
    pub(crate) fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), running: BTreeMap::new() }
    }

    /// Starts this very program as a node.
    pub(crate) fn start(&mut self, name: &str) -> io::Result<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["node", name, &self.namespace])
            // A node leaves when its input ends, so none outlives this program.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let told = Arc::<Mutex<Told>>::default();
        if let Some(output) = child.stdout.take() {
            tokio::spawn(listen(output, Arc::clone(&told)));
        }
        self.running.insert(name.to_owned(), Process { child, told });
        Ok(())
    }

    /// Kills one as a crash would; tells which process it was.
    pub(crate) async fn kill(&mut self, name: &str) -> io::Result<u32> {
        let Some(mut process) = self.running.remove(name) else {
            return Err(io::Error::other(format!("there is no node {name}")));
        };
        let id = process.child.id().unwrap_or_default();
        process.child.kill().await?;
        Ok(id)
    }

    /// Starts again what somebody else has killed.
    pub(crate) fn revive(&mut self) -> io::Result<()> {
        let mut dead = Vec::new();
        for (name, process) in &mut self.running {
            if process.child.try_wait()?.is_some() {
                dead.push(name.clone());
            }
        }
        dead.iter().try_for_each(|name| self.start(name))
    }

    /// Its process, and what it last said, if it runs.
    pub(crate) fn told(&self, name: &str) -> Option<(u32, Told)> {
        let process = self.running.get(name)?;
        let told = *process.told.lock().unwrap_or_else(PoisonError::into_inner);
        Some((process.child.id()?, told))
    }

    /// Has all of them hand over and leave.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        for process in self.running.values_mut() {
            drop(process.child.stdin.take());
        }
        for process in self.running.values_mut() {
            process.child.wait().await?;
        }
        Ok(())
    }
}

async fn listen(output: ChildStdout, told: Arc<Mutex<Told>>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Some((lanes, delivered)) = line.split_once(' ') else { continue };
        if let (Ok(lanes), Ok(delivered)) = (lanes.parse(), delivered.parse()) {
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Told { lanes, delivered };
        }
    }
}
