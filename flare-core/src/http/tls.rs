//! Takes PEM texts and the system's roots; gives how connections are secured. Installs nothing
//! process-wide: the crypto provider belongs to this client alone.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use secrecy::ExposeSecret;

use super::HttpConfig;
use super::client::refuse;
use super::sessions::WatchedSessions;
use crate::error::Error;
use crate::port::Clock;

/// The TLS settings of a client: TLS 1.2 and 1.3, HTTP/1.1, no early data. By that clock attempts are told when a
/// connection begins to be secured.
pub(super) fn settings(config: &HttpConfig, clock: Arc<dyn Clock>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse("roots_pem", "TLS cannot be set up").with_source(error))?
        .with_root_certificates(roots(config.roots_pem.as_deref())?);
    let mut settings = match &config.identity_pem {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let (chain, key) = identity(pem.expose_secret())?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                refuse("identity_pem", "certificate and key do not work together")
                    .with_source(error)
            })?
        }
    };
    settings.alpn_protocols = vec![b"http/1.1".to_vec()];
    settings.resumption = Resumption::store(Arc::new(WatchedSessions::new(clock)));
    Ok(settings)
}

/// The system's roots, as far as there are any, and the given ones. A machine without roots can
/// still deliver over plain HTTP, so that is no error here.
fn roots(pem: Option<&str>) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(pem) = pem {
        for certificate in certificates("roots_pem", pem)? {
            store.add(certificate).map_err(|error| {
                refuse("roots_pem", "has a certificate that cannot be a root").with_source(error)
            })?;
        }
    }
    Ok(store)
}

fn identity(pem: &str) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let chain = certificates("identity_pem", pem)?;
    // The error underneath would show what stands in the text.
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| refuse("identity_pem", "has no private key in PEM"))?;
    Ok((chain, key))
}

fn certificates(field: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(refuse(field, "has no certificate in PEM (-----BEGIN CERTIFICATE-----)")),
        Err(_) => Err(refuse(field, "is not PEM")),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;
    use crate::port::SystemClock;

    fn wrong(config: HttpConfig) -> String {
        settings(&config, Arc::new(SystemClock::new())).unwrap_err().to_string()
    }

    #[test]
    fn each_wrong_text_is_named() {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["client".to_owned()]).unwrap();
        let other = generate_simple_self_signed(["other".to_owned()]).unwrap();
        let cut = "-----BEGIN CERTIFICATE-----\nMIIB\n";
        let garbage = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        for (config, message) in [
            (HttpConfig::new().roots_pem("hello"), "roots_pem: has no certificate"),
            (HttpConfig::new().roots_pem(cut), "roots_pem: is not PEM"),
            (HttpConfig::new().roots_pem(garbage), "roots_pem: has a certificate that cannot"),
            (HttpConfig::new().identity_pem("hello"), "identity_pem: has no certificate"),
            (HttpConfig::new().identity_pem(cert.pem()), "identity_pem: has no private key"),
            (
                HttpConfig::new().identity_pem(signing_key.serialize_pem()),
                "identity_pem: has no certificate",
            ),
            (
                HttpConfig::new().identity_pem(cert.pem() + &other.signing_key.serialize_pem()),
                "identity_pem: certificate and key do not work together",
            ),
        ] {
            assert!(wrong(config).contains(message), "{message}");
        }
        let pem = cert.pem() + &signing_key.serialize_pem();
        let config = HttpConfig::new().roots_pem(cert.pem()).identity_pem(pem);
        settings(&config, Arc::new(SystemClock::new())).unwrap();
    }
}
