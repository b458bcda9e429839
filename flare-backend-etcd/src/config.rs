//! Where etcd is, who we are there and which keys are ours, or the setting of it that is wrong. Needs no client.

use std::fmt;
use std::time::Duration;

use flare_core::model::Invalid;
use secrecy::{ExposeSecret, SecretSlice, SecretString};

/// What keys begin with, unless [`EtcdConfig::prefix`] says otherwise.
const PREFIX: &str = "flare/";

/// How long a call may take, unless [`EtcdConfig::timeout`] says otherwise.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The longest a call may take: no wait of ours ends later, and sums with it stay within bounds.
const LONGEST_TIME: Duration = Duration::from_hours(24);

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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", deny_unknown_fields, default)
)]
#[must_use]
#[non_exhaustive]
pub struct EtcdConfig {
    /// The members: `http://…` or `https://…` each.
    pub endpoints: Vec<String>,
    /// What all keys begin with.
    pub prefix: String,
    /// Who signs in; empty for nobody.
    pub username: String,
    /// With which password.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::secret"))]
    pub password: SecretString,
    /// A PEM file of those who sign the members' certificates; empty for whom the machine trusts.
    pub ca_file: String,
    /// A PEM file of our own certificate, if the members want one.
    pub cert_file: String,
    /// A PEM file of its private key.
    pub key_file: String,
    /// The name in the members' certificates; empty for the host in their URLs.
    pub domain: String,
    /// How long a call may take, however many members it asks.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::duration"))]
    pub timeout: Duration,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) authority: Option<Vec<u8>>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) identity: Option<(Vec<u8>, SecretSlice<u8>)>,
    #[cfg_attr(feature = "serde", serde(skip))]
    member_timeout: Option<Duration>,
}

impl EtcdConfig {
    /// The cluster with members at these URLs (`http://` or `https://`). They are asked in this
    /// order until one answers, and then that one until it does not.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: PREFIX.to_owned(),
            username: String::new(),
            password: SecretString::default(),
            ca_file: String::new(),
            cert_file: String::new(),
            key_file: String::new(),
            domain: String::new(),
            timeout: TIMEOUT,
            authority: None,
            identity: None,
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
        self.username = name.into();
        self.password = SecretString::from(password.into());
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

    /// The same as [`authority`](Self::authority), from a file that is read when it connects.
    pub fn ca_file(mut self, path: impl Into<String>) -> Self {
        self.ca_file = path.into();
        self
    }

    /// The same as [`identity`](Self::identity), from two files that are read when it connects.
    pub fn identity_files(mut self, cert: impl Into<String>, key: impl Into<String>) -> Self {
        (self.cert_file, self.key_file) = (cert.into(), key.into());
        self
    }

    /// Expects this name in the members' certificates, instead of the host in their URLs.
    pub fn domain(mut self, name: impl Into<String>) -> Self {
        self.domain = name.into();
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

    pub(crate) fn is_secure(&self) -> bool {
        self.endpoints.iter().any(|url| url.starts_with("https://"))
    }

    /// Refuses settings that could not work, by their names.
    pub fn check(&self) -> Result<(), Invalid> {
        let refused = |field, reason| Err(Invalid::new(field, reason));
        if self.endpoints.is_empty() {
            return refused("endpoints", "must name at least one member");
        }
        for url in &self.endpoints {
            let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))
            else {
                let reason = "must begin with \"http://\" or \"https://\" each";
                return refused("endpoints", reason);
            };
            if rest.contains('@') {
                return refused("endpoints", "must not name a user: `username` does");
            }
            if rest.is_empty() || rest.contains(',') {
                return refused("endpoints", "must be one member's URL each");
            }
        }
        if self.is_secure() && self.endpoints.iter().any(|url| url.starts_with("http://")) {
            return refused("endpoints", "must be all http:// or all https://");
        }
        if !self.prefix.ends_with('/') {
            return refused("prefix", "must end with /");
        }
        let [username, cert, key] =
            [&self.username, &self.cert_file, &self.key_file].map(|text| !text.is_empty());
        let password = !self.password.expose_secret().is_empty();
        for (given, has, too, other) in [
            ("username", username, password, "needs `password`"),
            ("password", password, username, "needs `username`"),
            ("cert_file", cert, key, "needs `key_file`"),
            ("key_file", key, cert, "needs `cert_file`"),
        ] {
            if has && !too {
                return refused(given, other);
            }
        }
        let tls = [
            ("ca_file", !self.ca_file.is_empty()),
            ("cert_file", cert),
            ("authority", self.authority.is_some()),
            ("identity", self.identity.is_some()),
            ("domain", !self.domain.is_empty()),
        ];
        if let Some((field, _)) = tls.into_iter().find(|(_, set)| *set && !self.is_secure()) {
            return refused(field, "has no effect: `endpoints` are http://");
        }
        #[cfg(feature = "client")]
        self.check_pem()?;
        if self.timeout.is_zero() {
            return refused("timeout", "must be longer than nothing");
        }
        if self.timeout > LONGEST_TIME {
            return refused("timeout", "must be at most 24 h");
        }
        if self.per_member().is_zero() || self.per_member() > self.timeout {
            return refused("member_timeout", "must be within the time of a call");
        }
        Ok(())
    }
}

impl Default for EtcdConfig {
    /// A member on this machine.
    fn default() -> Self {
        Self::new(["http://127.0.0.1:2379"])
    }
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdConfig")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("username", &self.username)
            .field("timeout", &self.timeout)
            .field("member_timeout", &self.per_member())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "client"))]
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
            ("member_timeout", EtcdConfig::new(ONE).member_timeout(Duration::ZERO)),
            ("member_timeout", EtcdConfig::new(ONE).member_timeout(Duration::MAX)),
            ("member_timeout", EtcdConfig::new(ONE).member_timeout(TIMEOUT * 2)),
        ];
        for (field, config) in refusals {
            assert_eq!(config.check().unwrap_err().field(), field, "{config:?}");
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
