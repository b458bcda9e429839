//! Takes `[lease.etcd]`; gives where etcd is, who we are there and how long a lease lives. Never shows
//! a password.

use std::time::Duration;

use flare_core::cluster::ClusterSettings;
use flare_core::model::duration::format_duration;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::check::time;
use super::secret::{masked, secret};

/// `[lease.etcd]`. Texts that are empty mean: none, or the machine's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Etcd {
    /// The members: `http://…` or `https://…` each.
    pub endpoints: Vec<String>,
    /// How long a node that died keeps its work from others.
    #[serde(with = "flare_core::model::duration")]
    pub ttl: Duration,
    /// What all keys begin with.
    pub prefix: String,
    /// Who signs in, if anybody.
    pub username: String,
    /// With which password.
    #[serde(serialize_with = "masked", deserialize_with = "secret")]
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
    #[serde(with = "flare_core::model::duration")]
    pub timeout: Duration,
}

impl Default for Etcd {
    /// A member on this machine.
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            ttl: ClusterSettings::default().ttl,
            prefix: "flare/".to_owned(),
            username: String::new(),
            password: SecretString::default(),
            ca_file: String::new(),
            cert_file: String::new(),
            key_file: String::new(),
            domain: String::new(),
            timeout: Duration::from_secs(2),
        }
    }
}

impl Etcd {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let key = |key: &str| format!("lease.etcd.{key}");
        let refuse = |name: &str, reason: &str| Err(ConfigError::new(key(name), reason));
        if self.endpoints.is_empty() {
            return refuse("endpoints", "must name at least one member");
        }
        let is = |url: &str, scheme| url.strip_prefix(scheme).is_some_and(|it| !it.is_empty());
        let plain = |url: &String| is(url, "http://");
        let secure = |url: &String| is(url, "https://");
        if !self.endpoints.iter().all(|url| plain(url) || secure(url)) {
            return refuse("endpoints", "must begin with \"http://\" or \"https://\" each");
        }
        if self.endpoints.iter().any(&plain) && self.endpoints.iter().any(&secure) {
            return refuse("endpoints", "must be all http:// or all https://");
        }
        if self.endpoints.iter().any(|url| url.contains('@')) {
            return refuse("endpoints", "must not name a user: lease.etcd.username does");
        }
        if !self.prefix.ends_with('/') {
            return refuse("prefix", "must end with /");
        }
        let has_password = !self.password.expose_secret().is_empty();
        for ((given, has), (other, too)) in [
            (("username", !self.username.is_empty()), ("password", has_password)),
            (("password", has_password), ("username", !self.username.is_empty())),
            (("cert-file", !self.cert_file.is_empty()), ("key-file", !self.key_file.is_empty())),
            (("key-file", !self.key_file.is_empty()), ("cert-file", !self.cert_file.is_empty())),
        ] {
            if has && !too {
                return refuse(given, &format!("needs {}", key(other)));
            }
        }
        for (name, text) in
            [("ca-file", &self.ca_file), ("cert-file", &self.cert_file), ("domain", &self.domain)]
        {
            if !text.is_empty() && self.endpoints.iter().any(&plain) {
                return refuse(name, "has no effect: lease.etcd.endpoints are http://");
            }
        }
        time(&key("ttl"), self.ttl, Duration::from_secs(2), Duration::from_mins(10))?;
        time(&key("timeout"), self.timeout, Duration::from_millis(10), Duration::from_mins(1))?;
        // A holder that cannot reach anybody has to notice while its lease is still good.
        if self.timeout > self.ttl / 2 {
            let most = format_duration(self.ttl / 2);
            return refuse("timeout", &format!("must be at most half of lease.etcd.ttl, {most}"));
        }
        Ok(())
    }
}
