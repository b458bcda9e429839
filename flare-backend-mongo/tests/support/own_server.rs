//! A server of a trial's own, which it may kill: no other loses the one it works on.

#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use flare_testkit::Service;

/// A MongoDB that ends, with its data, when the last one who holds it does.
#[derive(Clone)]
pub(crate) struct OwnServer {
    place: Arc<Place>,
    pub(crate) uri: String,
}

impl OwnServer {
    pub(crate) async fn start(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let place = Arc::new(Place { directory });
        place.run("up").await;
        // export FLARE_TEST_MONGODB_URI='mongodb://…'
        let exports = place.run("env").await;
        let uri = exports.split('\'').nth(1).unwrap().to_owned();
        Self { place, uri }
    }

    /// Ends it as a crash would.
    pub(crate) async fn kill(&self) {
        self.place.run("kill").await;
    }

    /// Starts it again, on its data and port.
    pub(crate) async fn revive(&self) {
        self.place.run("start").await;
    }
}

/// Where the services script keeps it.
struct Place {
    directory: PathBuf,
}

impl Place {
    async fn run(&self, command: &'static str) -> String {
        let directory = self.directory.clone();
        tokio::task::spawn_blocking(move || services(&directory, command)).await.unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        services(&self.directory, "down");
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

fn services(directory: &Path, command: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/services");
    let output = Command::new(script)
        .args([command, "mongodb"])
        .env("FLARE_SERVICES_DIR", directory)
        .env_remove(Service::MONGODB.variable())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "services {command}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
