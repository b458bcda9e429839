//! Takes where the stores are; gives the nodes' processes, each behind a proxy of its own, and does to them
//! what operators and machines do.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use flare_testkit::{LinkMode, TcpLink};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::stores::Stores;

/// The database all of them use.
pub const DATABASE: &str = "chaos";

/// The processes that should be there.
pub struct Fleet {
    nodes: Vec<Node>,
    started: usize,
    mongodb: String,
    etcd: String,
    logs: PathBuf,
}

struct Node {
    name: String,
    process: Child,
    proxy: TcpLink,
}

impl Fleet {
    pub fn new(stores: &Stores) -> Self {
        let (mongodb, etcd) = (stores.mongodb.clone(), stores.etcd.clone());
        let logs = stores.directory().to_owned();
        Self { nodes: Vec::new(), started: 0, mongodb, etcd, logs }
    }

    /// Starts one more, under a name nobody had.
    pub async fn start(&mut self) {
        self.started += 1;
        let name = format!("node-{}", self.started);
        let proxy = TcpLink::to(&self.etcd).await;
        let log = File::create(self.log(&name)).unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["node", &name, &self.mongodb, DATABASE, &proxy.url()])
            // It ends with its input, so none outlives the driver.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        self.nodes.push(Node { name, process, proxy });
    }

    pub fn names(&self) -> BTreeSet<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// As a crash: nothing is finished, nothing said.
    pub async fn kill(&mut self, name: &str) {
        let at = self.nodes.iter().position(|node| node.name == name).unwrap();
        let mut node = self.nodes.remove(at);
        node.process.kill().await.unwrap();
    }

    /// As a machine that is suspended, or starved.
    pub fn freeze(&self, name: &str) {
        self.signal(name, Signal::STOP);
    }

    pub fn thaw(&self, name: &str) {
        self.signal(name, Signal::CONT);
    }

    /// What becomes of what it says to etcd.
    pub fn set_way_to_etcd(&self, name: &str, mode: LinkMode) {
        self.node(name).proxy.set(mode);
    }

    /// Tells which of them have ended without having been asked to.
    pub fn ended(&mut self) -> Vec<String> {
        let ended = |node: &mut Node| !matches!(node.process.try_wait(), Ok(None));
        self.nodes.iter_mut().filter_map(|node| ended(node).then(|| node.name.clone())).collect()
    }

    /// How often any node, dead ones too, was refused by the fence.
    pub fn refusals(&self) -> usize {
        let names = (1..=self.started).map(|number| format!("node-{number}"));
        let logs = names.filter_map(|name| std::fs::read_to_string(self.log(&name)).ok());
        logs.map(|log| log.matches("a later owner works this lane").count()).sum()
    }

    fn signal(&self, name: &str, signal: Signal) {
        let id = self.node(name).process.id().and_then(|id| i32::try_from(id).ok());
        kill_process(id.and_then(Pid::from_raw).unwrap(), signal).unwrap();
    }

    fn node(&self, name: &str) -> &Node {
        self.nodes.iter().find(|node| node.name == name).unwrap()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }
}
