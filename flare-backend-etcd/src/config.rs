//! Takes where etcd is and who we are there; gives what the client needs, or the setting that is
//! wrong.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use flare_core::{Error, ErrorKind, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::{ExposeSecret, SecretSlice, SecretString};

use crate::BACKEND;

/// What keys begin with, unless [`EtcdConfig::prefix`] says otherwise.
const PREFIX: &str = "flare/";

/// How long a call may take, unless [`EtcdConfig::timeout`] says otherwise.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The longest a call may take: no wait of ours ends later, and sums with it stay within bounds.
const LONGEST_TIME: Duration = Duration::from_hours(24);

/// How often a connection in use is tried; etcd closes those that try more than every 5 s.
const PING_EVERY: Duration = Duration::from_secs(10);

/// Into how many parts the time of a call is cut at most, one for each member it may ask.
const MOST_PARTS: usize = 3;

/// How to reach etcd, and which keys there are ours.
///
/// ```
/// use std::time::Duration;
/// use flare_backend_etcd::EtcdConfig;
///
/// let local = EtcdConfig::new(["http://127.0.0.1:2379"]);
/// let cluster = EtcdConfig::new(["https://etcd-1:2379", "https://etcd-2:2379", "https://etcd-3:2379"])
///     .prefix("orders/flare/")
///     .user("flare", "secret")
///     .timeout(Duration::from_secs(1));
/// ```
#[derive(Clone)]
#[must_use]
pub struct EtcdConfig {
    pub(crate) endpoints: Vec<String>,
    pub(crate) prefix: String,
    user: Option<(String, SecretString)>,
    authority: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, SecretSlice<u8>)>,
    domain: Option<String>,
    pub(crate) timeout: Duration,
    member_timeout: Option<Duration>,
}

impl EtcdConfig {
    /// The cluster with members at these URLs (`http://` or `https://`). They are asked in this
    /// order until one answers, and then that one until it does not.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: PREFIX.to_owned(),
            user: None,
            authority: None,
            identity: None,
            domain: None,
            timeout: TIMEOUT,
            member_timeout: None,
        }
    }

    /// Puts all keys under this prefix (`flare/`), which ends with `/`. Two Flares on one cluster
    /// need two prefixes, neither of which begins with the other.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Signs in as this user.
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), SecretString::from(password.into())));
        self
    }

    /// Trusts members whose certificates these authorities signed, in PEM, instead of those that
    /// the machine trusts.
    pub fn authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authority = Some(pem.into());
        self
    }

    /// Shows members this certificate, with its private key, both in PEM.
    pub fn identity(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.identity = Some((certificate.into(), SecretSlice::from(key.into())));
        self
    }

    /// Expects this name in the members' certificates, instead of the host in their URLs.
    pub fn domain(mut self, name: impl Into<String>) -> Self {
        self.domain = Some(name.into());
        self
    }

    /// How long a call may take, however many members it asks (2 s). To be well below the time to
    /// live of a lease: a holder has to notice that it cannot keep it.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long one member may take before another is asked (the time of a call, divided by the
    /// number of members, at most by 3).
    pub fn member_timeout(mut self, timeout: Duration) -> Self {
        self.member_timeout = Some(timeout);
        self
    }

    /// How long one member may take.
    pub(crate) fn per_member(&self) -> Duration {
        let parts = self.endpoints.len().clamp(1, MOST_PARTS);
        let share = self.timeout / u32::try_from(parts).unwrap_or(1);
        self.member_timeout.unwrap_or(share)
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
        if let Some((name, password)) = &self.user {
            options = options.with_user(name, password.expose_secret());
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
        if let Some(name) = &self.domain {
            tls = tls.domain_name(name);
        }
        tls
    }

    fn is_secure(&self) -> bool {
        self.endpoints.iter().any(|url| url.starts_with("https://"))
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

    /// Whether the settings make sense, each and together.
    pub(crate) fn check(&self) -> Result<()> {
        if self.endpoints.is_empty() {
            return Err(refused("endpoints", "must name at least one member"));
        }
        for url in &self.endpoints {
            let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))
            else {
                return Err(refused("endpoints", "must be http:// or https:// URLs"));
            };
            if rest.contains('@') {
                return Err(refused("endpoints", "must not name a user: that is a setting itself"));
            }
            if rest.is_empty() || rest.contains(',') {
                return Err(refused("endpoints", "must be one member's URL each"));
            }
        }
        if self.is_secure() && self.endpoints.iter().any(|url| url.starts_with("http://")) {
            return Err(refused("endpoints", "must be all http:// or all https://"));
        }
        let tls = [
            ("authority", self.authority.is_some()),
            ("identity", self.identity.is_some()),
            ("domain", self.domain.is_some()),
        ];
        if let Some((field, _)) = tls.into_iter().find(|(_, set)| *set && !self.is_secure()) {
            return Err(refused(field, "has no effect on http:// endpoints"));
        }
        if self.authority.as_ref().is_some_and(|pem| !has_certificates(pem)) {
            return Err(refused("authority", "has no certificate in PEM"));
        }
        if let Some((certificate, key)) = &self.identity {
            if !has_certificates(certificate) {
                return Err(refused("identity", "has no certificate in PEM"));
            }
            // The error underneath would show what stands in the text.
            if PrivateKeyDer::from_pem_slice(key.expose_secret()).is_err() {
                return Err(refused("identity", "has no private key in PEM"));
            }
        }
        if !self.prefix.ends_with('/') {
            return Err(refused("prefix", "must end with /"));
        }
        if self.timeout.is_zero() {
            return Err(refused("timeout", "must be longer than nothing"));
        }
        if self.timeout > LONGEST_TIME {
            return Err(refused("timeout", "must be at most 24 h"));
        }
        if self.per_member().is_zero() || self.per_member() > self.timeout {
            return Err(refused("member-timeout", "must be within the time of a call"));
        }
        Ok(())
    }
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdConfig")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("timeout", &self.timeout)
            .field("member_timeout", &self.per_member())
            .finish_non_exhaustive()
    }
}

fn has_certificates(pem: &[u8]) -> bool {
    let mut found = CertificateDer::pem_slice_iter(pem).peekable();
    found.peek().is_some() && found.all(|certificate| certificate.is_ok())
}

pub(crate) fn refused(field: &'static str, reason: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Invalid, "connect")
        .with_backend(BACKEND)
        .with_field(field)
        .with_detail(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [&str; 1] = ["http://127.0.0.1:2379"];
    const SECURE: [&str; 1] = ["https://127.0.0.1:2379"];

    #[test]
    fn a_wrong_setting_is_named() {
        let none: [&str; 0] = [];
        let refusals = [
            ("endpoints", EtcdConfig::new(none)),
            ("endpoints", EtcdConfig::new(["127.0.0.1:2379"])),
            ("endpoints", EtcdConfig::new(["http://"])),
            ("endpoints", EtcdConfig::new(["http://a:2379,http://b:2379"])),
            ("endpoints", EtcdConfig::new(["http://me:hush@a:2379"])),
            ("endpoints", EtcdConfig::new(["http://a:2379", "https://b:2379"])),
            ("prefix", EtcdConfig::new(ONE).prefix("")),
            ("prefix", EtcdConfig::new(ONE).prefix("flare")),
            ("authority", EtcdConfig::new(ONE).authority("pem")),
            ("identity", EtcdConfig::new(ONE).identity("pem", "pem")),
            ("domain", EtcdConfig::new(ONE).domain("etcd")),
            ("authority", EtcdConfig::new(SECURE).authority("no PEM")),
            ("identity", EtcdConfig::new(SECURE).identity("no PEM", "no PEM")),
            ("timeout", EtcdConfig::new(ONE).timeout(Duration::ZERO)),
            ("timeout", EtcdConfig::new(ONE).timeout(Duration::MAX)),
            ("member-timeout", EtcdConfig::new(ONE).member_timeout(Duration::ZERO)),
            ("member-timeout", EtcdConfig::new(ONE).member_timeout(Duration::MAX)),
            ("member-timeout", EtcdConfig::new(ONE).member_timeout(TIMEOUT * 2)),
        ];
        for (field, config) in refusals {
            let error = config.check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{config:?}");
            assert_eq!(error.field(), Some(field), "{config:?}");
        }
        EtcdConfig::new(ONE).check().unwrap();
        EtcdConfig::new(SECURE).domain("etcd").prefix("/").check().unwrap();
    }

    #[test]
    fn members_share_the_time_of_a_call() {
        let of = |count: usize| EtcdConfig::new(vec!["http://a:1"; count]).per_member();
        assert_eq!([of(1), of(2), of(3), of(5)], [2000, 1000, 666, 666].map(about));
        let set = EtcdConfig::new(ONE).member_timeout(Duration::from_millis(300));
        assert_eq!(set.per_member(), Duration::from_millis(300));
    }

    fn about(millis: u64) -> Duration {
        if millis == 666 { TIMEOUT / 3 } else { Duration::from_millis(millis) }
    }

    #[test]
    fn secrets_are_not_shown() {
        let config = EtcdConfig::new(SECURE).user("flare", "hush");
        let shown = format!("{:?}", config.identity("certificate", "hush"));
        assert!(!shown.contains("hush") && shown.contains("flare"), "{shown}");
    }
}
