//! Takes `[lease.etcd]`; gives leases on etcd, or says which key is wrong. Without the feature `etcd`
//! there are none: the configuration has been refused before.

use std::sync::Arc;

use flare_core::port::{Lease, Upkeep};

use crate::config::Etcd;
use crate::failure::Failure;

#[cfg(feature = "etcd")]
pub(crate) async fn lease(table: &Etcd) -> Result<Arc<dyn Lease>, Failure> {
    let connected = flare_backend_etcd::EtcdLease::connect(config(table)?).await;
    Ok(Arc::new(connected.map_err(|error| refusal(&error))?))
}

#[cfg(feature = "etcd")]
pub(crate) async fn upkeep(table: &Etcd) -> Result<Arc<dyn Upkeep>, Failure> {
    let connected = flare_backend_etcd::EtcdUpkeep::connect(config(table)?).await;
    Ok(Arc::new(connected.map_err(|error| refusal(&error))?))
}

#[cfg(feature = "etcd")]
fn config(table: &Etcd) -> Result<flare_backend_etcd::EtcdConfig, Failure> {
    use secrecy::ExposeSecret;

    let mut config = flare_backend_etcd::EtcdConfig::new(table.endpoints.iter().cloned())
        .prefix(&table.prefix)
        .timeout(table.timeout);
    if !table.username.is_empty() {
        config = config.user(&table.username, table.password.expose_secret());
    }
    if !table.ca_file.is_empty() {
        config = config.authority(read("ca-file", &table.ca_file)?);
    }
    if !table.cert_file.is_empty() {
        let certificate = read("cert-file", &table.cert_file)?;
        config = config.identity(certificate, read("key-file", &table.key_file)?);
    }
    if !table.domain.is_empty() {
        config = config.domain(&table.domain);
    }
    Ok(config)
}

#[cfg(feature = "etcd")]
fn read(key: &str, path: &str) -> Result<Vec<u8>, Failure> {
    let refused = |error| Failure::usage(format!("lease.etcd.{key}: cannot read {path}: {error}"));
    std::fs::read(path).map_err(refused)
}

/// Says why there is no connection, by the key if one is wrong.
#[cfg(feature = "etcd")]
fn refusal(error: &flare_core::Error) -> Failure {
    use flare_core::ErrorKind;

    match (error.kind(), error.field()) {
        (ErrorKind::Invalid, Some(field)) => {
            let key = match field {
                "authority" => "ca-file",
                "identity" => "cert-file",
                other => other,
            };
            Failure::usage(format!("lease.etcd.{key} {}", error.detail()))
        }
        (ErrorKind::Unavailable | ErrorKind::Timeout, _) => Failure::new(format!(
            "cannot reach etcd (is it running? lease.etcd.endpoints say where): {error}"
        )),
        _ => Failure::new(format!("cannot use etcd as [lease.etcd] says: {error}")),
    }
}

#[cfg(not(feature = "etcd"))]
pub(crate) async fn lease(_table: &Etcd) -> Result<Arc<dyn Lease>, Failure> {
    Err(missing())
}

#[cfg(not(feature = "etcd"))]
pub(crate) async fn upkeep(_table: &Etcd) -> Result<Arc<dyn Upkeep>, Failure> {
    Err(missing())
}

#[cfg(not(feature = "etcd"))]
fn missing() -> Failure {
    Failure::usage("lease.engine is \"etcd\", and this program was built without it")
}
