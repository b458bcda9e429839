//! Takes `[lease.etcd]`; gives leases on etcd, or says which key is wrong. Without the feature `etcd`
//! there are none: the configuration has been refused before.

use std::sync::Arc;

use flare_backend_etcd::EtcdConfig;
use flare_core::port::{Lease, Upkeep};

use crate::failure::Failure;

#[cfg(feature = "etcd")]
pub(crate) async fn lease(table: &EtcdConfig) -> Result<Arc<dyn Lease>, Failure> {
    let connected = flare_backend_etcd::EtcdLease::connect(table.clone()).await;
    Ok(Arc::new(connected.map_err(|error| refusal(&error))?))
}

#[cfg(feature = "etcd")]
pub(crate) async fn upkeep(table: &EtcdConfig) -> Result<Arc<dyn Upkeep>, Failure> {
    let connected = flare_backend_etcd::EtcdUpkeep::connect(table.clone()).await;
    Ok(Arc::new(connected.map_err(|error| refusal(&error))?))
}

/// Says why there is no connection, by the key if one is wrong.
#[cfg(feature = "etcd")]
fn refusal(error: &flare_core::Error) -> Failure {
    use flare_core::ErrorKind;

    match (error.kind(), error.field()) {
        (ErrorKind::Invalid, Some(field)) if error.detail().starts_with("cannot read") => {
            let key = field.replace('_', "-");
            Failure::usage(format!("lease.etcd.{key}: {}", error.detail()))
        }
        (ErrorKind::Invalid, Some(field)) => Failure::setting("lease.etcd", field, error.detail()),
        (ErrorKind::Unavailable | ErrorKind::Timeout, _) => Failure::new(format!(
            "cannot reach etcd (is it running? lease.etcd.endpoints say where): {error}"
        )),
        _ => Failure::new(format!("cannot use etcd as [lease.etcd] says: {error}")),
    }
}

#[cfg(not(feature = "etcd"))]
pub(crate) async fn lease(_table: &EtcdConfig) -> Result<Arc<dyn Lease>, Failure> {
    Err(missing())
}

#[cfg(not(feature = "etcd"))]
pub(crate) async fn upkeep(_table: &EtcdConfig) -> Result<Arc<dyn Upkeep>, Failure> {
    Err(missing())
}

#[cfg(not(feature = "etcd"))]
fn missing() -> Failure {
    Failure::usage("lease.engine is \"etcd\", and this program was built without it")
}
