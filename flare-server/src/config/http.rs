//! Takes `[http]`; gives where to listen, what to bear and whom to let in. Never shows a token.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize, de};

/// `[http]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Where to listen and what to bear.
    pub server: Server,
    /// Whom to let in.
    pub auth: Auth,
}

/// `[http.server]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Server {
    /// Address and port to listen on; port 0 takes any that is free.
    #[serde(deserialize_with = "address")]
    pub addr: SocketAddr,
    /// The longest a request may take, its body included.
    #[serde(with = "flare_core::model::duration")]
    pub timeout: Duration,
    /// The largest body that is read.
    #[serde(with = "flare_core::model::size")]
    pub body_limit: u64,
    /// Bytes of the bodies of all requests that are in memory at a time.
    #[serde(with = "flare_core::model::size")]
    pub bodies_limit: u64,
    /// Entries of a list whose request does not say `limit`.
    pub default_limit: u32,
    /// Most connections at a time; further ones wait to be accepted.
    pub connection_limit: u32,
    /// How long a request's head may take to arrive, and a connection may idle.
    #[serde(with = "flare_core::model::duration")]
    pub header_timeout: Duration,
    /// The largest head of a request.
    #[serde(with = "flare_core::model::size")]
    pub header_limit: u64,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            timeout: Duration::from_secs(30),
            body_limit: 1 << 20,
            bodies_limit: 64 << 20,
            default_limit: 30,
            connection_limit: 4_096,
            header_timeout: Duration::from_secs(10),
            header_limit: 32 << 10,
        }
    }
}

/// `[http.auth]`: without tokens everybody who reaches the port may do everything.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// Bearer tokens and what they allow.
    pub tokens: Vec<Token>,
}

/// An entry of `http.auth.tokens`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Who has it, for the log; `token-1` and so on by its place, if it does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What stands behind `Authorization: Bearer`.
    #[serde(with = "flare_core::model::secret")]
    pub token: SecretString,
    /// What it allows.
    pub scope: Scope,
}

/// What a token allows; each allows what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Read everything.
    Read,
    /// Put and delete documents; create, change and operate subscriptions.
    Write,
    /// Create and delete resources; operate the cluster.
    Admin,
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    struct Address;
    impl de::Visitor<'_> for Address {
        type Value = SocketAddr;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an IP address and port like \"127.0.0.1:8080\" or \"[::1]:8080\"")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<SocketAddr, E> {
            let wrong = |_| E::invalid_value(de::Unexpected::Str(text), &self);
            text.parse().map_err(wrong)
        }
    }
    deserializer.deserialize_str(Address)
}
