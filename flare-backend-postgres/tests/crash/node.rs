//! A node: delivers over HTTP until it is killed.

use std::time::Duration;

use flare_backend_postgres::{PostgresBackend, PostgresConfig};
use flare_core::Flare;
use flare_core::port::{Clock, SystemClock};

use crate::process::Role;

pub(crate) async fn run(role: Role) {
    let config = PostgresConfig::new(&role.uri).schema(&role.schema);
    let backend = loop {
        match PostgresBackend::connect(config.clone()).await {
            Ok(backend) => break backend,
            Err(error) => eprintln!("node: {error}"),
        }
        SystemClock::new().sleep(Duration::from_millis(200)).await;
    };
    let (_flare, runtime) = Flare::builder(backend).allow("127.0.0.0/8").build().unwrap();
    let running = runtime.spawn();
    std::future::pending::<()>().await;
    drop(running);
}
