//! A broker of a trial's own, which it may kill: no other loses the one it works on.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use flare_testkit::Service;

/// A RabbitMQ that ends, with its data, when this does.
pub(crate) struct OwnBroker {
    directory: PathBuf,
    pub(crate) uri: String,
}

impl OwnBroker {
    pub(crate) async fn start(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut broker = Self { directory, uri: String::new() };
        broker.run("up").await;
        // export FLARE_TEST_RABBITMQ_URI='amqp://…'
        broker.uri = broker.run("env").await.split('\'').nth(1).unwrap().to_owned();
        broker
    }

    /// Runs `kill` or `start`: a crash, and the end of it.
    pub(crate) async fn run(&self, command: &'static str) -> String {
        let directory = self.directory.clone();
        tokio::task::spawn_blocking(move || services(&directory, command)).await.unwrap()
    }
}

impl Drop for OwnBroker {
    fn drop(&mut self) {
        services(&self.directory, "down");
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

fn services(directory: &Path, command: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/services");
    let output = Command::new(script)
        .args([command, "rabbitmq"])
        .env("FLARE_SERVICES_DIR", directory)
        // Beside everything else that is tested.
        .env("FLARE_SERVICES_TIMEOUT", "300")
        .env_remove(Service::RABBITMQ.variable())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "services {command}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
