//! Takes `[repository.mongodb]`, `[queue.mongodb]` and `[lease.mongodb]`; gives where MongoDB is and
//! how careful to be with it. Never shows a password, also not one in a URI.

use std::fmt;
use std::time::Duration;

use flare_core::port::Part;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::secret::{mask_uri, masked, masked_uri, secret};
use super::{Config, Engine, LeaseEngine, QueueEngine};

/// A table named `mongodb`.
///
/// Without a URI it stands for `[repository.mongodb]` as a whole, so that a server that has all in one
/// database says once where that is. Texts that are empty leave the word to the URI.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Mongo {
    /// The servers: `mongodb://…` or `mongodb+srv://…`.
    #[serde(serialize_with = "masked_uri", deserialize_with = "secret")]
    pub uri: SecretString,
    /// The database; empty for that of the URI, or `flare`.
    pub database: String,
    /// Who signs in; empty for whom the URI names, if anybody.
    pub username: String,
    /// With which password.
    #[serde(serialize_with = "masked", deserialize_with = "secret")]
    pub password: SecretString,
    /// The replica set it has to be; empty for what the URI says.
    pub replica_set: String,
    /// Most connections per server for repository and queue, and as many again, up to 9, for leases; 0
    /// for what the URI says, or the driver's 10.
    pub pool_limit: u32,
    /// How long a call may take, waiting for a server included.
    #[serde(with = "flare_core::model::duration")]
    pub timeout: Duration,
    /// How many members must have a write before it counts as stored.
    pub writes: Writes,
    /// What reads may see.
    pub reads: Reads,
    /// How often queue and leases look for news where there are no change streams.
    #[serde(with = "flare_core::model::duration")]
    pub poll_every: Duration,
}

impl Mongo {
    /// A table that stands for `[repository.mongodb]`.
    pub fn inherited() -> Self {
        Self { uri: SecretString::default(), ..Self::default() }
    }

    /// Whether it stands for `[repository.mongodb]`.
    pub fn is_inherited(&self) -> bool {
        self.uri.expose_secret().is_empty()
    }

    /// Whether there is something in the URI that must not be shown.
    pub fn uri_has_secrets(&self) -> bool {
        mask_uri(self.uri.expose_secret()) != self.uri.expose_secret()
    }

    /// Whether the URI says who signs in.
    pub(super) fn uri_has_user(&self) -> bool {
        self.uri.expose_secret().contains('@')
    }
}

impl Default for Mongo {
    /// A server on this machine.
    fn default() -> Self {
        Self {
            uri: SecretString::from("mongodb://127.0.0.1:27017"),
            database: String::new(),
            username: String::new(),
            password: SecretString::default(),
            replica_set: String::new(),
            pool_limit: 0,
            timeout: Duration::from_secs(10),
            writes: Writes::Majority,
            reads: Reads::Majority,
            poll_every: Duration::from_millis(100),
        }
    }
}

impl PartialEq for Mongo {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            uri,
            database,
            username,
            password,
            replica_set,
            pool_limit,
            timeout,
            writes,
            reads,
            poll_every,
        } = self;
        uri.expose_secret() == other.uri.expose_secret()
            && password.expose_secret() == other.password.expose_secret()
            && (database, username, replica_set)
                == (&other.database, &other.username, &other.replica_set)
            && (pool_limit, timeout, writes, reads, poll_every)
                == (
                    &other.pool_limit,
                    &other.timeout,
                    &other.writes,
                    &other.reads,
                    &other.poll_every,
                )
    }
}

impl Config {
    /// The MongoDB that has this part, if one has.
    pub fn mongodb(&self, part: Part) -> Option<&Mongo> {
        self.mongodb_table(part).map(|(_, table)| table)
    }

    /// The same, with the name of its table.
    pub fn mongodb_table(&self, part: Part) -> Option<(&'static str, &Mongo)> {
        let Self { repository, queue, lease, .. } = self;
        let (used, name, own) = match part {
            Part::Repository => {
                let used = repository.engine == Engine::MongoDb;
                (used, "repository.mongodb", &repository.mongodb)
            }
            Part::Queue => (queue.engine == QueueEngine::MongoDb, "queue.mongodb", &queue.mongodb),
            _ => (lease.engine == LeaseEngine::MongoDb, "lease.mongodb", &lease.mongodb),
        };
        let table = match own.is_inherited() {
            true => ("repository.mongodb", &self.repository.mongodb),
            false => (name, own),
        };
        used.then_some(table)
    }
}

/// How many members must have a write before it counts as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// Most of them: survives the loss of any minority.
    Majority,
    /// This many.
    Members(u32),
}

impl Serialize for Writes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Majority => serializer.serialize_str("majority"),
            Self::Members(members) => serializer.serialize_u32(*members),
        }
    }
}

impl<'de> Deserialize<'de> for Writes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Writes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"majority\" or a number of members from 1 on")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Writes, E> {
                let members = u32::try_from(number).ok().filter(|members| *members > 0);
                let wrong = || E::invalid_value(de::Unexpected::Signed(number), &self);
                members.map(Writes::Members).ok_or_else(wrong)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Writes, E> {
                // The environment has no numbers.
                match text.parse() {
                    Ok(number) => self.visit_i64(number),
                    Err(_) if text == "majority" => Ok(Writes::Majority),
                    Err(_) => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// What reads may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reads {
    /// Only what most members have.
    Majority,
    /// What the primary has, even if it could still be rolled back.
    Local,
    /// As `Majority`, and the primary makes sure that it still is one. Slow.
    Linearizable,
}
