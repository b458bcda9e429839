//! Takes where the stores are; is one node of the cluster, until it is killed or its input ends.

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use flare_backend_etcd::{EtcdConfig, EtcdLease};
use flare_backend_mongo::{MongoBackend, MongoConfig};
use flare_core::Flare;
use flare_core::http::{Guard, HttpConfig, HttpDelivery};
use flare_core::port::{Delivery, DeliveryOutcome, DeliveryRequest, SystemClock};
use tokio::sync::oneshot;

use crate::world::{self, NODE_HEADER};

/// `chaos node NAME MONGODB DATABASE ETCD`.
pub fn main(arguments: &[&str]) -> ExitCode {
    let [name, mongodb, database, etcd] = arguments else {
        eprintln!("a node needs a name, MongoDB, a database and etcd");
        return ExitCode::from(2);
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match runtime.block_on(run(name, mongodb, database, etcd)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(
    name: &str,
    mongodb: &str,
    database: &str,
    etcd: &str,
) -> Result<(), flare_core::Error> {
    let mongo = MongoBackend::connect(MongoConfig::new(mongodb).database(database)).await?;
    let lease = EtcdLease::connect(EtcdConfig::new([etcd])).await?;
    let (_flare, runtime) = Flare::builder(mongo)
        .lease(Arc::new(lease))
        .settings(world::settings())
        .cluster(world::membership(name))
        .delivery(Arc::new(Named::new(name)?))
        .build()?;
    // It ends when the driver does, whatever becomes of that.
    let (end, ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(end);
    });
    runtime.run(async { drop(ended.await) }).await
}

/// Says on every request which node sent it.
#[derive(Debug)]
struct Named {
    name: String,
    http: HttpDelivery,
}

impl Named {
    fn new(name: &str) -> Result<Self, flare_core::Error> {
        let guard = Guard::default().allow("127.0.0.0/8").expect("it is one");
        let http = HttpConfig::new().guard(guard);
        let http = HttpDelivery::new(http, Arc::new(SystemClock::new()))?;
        Ok(Self { name: name.to_owned(), http })
    }
}

#[async_trait]
impl Delivery for Named {
    async fn attempt(&self, mut request: DeliveryRequest) -> DeliveryOutcome {
        request.headers.push((NODE_HEADER.into(), self.name.clone()));
        self.http.attempt(request).await
    }
}
