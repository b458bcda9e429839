//! An HTTP client of the program's own: for what it asks another server, and what it sends to a collector.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use rustls::{ClientConfig, RootCertStore};

use crate::failure::Failure;

/// A client that asks the server itself: no proxies, no redirects.
pub(crate) fn new(timeout: Duration) -> Result<Client, Failure> {
    let failed = |error: rustls::Error| Failure::because("cannot set up TLS", error);
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(timeout)
        .tls_backend_preconfigured(tls);
    client.build().map_err(|error| Failure::because("cannot set up an HTTP client", error))
}
