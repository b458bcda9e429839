//! Takes the name of a server that a consumer has named; gives those of its addresses that may be dialled, as the SDK's
//! client asks for them.

use std::net::IpAddr;

use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use flare_core::model::consumer::SourceEndpoints;
use flare_core::{Error, ErrorKind, Result};

use crate::BACKEND;

/// Looks names up by the system, and gives what passes: what is judged is what is dialled.
#[derive(Debug, Clone)]
struct GuardedNames(SourceEndpoints);

impl ResolveDns for GuardedNames {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        DnsFuture::new(async move { addresses(&self.0, name).await.map_err(ResolveDnsError::new) })
    }
}

/// The addresses of a name that pass; if none does, an error that says why.
pub(crate) async fn addresses(endpoints: &SourceEndpoints, name: &str) -> Result<Vec<IpAddr>> {
    let failed = |kind| Error::new(kind, "open").with_backend(BACKEND).with_field("endpoint");
    let found = tokio::net::lookup_host((name, 0)).await.map_err(|error| {
        let detail = format!("{name} cannot be looked up: {error}");
        failed(ErrorKind::Unavailable).with_detail(detail)
    })?;
    let passing = endpoints.passing(name, found.map(|it| it.ip()));
    passing.map_err(|reason| failed(ErrorKind::Invalid).with_detail(reason))
}

/// A client that dials only what passes. Addresses in the place of a name are judged with the settings.
pub(crate) fn client(endpoints: &SourceEndpoints) -> SharedHttpClient {
    Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_with_resolver(GuardedNames(endpoints.clone()))
}
