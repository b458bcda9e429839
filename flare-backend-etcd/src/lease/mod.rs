//! Takes keys bound to leases; gives agreement on them, as etcd keeps it. What the port asks for
//! etcd has: leases, revisions over all keys, conditional transactions, snapshots, history.
//!
//! | call | round trips |
//! |---|---|
//! | `grant`, `revoke`, `get`, `list`, `write`, `delete` | one |
//! | `keep_alive` | two messages on one stream, neither of which is a write, on a connection that only it and `grant` use |
//! | `write` made again after nobody said whether it happened | one or two |
//! | `watch` | a connection of its own, and a sign of life now and then |

mod change;
mod position;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{Client, GetOptions, GetResponse, KvClient, ResponseHeader};
use flare_core::model::Invalid;
use flare_core::port::{
    Entry, Expect, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Scan, Snapshot, StoreRevision,
    Write, Written,
};
use flare_core::{Error, ErrorKind, Result};

use self::change::{Change, Made, Put};
use crate::BACKEND;
use crate::codec::{self, Keys, Marks};
use crate::config::EtcdConfig;
use crate::error::{self, Failure, Next};
use crate::members::{Answer, Members};
use crate::options::refused;

/// The longest lease etcd grants, in seconds.
const LONGEST: i64 = 9_000_000_000;

/// The largest answer that is read: a list of some hundred thousand keys.
const LARGEST: usize = 64 << 20;

/// Leases and keys on etcd.
#[derive(Debug)]
pub struct EtcdLease {
    members: Arc<Members>,
    keys: Keys,
    marks: Marks,
}

impl EtcdLease {
    /// Connects to a cluster of which at least one member answers. Members that do not are asked
    /// again when they are needed.
    pub async fn connect(config: EtcdConfig) -> Result<Self> {
        const OPERATION: &str = "connect";
        let config = config.read()?;
        let (members, keys) = (Members::new(&config), Keys::under(&config.prefix));
        let all = keys.stored("");
        let clusters = members.every(OPERATION, |client| cluster(OPERATION, client, all.clone()));
        let preferred = first_of_one_cluster(clusters.await);
        members.prefer(preferred.map_err(|error| config.explain(error))?);
        Ok(Self { members: Arc::new(members), keys, marks: Marks::of(fastrand::u64(..)) })
    }

    async fn change(&self, change: Change) -> Result<Written> {
        let operation = change.operation;
        let ask = |client, in_doubt| change.make(client, in_doubt);
        match self.members.write(operation, ask).await? {
            Made::At(revision) => Ok(Written::At(revision)),
            Made::Conflict(found) => {
                let found = found.map(|found| self.keys.entry(operation, &found));
                Ok(Written::Conflict(found.transpose()?))
            }
        }
    }

    async fn look(
        &self,
        operation: &'static str,
        key: &str,
        options: GetOptions,
    ) -> Result<GetResponse> {
        let key = self.keys.stored(key);
        let ask = |client| read(operation, client, key.clone(), options.clone());
        self.members.read(operation, ask).await
    }
}

#[async_trait]
impl Lease for EtcdLease {
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant> {
        const OPERATION: &str = "grant";
        let seconds = seconds(ttl);
        // Made twice it is two leases, of which the one that nobody knows ends by itself.
        let granted = self.members.keep(OPERATION, async |mut client: Client| {
            let granted = client.lease_grant(seconds, None).await;
            granted.map_err(|error| error::from_client(OPERATION, &error))
        });
        let granted = granted.await?;
        Ok(LeaseGrant::new(LeaseId::new(granted.id()), lifetime(granted.ttl())))
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant> {
        let seconds = self.members.keep("keep_alive", |client| keep_alive(client, lease));
        Ok(LeaseGrant::new(lease, lifetime(seconds.await?)))
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        const OPERATION: &str = "revoke";
        let revoked = self.members.write(OPERATION, async |mut client: Client, _| {
            let revoked = client.lease_revoke(lease.get()).await;
            revoked.map_err(|error| error::from_client(OPERATION, &error))
        });
        match revoked.await {
            Err(error) if error.kind() == ErrorKind::Lost => Ok(()),
            revoked => revoked.map(|_| ()),
        }
    }

    async fn write(&self, write: Write) -> Result<Written> {
        let Write { key, value, lease, expect, .. } = write;
        let mark = self.marks.next();
        let value = codec::value(mark, &value);
        let put = Put { mark, value, lease: lease.map_or(0, LeaseId::get) };
        let key = self.keys.stored(&key);
        self.change(Change { operation: "write", key, put: Some(put), expect }).await
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<Written> {
        let key = self.keys.stored(key);
        self.change(Change { operation: "delete", key, put: None, expect }).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>> {
        const OPERATION: &str = "get";
        let found = self.look(OPERATION, key, GetOptions::new()).await?;
        found.kvs().first().map(|found| self.keys.entry(OPERATION, found)).transpose()
    }

    async fn list(&self, prefix: &str) -> Result<Snapshot> {
        const OPERATION: &str = "list";
        let found = self.look(OPERATION, prefix, GetOptions::new().with_prefix()).await?;
        // A key that is no text is nobody's of ours.
        let entries = found.kvs().iter().filter_map(|it| self.keys.entry(OPERATION, it).ok());
        let revision = store_revision(OPERATION, found.header()).map_err(|it| it.error)?;
        Ok(Snapshot::new(entries.collect(), revision))
    }

    fn abandon(&self, _: LeaseId) {
        // The server cannot know of it before the lease's time is over.
    }

    fn facts(&self) -> LeaseFacts {
        LeaseFacts::default()
    }

    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
        watching::watch(Arc::clone(&self.members), self.keys.clone(), prefix, from)
    }
}

/// Whole seconds, which is what etcd counts in: at least what was asked for.
fn seconds(ttl: Duration) -> i64 {
    let whole = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
    i64::try_from(whole).unwrap_or(LONGEST).clamp(1, LONGEST)
}

fn lifetime(seconds: i64) -> Duration {
    Duration::from_secs(seconds.unsigned_abs())
}

/// Starts a lease's time anew, and says what it is.
async fn keep_alive(mut client: Client, lease: LeaseId) -> Answer<i64> {
    const OPERATION: &str = "keep_alive";
    let failed = |error: etcd_client::Error| error::from_client(OPERATION, &error);
    // The client keeps the first answer to itself, unless the lease has ended.
    let (mut keeper, mut answers) = client.lease_keep_alive(lease.get()).await.map_err(failed)?;
    keeper.keep_alive().await.map_err(failed)?;
    match answers.message().await.map_err(failed)? {
        Some(answer) if answer.ttl() > 0 => Ok(answer.ttl()),
        Some(_) => {
            let detail = format!("lease {} has ended", lease.get());
            Err(Failure::new(OPERATION, ErrorKind::Lost, Next::Stop, detail))
        }
        None => {
            let detail = "the member ended the stream";
            Err(Failure::new(OPERATION, ErrorKind::Unavailable, Next::InDoubt, detail))
        }
    }
}

async fn read(
    operation: &'static str,
    client: Client,
    key: Vec<u8>,
    options: GetOptions,
) -> Answer<GetResponse> {
    let found = kv(&client).get(key, Some(options)).await;
    found.map_err(|error| error::from_client(operation, &error))
}

/// All keys under a prefix, but only how many there are.
fn counted() -> GetOptions {
    GetOptions::new().with_prefix().with_count_only()
}

/// Which cluster a member belongs to. Asks for what every other call needs: rights on all keys
/// under the prefix.
async fn cluster(operation: &'static str, client: Client, prefix: Vec<u8>) -> Answer<u64> {
    let found = read(operation, client, prefix, counted()).await?;
    Ok(header(operation, found.header())?.cluster_id())
}

/// The first member that answered, if all that did are of one cluster.
fn first_of_one_cluster(answers: Vec<Answer<u64>>) -> Result<usize> {
    let known =
        || answers.iter().enumerate().filter_map(|(index, it)| Some((index, *it.as_ref().ok()?)));
    if let Some((first, cluster)) = known().next() {
        if known().any(|(_, other)| other != cluster) {
            return Err(refused(Invalid::new("endpoints", "are members of different clusters")));
        }
        return Ok(first);
    }
    // What will not change by itself is worth more than that somebody is away.
    let mut errors: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|failure| failure.error.is_temporary());
    match errors.into_iter().next() {
        Some(failure) => Err(failure.error),
        None => Err(refused(Invalid::new("endpoints", "must name at least one member"))),
    }
}

fn kv(client: &Client) -> KvClient {
    client.kv_client().max_decoding_message_size(LARGEST)
}

fn header<'a>(
    operation: &'static str,
    header: Option<&'a ResponseHeader>,
) -> Answer<&'a ResponseHeader> {
    header.ok_or_else(|| {
        let error = Error::new(ErrorKind::Corrupt, operation).with_backend(BACKEND);
        Failure { error: error.with_detail("an answer without header"), next: Next::Stop }
    })
}

/// Where history stood when an answer was given.
fn store_revision(operation: &'static str, of: Option<&ResponseHeader>) -> Answer<StoreRevision> {
    Ok(codec::revision(header(operation, of)?.revision()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_asked_for_in_whole_seconds_and_never_for_less() {
        let table = [
            (Duration::ZERO, 1),
            (Duration::from_millis(1), 1),
            (Duration::from_secs(1), 1),
            (Duration::from_millis(1001), 2),
            (Duration::from_secs(5), 5),
            (Duration::MAX, LONGEST),
        ];
        for (ttl, expected) in table {
            assert_eq!(seconds(ttl), expected, "{ttl:?}");
        }
    }

    fn away() -> Answer<u64> {
        Err(Failure::new("connect", ErrorKind::Unavailable, Next::Elsewhere, "away"))
    }

    #[test]
    fn one_member_that_answers_is_enough_and_two_clusters_are_too_many() {
        assert_eq!(first_of_one_cluster(vec![away(), Ok(7), Ok(7)]).unwrap(), 1);
        let error = first_of_one_cluster(vec![Ok(7), away(), Ok(8)]).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("endpoints")));
    }

    #[test]
    fn a_refusal_is_told_before_an_absence() {
        let refused = Failure::new("connect", ErrorKind::Denied, Next::Stop, "who are you");
        let error = first_of_one_cluster(vec![away(), Err(refused)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
}
