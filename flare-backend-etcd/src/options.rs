//! Takes the settings; gives what etcd's client needs, its certificates read and checked.

use std::time::Duration;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use flare_core::model::Invalid;
use flare_core::{Error, ErrorKind, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::ExposeSecret;

use crate::{BACKEND, EtcdConfig};

/// How often a connection in use is tried; etcd closes those that try more than every 5 s.
const PING_EVERY: Duration = Duration::from_secs(10);

impl EtcdConfig {
    /// The same with what stands in its files, checked.
    pub(crate) fn read(mut self) -> Result<Self> {
        self.check().map_err(refused)?;
        if !self.ca_file.is_empty() {
            self = self.clone().authority(file("ca_file", &self.ca_file)?);
        }
        if !self.cert_file.is_empty() {
            let certificate = file("cert_file", &self.cert_file)?;
            self = self.clone().identity(certificate, file("key_file", &self.key_file)?);
        }
        self.check_pem().map_err(refused)?;
        Ok(self)
    }

    /// Refuses what is no PEM, by the file's setting if it is from one.
    pub(crate) fn check_pem(&self) -> Result<(), Invalid> {
        let named = |file: &str, key, other| if file.is_empty() { other } else { key };
        let refused = |field, reason| Err(Invalid::new(field, reason));
        if self.authority.as_ref().is_some_and(|pem| !has_certificates(pem)) {
            let field = named(&self.ca_file, "ca_file", "authority");
            return refused(field, "has no certificate in PEM");
        }
        if let Some((certificate, key)) = &self.identity {
            if !has_certificates(certificate) {
                let field = named(&self.cert_file, "cert_file", "identity");
                return refused(field, "has no certificate in PEM");
            }
            // The error underneath would show what stands in the text.
            if PrivateKeyDer::from_pem_slice(key.expose_secret()).is_err() {
                let field = named(&self.key_file, "key_file", "identity");
                return refused(field, "has no private key in PEM");
            }
        }
        Ok(())
    }

    /// The client's settings.
    pub(crate) fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new()
            // A member that has lost the others would answer with the past.
            .with_require_leader(true)
            .with_connect_timeout(self.per_member())
            // The clock decides first; this one cannot be set back.
            .with_timeout(self.timeout)
            .with_keep_alive(PING_EVERY, self.timeout)
            // etcd closes connections that are tried while nothing is asked.
            .with_keep_alive_while_idle(false)
            .with_auto_token_refresh(true);
        if !self.username.is_empty() {
            options = options.with_user(&self.username, self.password.expose_secret());
        }
        if self.is_secure() {
            options = options.with_tls(self.tls());
        }
        options
    }

    fn tls(&self) -> TlsOptions {
        let mut tls = match &self.authority {
            Some(pem) => TlsOptions::new().ca_certificate(Certificate::from_pem(pem)),
            None => TlsOptions::new().with_enabled_roots(),
        };
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(certificate, key.expose_secret()));
        }
        if !self.domain.is_empty() {
            tls = tls.domain_name(&self.domain);
        }
        tls
    }

    /// An error of connecting, with what may be behind it.
    pub(crate) fn explain(&self, error: Error) -> Error {
        // With TLS 1.3 a member that misses a certificate just closes the connection.
        let may_miss_one = self.is_secure() && self.identity.is_none();
        if error.kind() != ErrorKind::Unavailable || !may_miss_one {
            return error;
        }
        let detail = format!("{}; does it want a certificate (identity)?", error.detail());
        error.with_detail(detail)
    }
}

fn file(field: &'static str, path: &str) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        refused(Invalid::new(field, format!("cannot read {path}: {error}"))).with_source(error)
    })
}

fn has_certificates(pem: &[u8]) -> bool {
    let mut found = CertificateDer::pem_slice_iter(pem).peekable();
    found.peek().is_some() && found.all(|certificate| certificate.is_ok())
}

pub(crate) fn refused(invalid: Invalid) -> Error {
    Error::invalid("connect", invalid).with_backend(BACKEND)
}
