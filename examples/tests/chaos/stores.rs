//! An etcd and a MongoDB of this run's own, started by the project's script: a developer's are left alone.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use flare_testkit::Service;

/// Both stores; they end, with their data, when this is dropped.
pub struct Stores {
    directory: PathBuf,
    kept: Cell<bool>,
    pub mongodb: String,
    pub etcd: String,
}

impl Stores {
    pub fn start() -> Self {
        let directory = std::env::temp_dir().join(format!("flare-chaos-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        // Made before anything is started, so that whatever was is ended.
        let (mongodb, etcd) = Default::default();
        let mut stores = Self { directory, kept: Cell::new(false), mongodb, etcd };
        stores.run(&["up", "mongodb", "etcd"]);
        stores.mongodb = stores.address("mongodb");
        stores.etcd = stores.address("etcd");
        stores
    }

    /// Where logs go.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Leaves what explains a failure; says where.
    pub fn keep_logs(&self) -> &Path {
        self.kept.set(true);
        &self.directory
    }

    /// Ends etcd as a crash would.
    pub async fn kill_etcd(&self) {
        self.run_aside(&["kill", "etcd"]).await;
    }

    /// Starts it again, on its data and port.
    pub async fn start_etcd(&self) {
        self.run_aside(&["start", "etcd"]).await;
    }

    /// export FLARE_TEST_…='address'
    fn address(&self, service: &str) -> String {
        self.run(&["env", service]).split('\'').nth(1).unwrap().to_owned()
    }

    async fn run_aside(&self, arguments: &'static [&'static str]) {
        let directory = self.directory.clone();
        tokio::task::spawn_blocking(move || services(&directory, arguments)).await.unwrap();
    }

    fn run(&self, arguments: &[&str]) -> String {
        services(&self.directory, arguments)
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        self.run(&["down"]);
        if !self.kept.get() && !std::thread::panicking() {
            std::fs::remove_dir_all(&self.directory).unwrap();
        }
    }
}

fn services(directory: &Path, arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/services");
    let output = Command::new(script)
        .args(arguments)
        .env("FLARE_SERVICES_DIR", directory)
        .env("FLARE_TEST_ETCD_NODES", "1")
        .env_remove(Service::ETCD.variable())
        .env_remove(Service::MONGODB.variable())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "services {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
