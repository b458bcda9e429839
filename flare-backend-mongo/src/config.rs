//! Takes where the database is and how careful to be with it; gives what the driver needs, or the
//! setting that is wrong.

use std::time::Duration;

use flare_core::model::Invalid;
use flare_core::model::secret::mask_uri;
use flare_core::{Error, Result};
use mongodb::options::{
    Acknowledgment, ClientOptions, Credential, ReadConcern, ReadPreference, SelectionCriteria,
    WriteConcern,
};
use secrecy::{ExposeSecret, SecretString};

use crate::{BACKEND, Commands};

/// The database, unless the URI or [`MongoConfig::database`] names another.
const DATABASE: &str = "flare";

/// The longest a call or a pause may take: the driver's and the server's sums with it stay within bounds.
const LONGEST_TIME: Duration = Duration::from_hours(24);

/// How to reach MongoDB, and how careful to be with what is kept there.
///
/// ```
/// use std::time::Duration;
/// use flare_backend_mongo::MongoConfig;
///
/// let config = MongoConfig::new("mongodb://db-1,db-2,db-3/?replicaSet=rs0")
///     .database("orders")
///     .timeout(Duration::from_secs(5));
/// ```
#[derive(Debug, Clone)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", deny_unknown_fields, default)
)]
#[must_use]
#[non_exhaustive]
pub struct MongoConfig {
    /// The servers: `mongodb://…` or `mongodb+srv://…`.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::secret::uri"))]
    pub uri: SecretString,
    /// The database; empty for that of the URI, or `flare`.
    pub database: String,
    /// Who signs in; empty for whom the URI names, if anybody.
    pub username: String,
    /// With which password.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::secret"))]
    pub password: SecretString,
    /// The replica set it has to be; empty for what the URI says.
    pub replica_set: String,
    /// Most connections per server for repository and queue; 0 for what the URI says, or the driver's 10.
    pub pool_limit: u32,
    /// How long a call may take, waiting for a server included.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::duration"))]
    pub timeout: Duration,
    /// How many members must have a write before it counts as stored.
    pub writes: Writes,
    /// What reads may see.
    pub reads: Reads,
    /// How often queue and leases look for what other processes did and what is due.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::duration"))]
    pub poll_every: Duration,
    #[cfg_attr(feature = "serde", serde(skip))]
    read_from: ReadFrom,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) create_missing: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) single_writes: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    commands: Option<Commands>,
}

/// How many members must have a write before it counts as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Writes {
    /// Most members, journaled: survives the loss of any minority. The default.
    Majority,
    /// This many members, journaled. Fewer than most may lose what was accepted.
    Members(u32),
}

/// What reads may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum Reads {
    /// Only what most members have, read from the primary. The default.
    Majority,
    /// What the primary has, even if it could still be rolled back.
    Local,
    /// As `Majority`, and the primary makes sure that it still is one. Slow.
    Linearizable,
}

/// Which member is read from. Rows, documents and members of partitions are read right after they were
/// written, and Flare decides by them: a member that does not have them yet loses changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadFrom {
    /// The primary, and nobody while there is none. The default, and the only one that keeps every
    /// promise.
    Primary,
    /// A secondary while there is no primary: reads go on during a fail-over, and what was accepted
    /// just before it may not be told to a subscription just created.
    PrimaryPreferred,
}

impl MongoConfig {
    /// The database server, or servers, at a `mongodb://` or `mongodb+srv://` URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: SecretString::from(uri.into()),
            database: String::new(),
            username: String::new(),
            password: SecretString::default(),
            replica_set: String::new(),
            pool_limit: 0,
            timeout: Duration::from_secs(10),
            writes: Writes::Majority,
            reads: Reads::Majority,
            poll_every: Duration::from_millis(100),
            read_from: ReadFrom::Primary,
            create_missing: false,
            single_writes: false,
            commands: None,
        }
    }

    /// Uses this database instead of the one in the URI (or `flare`).
    pub fn database(mut self, name: impl Into<String>) -> Self {
        self.database = name.into();
        self
    }

    /// Signs in as this user, instead of the one in the URI.
    pub fn credentials(mut self, username: impl Into<String>, password: impl Into<String>) -> Self {
        self.username = username.into();
        self.password = SecretString::from(password.into());
        self
    }

    /// Insists on this replica set.
    pub fn replica_set(mut self, name: impl Into<String>) -> Self {
        self.replica_set = name.into();
        self
    }

    /// At most this many connections per server (10; 0 for what the URI says) for repository and queue, which share them in a
    /// [`MongoBackend`](crate::MongoBackend): puts and work take turns, and each leaves the other at
    /// least one. Leases have as many again, but at most 9, that nothing else uses.
    pub fn pool_limit(mut self, connections: u32) -> Self {
        self.pool_limit = connections;
        self
    }

    /// How long a call may take, waiting for a server included (10 s).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many members must have a write before it counts as stored.
    pub fn writes(mut self, writes: Writes) -> Self {
        self.writes = writes;
        self
    }

    /// What reads may see.
    pub fn reads(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// Which member is read from, whatever the URI prefers.
    pub fn read_from(mut self, member: ReadFrom) -> Self {
        self.read_from = member;
        self
    }

    /// Creates collections and indexes at connect where there are none yet, as `flare setup` does.
    /// Without it a database that is not set up is refused.
    pub fn create_missing(mut self) -> Self {
        self.create_missing = true;
        self
    }

    /// How often queue and leases look for what other processes did and what is due (100 ms).
    pub fn poll_every(mut self, pause: Duration) -> Self {
        self.poll_every = pause;
        self
    }

    /// Writes the items of a batch one by one, side by side, as is done anyway on servers before
    /// 8.0, which have no `bulkWrite` command.
    pub fn single_writes(mut self) -> Self {
        self.single_writes = true;
        self
    }

    /// Counts the commands that are sent.
    pub fn commands(mut self, commands: &Commands) -> Self {
        self.commands = Some(commands.clone());
        self
    }

    /// The driver's options and the name of the database.
    pub(crate) async fn options(&self) -> Result<(ClientOptions, String)> {
        self.check().map_err(refused)?;
        let parsed = ClientOptions::parse(self.uri.expose_secret()).await;
        let mut options = parsed.map_err(|error| self.not_an_address(error))?;
        if !self.username.is_empty() {
            let mut credential = options.credential.take().unwrap_or_default();
            credential.username = Some(self.username.clone());
            credential.password = Some(self.password.expose_secret().to_owned());
            options.credential = Some(credential);
        }
        if let Some(Credential { password: Some(_), username: None, .. }) = options.credential {
            let reason = "is missing, though there is a password";
            return Err(refused(Invalid::new("username", reason)));
        }
        if !self.replica_set.is_empty() {
            options.repl_set_name = Some(self.replica_set.clone());
        }
        if self.pool_limit > 0 {
            options.max_pool_size = Some(self.pool_limit);
        }
        options.app_name.get_or_insert_with(|| "flare".to_owned());
        // A little less than a call may take, so that it still learns why nobody was found.
        options.server_selection_timeout = Some(self.timeout.mul_f64(0.9));
        options.connect_timeout = Some(self.timeout);
        options.write_concern = Some(self.write_concern());
        options.read_concern = Some(match self.reads {
            Reads::Majority => ReadConcern::majority(),
            Reads::Local => ReadConcern::local(),
            Reads::Linearizable => ReadConcern::linearizable(),
        });
        options.selection_criteria =
            Some(SelectionCriteria::ReadPreference(match self.read_from {
                ReadFrom::Primary => ReadPreference::Primary,
                ReadFrom::PrimaryPreferred => ReadPreference::PrimaryPreferred { options: None },
            }));
        options.command_event_handler = self.commands.as_ref().map(Commands::handler);
        let database = match self.database.as_str() {
            "" => options.default_database.clone().unwrap_or_else(|| DATABASE.to_owned()),
            name => name.to_owned(),
        };
        Ok((options, database))
    }

    /// The parser quotes what it does not understand, which may be a secret.
    fn not_an_address(&self, error: mongodb::error::Error) -> Error {
        let uri = self.uri.expose_secret();
        if uri.contains('@') || mask_uri(uri) != uri {
            let reason = "is no MongoDB address (why is not shown, as that may quote a secret; \
                          / : ? # [ ] @ % in user or password have to be percent-encoded)";
            return refused(Invalid::new("uri", reason));
        }
        let reason = format!("is no MongoDB address: {}", *error.kind);
        refused(Invalid::new("uri", reason)).with_source(error)
    }

    fn write_concern(&self) -> WriteConcern {
        let members = match self.writes {
            Writes::Majority => Acknowledgment::Majority,
            Writes::Members(members) => Acknowledgment::Nodes(members),
        };
        // A write that waits for members that are away must end, too.
        WriteConcern::builder().w(members).journal(true).w_timeout(self.timeout).build()
    }

    /// Refuses settings that could not work, by their names.
    pub fn check(&self) -> Result<(), Invalid> {
        for (field, time) in [("timeout", self.timeout), ("poll_every", self.poll_every)] {
            if time.is_zero() {
                return Err(Invalid::new(field, "must be longer than nothing"));
            }
            if time > LONGEST_TIME {
                return Err(Invalid::new(field, "must be at most 24 h"));
            }
        }
        if self.writes == Writes::Members(0) {
            return Err(Invalid::new("writes", "must wait for at least one member"));
        }
        if !(self.database.is_empty() || is_database_name(&self.database)) {
            let reason = "must be at most 63 bytes without / \\ . \" $ * < > : | ? or spaces";
            return Err(Invalid::new("database", reason));
        }
        Ok(())
    }

    /// All of it but what counts commands, to compare.
    fn said(&self) -> impl PartialEq {
        let secrets = [self.uri.expose_secret(), self.password.expose_secret()];
        let names = [&self.database, &self.username, &self.replica_set];
        let careful = (self.writes, self.reads, self.read_from);
        let figures = (self.pool_limit, self.timeout, self.poll_every);
        (secrets, names, careful, figures, self.create_missing, self.single_writes)
    }
}

impl Default for MongoConfig {
    /// A server on this machine.
    fn default() -> Self {
        Self::new("mongodb://127.0.0.1:27017")
    }
}

impl PartialEq for MongoConfig {
    fn eq(&self, other: &Self) -> bool {
        self.said() == other.said()
    }
}

fn is_database_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_whitespace() || c.is_control() || r#"/\."$*<>:|?"#.contains(c);
    name.len() <= 63 && !name.contains(forbidden)
}

fn refused(invalid: Invalid) -> Error {
    Error::invalid("connect", invalid).with_backend(BACKEND)
}

/// `writes` as a configuration says it: `"majority"`, or a number.
#[cfg(feature = "serde")]
mod writes {
    use std::fmt;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::Writes;

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
}

#[cfg(test)]
mod tests {
    use flare_core::ErrorKind;

    use super::*;

    #[tokio::test]
    async fn a_time_that_cannot_be_added_to_another_is_refused_by_its_name() {
        let config = || MongoConfig::new("mongodb://db");
        for (field, wrong) in [
            ("timeout", config().timeout(Duration::MAX)),
            ("poll_every", config().poll_every(Duration::MAX)),
        ] {
            let error = wrong.options().await.unwrap_err();
            assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)));
        }
        let longest = config().timeout(LONGEST_TIME).poll_every(LONGEST_TIME);
        assert!(longest.options().await.is_ok());
    }

    #[tokio::test]
    async fn reads_go_to_the_primary_unless_said_otherwise() {
        let from = async |config: MongoConfig| {
            let (options, _) = config.options().await.unwrap();
            match options.selection_criteria {
                Some(SelectionCriteria::ReadPreference(preference)) => preference,
                other => panic!("{other:?}"),
            }
        };
        let config = MongoConfig::new("mongodb://db/?readPreference=secondary");
        assert_eq!(from(config.clone()).await, ReadPreference::Primary);
        let preferred = config.read_from(ReadFrom::PrimaryPreferred);
        assert_eq!(from(preferred).await, ReadPreference::PrimaryPreferred { options: None });
    }
}
