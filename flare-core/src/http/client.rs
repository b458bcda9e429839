//! Takes the settings; gives the one reqwest client behind a delivery, with everything switched
//! off that would send a second request or somewhere else.

use std::sync::Arc;

use reqwest::{Client, Proxy, Url, redirect, retry};
use secrecy::ExposeSecret;

use super::deadline::DeadlineLayer;
use super::resolver::GuardedResolver;
use super::{HttpConfig, Resolver, tls};
use crate::error::{Error, ErrorKind};
use crate::model::{Invalid, duration};
use crate::port::Clock;

const OPERATION: &str = "http_delivery";

pub(super) fn build(
    config: &HttpConfig,
    clock: Arc<dyn Clock>,
    resolver: Arc<dyn Resolver>,
) -> Result<Client, Error> {
    let timeout = |field, value| {
        duration::checked_positive(value).map_err(|wrong: Invalid| {
            Error::invalid(OPERATION, Invalid::new(field, wrong.reason().to_owned()))
        })
    };
    let connect_timeout = timeout("connect_timeout", config.connect_timeout)?;
    let proxy = config.proxy.as_ref().map(|url| proxy(url.expose_secret())).transpose()?;
    // Behind a proxy only the proxy's own name is ever looked up, and that is the operator's.
    let guard = proxy.is_none().then(|| config.guard.clone());
    let builder = Client::builder()
        .user_agent(concat!("flare/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .http1_only()
        .no_proxy()
        .pool_idle_timeout(timeout("idle_timeout", config.idle_timeout)?)
        .pool_max_idle_per_host(config.idle_per_host)
        .dns_resolver(Arc::new(GuardedResolver::new(resolver, guard, Arc::clone(&clock))))
        .connector_layer(DeadlineLayer::new(Arc::clone(&clock), connect_timeout))
        .tls_backend_preconfigured(tls::settings(config, clock)?);
    let builder = match proxy {
        Some(proxy) => builder.proxy(proxy),
        None => builder,
    };
    builder.build().map_err(|error| {
        Error::new(ErrorKind::Internal, OPERATION)
            .with_detail("the HTTP client cannot be set up")
            .with_source(error.without_url())
    })
}

fn proxy(text: &str) -> Result<Proxy, Error> {
    // Neither the text nor an error that may quote it: the URL can carry a password.
    let url = Url::parse(text).map_err(|_| refuse("proxy", "is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("proxy", "must be an http or https URL"));
    }
    Proxy::all(url).map_err(|_| refuse("proxy", "cannot be used as a proxy"))
}

/// A refused setting.
pub(super) fn refuse(field: &'static str, reason: &'static str) -> Error {
    Error::invalid(OPERATION, Invalid::new(field, reason))
}
