//! A server of a trial's own, which it may kill: no other loses the one it works on.

#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use flare_testkit::Service;

/// An SQS server that ends, with its data, when this does.
pub(crate) struct OwnServer {
    directory: PathBuf,
    pub(crate) endpoint: String,
}

impl OwnServer {
    pub(crate) async fn start(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut server = Self { directory, endpoint: String::new() };
        server.run("up").await;
        server.endpoint = server.address().await;
        server
    }

    /// Ends it, and all that was in it.
    pub(crate) async fn end(&self) {
        self.run("down").await;
    }

    /// Starts it again, empty, at the same address.
    pub(crate) async fn begin_empty(&self) {
        self.run("up").await;
        assert_eq!(self.address().await, self.endpoint);
    }

    async fn address(&self) -> String {
        // export FLARE_TEST_SQS_ENDPOINT='http://…'
        let exports = self.run("env").await;
        exports.split('\'').nth(1).unwrap().to_owned()
    }

    async fn run(&self, command: &'static str) -> String {
        let directory = self.directory.clone();
        tokio::task::spawn_blocking(move || services(&directory, command)).await.unwrap()
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        services(&self.directory, "down");
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

fn services(directory: &Path, command: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/services");
    let output = Command::new(script)
        .args([command, "sqs"])
        .env("FLARE_SERVICES_DIR", directory)
        .env_remove(Service::SQS.variable())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "services {command}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
