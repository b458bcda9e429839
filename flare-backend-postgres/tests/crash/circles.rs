//! Hosts and Flare at the same documents, in processes of their own: no two of them ever wait for each other in a circle.

use std::time::Duration;

use flare_backend_postgres::PostgresBackend;
use flare_core::Flare;
use flare_core::port::{Clock, SystemClock};
use flare_core::prelude::*;
use flare_testkit::Trials;

use crate::contender;
use crate::process::{Process, Role};
use crate::support::{OwnDatabase, Scratch, deadlocks};

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("circles").test("ten_processes_never_wait_for_each_other_in_a_circle", ten)
}

const PROCESSES: u64 = 10;
/// Turns of all of them together.
const MANY: i64 = 1_200;

async fn ten(uri: String) {
    let database = OwnDatabase::new(&uri).await;
    let scratch = Scratch::new(&database.uri);
    // Before the port, which waits in haste, gives up and breaks a circle up by that.
    let sooner = format!("ALTER DATABASE {} SET deadlock_timeout = '50ms'", database.name);
    scratch.run(&sooner).await;
    {
        let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
        let (flare, runtime) = Flare::builder(backend).build().unwrap();
        runtime.unused();
        for pattern in ["orders/{id}", "{kind}/{id}"] {
            let resource = NewResource::new(format!("http://shop.example/{pattern}"));
            let resource = flare.create_resource(resource.change_field("rev")).await.unwrap();
            for client in ["a", "b"] {
                let spec = SubscriptionSpec::post(format!("http://{client}.example/{{id}}"));
                flare.create_subscription(resource.id, spec).await.unwrap();
            }
        }
    }
    scratch.run(contender::TURNS).await;
    let before = deadlocks(&scratch).await;
    let start = |seed| {
        Process::start(&Role {
            name: "contender".to_owned(),
            uri: scratch.uri.clone(),
            schema: scratch.name.clone(),
            seed,
            many: MANY,
            rest: 0,
        })
    };
    let mut processes: Vec<Process> = (0..PROCESSES).map(start).collect();
    while !processes.iter_mut().all(Process::is_done) {
        SystemClock::new().sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(deadlocks(&scratch).await, before, "the server's own count of deadlocks");
}
