//! A cluster of a trial's own, whose members it may kill: no other loses the one it works on.

#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use etcd_client::Client;
use flare_testkit::Service;

use super::unique;

/// An etcd of one or three members that ends, with its data, when the last one who holds it does.
#[derive(Clone)]
pub(crate) struct OwnCluster {
    place: Arc<Place>,
    pub(crate) endpoints: Vec<String>,
}

impl OwnCluster {
    pub(crate) async fn start(members: usize) -> Self {
        let directory = std::env::temp_dir().join(unique("etcd"));
        std::fs::create_dir_all(&directory).unwrap();
        let place = Arc::new(Place { directory, members });
        place.run("up", "etcd").await;
        // export FLARE_TEST_ETCD_ENDPOINTS='http://…,http://…'
        let exports = place.run("env", "etcd").await;
        let endpoints = exports.split('\'').nth(1).unwrap().split(',').map(str::to_owned).collect();
        Self { place, endpoints }
    }

    /// Ends a member as a crash would.
    pub(crate) async fn kill(&self, member: usize) {
        self.place.run("kill", &self.name(member)).await;
    }

    /// Starts it again, on its data and port.
    pub(crate) async fn revive(&self, member: usize) {
        self.place.run("start", &self.name(member)).await;
    }

    /// Starts it again, on its port and without its data.
    pub(crate) async fn lose_everything(&self) {
        self.place.run("down", "etcd").await;
        self.place.run("up", "etcd").await;
    }

    /// Which member leads; there may be an election.
    pub(crate) async fn leader(&self) -> usize {
        loop {
            for (member, url) in self.endpoints.iter().enumerate() {
                let mut client = Client::connect([url], None).await.unwrap();
                let Ok(status) = client.status().await else { continue };
                let itself = status.header().map(|header| header.member_id());
                if status.leader() != 0 && Some(status.leader()) == itself {
                    return member;
                }
            }
            tokio::task::yield_now().await;
        }
    }

    fn name(&self, member: usize) -> String {
        if self.endpoints.len() == 1 { "etcd".to_owned() } else { format!("etcd{}", member + 1) }
    }
}

/// Where the services script keeps it.
struct Place {
    directory: PathBuf,
    members: usize,
}

impl Place {
    async fn run(&self, command: &'static str, name: &str) -> String {
        let (directory, members) = (self.directory.clone(), self.members);
        let name = name.to_owned();
        let run = move || services(&directory, members, command, &name);
        tokio::task::spawn_blocking(run).await.unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        services(&self.directory, self.members, "down", "etcd");
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

fn services(directory: &Path, members: usize, command: &str, name: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/services");
    let output = Command::new(script)
        .args([command, name])
        .env("FLARE_SERVICES_DIR", directory)
        .env("FLARE_TEST_ETCD_NODES", members.to_string())
        .env_remove(Service::ETCD.variable())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "services {command} {name}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
