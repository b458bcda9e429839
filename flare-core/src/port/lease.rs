//! Takes keys bound to leases; gives agreement on who is there and who does what. Never decides
//! who should.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::Scan;
use crate::error::Result;

/// Coordination: a small strongly consistent store of keys that live as long as their holder.
///
/// # Contract
/// - **L1** A lease lives `ttl` from its grant or last keep-alive, by the store's clock, and not
///   much longer; `ttl` in the answer is what the store really granted.
/// - **L2** Every stored write gets a revision greater than all before it, over all keys, for
///   ever: a key's revision is a fencing token.
/// - **L3** Conditions are checked and the write is made in one step: of any number of writers
///   that expect the same, exactly one wins; the others learn what is there.
/// - **L4** When a lease ends, by time or by revocation, its keys are gone, and watchers are told.
/// - **L5** A lease that has ended stays ended: keeping it alive, or binding a key to it, is
///   [`ErrorKind::Lost`](crate::ErrorKind::Lost) and changes nothing.
/// - **L6** `list` is a snapshot: entries in key order as they were at its `revision`.
/// - **L7** `watch` from a revision gives every later change under the prefix exactly once, in
///   revision order, whether it happened before or after the call. It goes on until dropped.
/// - **L8** A watch that cannot be resumed without a gap ends with
///   [`ErrorKind::Compacted`](crate::ErrorKind::Compacted); list again and watch from there.
/// - **L9** Writing an existing key binds it to the lease of that write (or to none), and to no
///   other.
/// - **L10** Deleting what is not there is no error and makes no revision.
/// - **L11** A key is under a prefix if it begins with it, byte for byte.
/// - **L12** `abandon` ends a lease as `revoke` does, at once, where the store knows of its holders' deaths
///   ([`LeaseFacts::knows_deaths`]); any other store ignores it, as it would a death, and waits for its time.
#[async_trait]
pub trait Lease: fmt::Debug + Send + Sync + 'static {
    /// Starts a lease.
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant>;

    /// Starts the lease's time anew.
    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant>;

    /// Ends a lease and its keys now; ending one that has ended is no error.
    async fn revoke(&self, lease: LeaseId) -> Result<()>;

    /// Writes a key if it is as expected.
    async fn write(&self, write: Write) -> Result<Written>;

    /// Deletes a key if it is as expected.
    async fn delete(&self, key: &str, expect: Expect) -> Result<Written>;

    /// Reads a key.
    async fn get(&self, key: &str) -> Result<Option<Entry>>;

    /// Reads all keys under a prefix.
    async fn list(&self, prefix: &str) -> Result<Snapshot>;

    /// Follows all changes under a prefix after `from`.
    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent>;

    /// The holder of a lease is gone without a word, as when its task was dropped.
    fn abandon(&self, lease: LeaseId);

    /// What this backend can do; read once, honoured above the port.
    fn facts(&self) -> LeaseFacts;
}

/// What a coordination backend can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LeaseFacts {
    /// Only this process sees it, and it ends with the process.
    pub in_process: bool,
    /// A lease ends with its holder's process, whatever ends that: no node waits for its time.
    pub knows_deaths: bool,
}

impl LeaseFacts {
    /// A backend in the memory of this process.
    #[must_use]
    pub const fn in_process() -> Self {
        Self { in_process: true, knows_deaths: true }
    }

    /// A backend that processes share, and that can tell which of them are dead.
    #[must_use]
    pub const fn knowing_deaths() -> Self {
        Self { in_process: false, knows_deaths: true }
    }
}

/// Names a lease. Backends choose the numbers; none is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(i64);

impl LeaseId {
    /// The lease a backend knows as `id`.
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// What the backend knows it as.
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// A point in the history of the coordination store; also a fencing token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StoreRevision(u64);

impl StoreRevision {
    /// The point with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A lease as the store granted or prolonged it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseGrant {
    /// Which lease.
    pub id: LeaseId,
    /// How long it lives from now on. A holder counts from *before* it asked.
    pub ttl: Duration,
}

impl LeaseGrant {
    /// A lease that lives `ttl` from now.
    pub const fn new(id: LeaseId, ttl: Duration) -> Self {
        Self { id, ttl }
    }
}

/// What a key must be like for a write to take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expect {
    /// Whatever it is like.
    Anything,
    /// It must not exist.
    Absent,
    /// It must be as last written at this revision.
    At(StoreRevision),
}

/// A write to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Write {
    /// Which key.
    pub key: String,
    /// Its new value.
    pub value: Bytes,
    /// The lease it lives with; without one it stays until it is deleted.
    pub lease: Option<LeaseId>,
    /// What it must be like now.
    pub expect: Expect,
}

impl Write {
    /// Writes `key`, whatever it is like, to stay.
    pub fn new(key: impl Into<String>, value: impl Into<Bytes>) -> Self {
        Self { key: key.into(), value: value.into(), lease: None, expect: Expect::Anything }
    }

    /// The same, living with `lease`.
    #[must_use]
    pub fn lease(mut self, lease: LeaseId) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The same, if the key is as expected.
    #[must_use]
    pub fn expect(mut self, expect: Expect) -> Self {
        self.expect = expect;
        self
    }
}

/// What became of a write or delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It took place, as this revision. (Deleting nothing: the store's revision as it was.)
    At(StoreRevision),
    /// The key was not as expected: this is what is there.
    Conflict(Option<Entry>),
}

/// A key and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Bytes,
    /// The revision that created it.
    pub created: StoreRevision,
    /// The revision that last wrote it.
    pub revision: StoreRevision,
    /// The lease it lives with.
    pub lease: Option<LeaseId>,
}

impl Entry {
    /// An entry as a backend hands it out.
    pub fn new(
        key: impl Into<String>,
        value: impl Into<Bytes>,
        created: StoreRevision,
        revision: StoreRevision,
        lease: Option<LeaseId>,
    ) -> Self {
        Self { key: key.into(), value: value.into(), created, revision, lease }
    }
}

/// All keys under a prefix at one point in history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The entries, in key order.
    pub entries: Vec<Entry>,
    /// The point in history; watch from here to miss nothing.
    pub revision: StoreRevision,
}

impl Snapshot {
    /// The `entries` as they were at `revision`.
    pub const fn new(entries: Vec<Entry>, revision: StoreRevision) -> Self {
        Self { entries, revision }
    }
}

/// One change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyEvent {
    /// When in history.
    pub revision: StoreRevision,
    /// Which key.
    pub key: String,
    /// What happened to it.
    pub kind: KeyChange,
}

impl KeyEvent {
    /// A change of `key` at `revision`.
    pub fn new(revision: StoreRevision, key: impl Into<String>, kind: KeyChange) -> Self {
        Self { revision, key: key.into(), kind }
    }
}

/// What happened to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// It was written and is now this.
    Written(Entry),
    /// It was deleted, or its lease ended.
    Deleted,
}
