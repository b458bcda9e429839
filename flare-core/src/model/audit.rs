//! What an operator or a node did: an entry of the log that is kept of that, with who did it and to what.
//! Entries are values: what is too long is cut when they are made, and what a newer version writes that this
//! one has no word for is kept as it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{AuditEntryId, ConsumerId, Invalid, NodeId, ResourceId, SubscriptionId, Timestamp};

/// The longest name of who acts, and id of what it was done to.
const MOST_NAME: usize = 200;
/// The longest detail.
const MOST_DETAIL: usize = 1_024;

/// Something that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEntry {
    /// What it is known by; later entries of a process have greater ones.
    pub id: AuditEntryId,
    /// When it was done, by the store's time.
    pub at: Timestamp,
    /// Who did it.
    pub actor: Actor,
    /// What was done.
    pub action: AuditAction,
    /// What it was done to.
    pub subject: AuditSubject,
    /// More about it, in words.
    pub detail: Option<String>,
    /// How often, where several of the same are told together.
    pub count: u64,
}

impl AuditEntry {
    /// Something that was done once.
    pub fn new(
        id: AuditEntryId,
        at: Timestamp,
        actor: Actor,
        action: AuditAction,
        subject: AuditSubject,
    ) -> Self {
        Self { id, at, actor, action, subject, detail: None, count: 1 }
    }

    /// The same with more about it, as much of that as an entry holds.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        let detail = cut(detail.into(), MOST_DETAIL);
        self.detail = Some(detail).filter(|detail| !detail.is_empty());
        self
    }

    /// The same, done so often.
    #[must_use]
    pub fn with_count(mut self, count: u64) -> Self {
        self.count = count.max(1);
        self
    }

    /// What a store keeps of it beside id, time and subject: JSON.
    pub fn stored(&self) -> serde_json::Result<String> {
        serde_json::to_string(&StoredAudit {
            actor: self.actor.clone(),
            action: self.action.as_str().to_owned(),
            detail: self.detail.clone(),
            count: self.count,
        })
    }

    /// The entry of which a store kept this.
    pub fn from_stored(
        id: AuditEntryId,
        at: Timestamp,
        subject: AuditSubject,
        text: &str,
    ) -> serde_json::Result<Self> {
        let StoredAudit { actor, action, detail, count } = serde_json::from_str(text)?;
        let action = AuditAction::of(&action);
        Ok(Self { id, at, actor, action, subject, detail, count })
    }
}

/// Who does something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Actor {
    /// The program that holds the handle, which said nothing else.
    Host,
    /// One of that name, as the host said: the name of a token, for instance.
    Named(String),
    /// The node of that name, by itself.
    Node(String),
}

impl Actor {
    /// One of that name, as much of it as an entry holds.
    pub fn named(name: impl Into<String>) -> Self {
        Self::Named(cut(name.into(), MOST_NAME))
    }

    /// A node of that name.
    pub fn node(name: impl Into<String>) -> Self {
        Self::Node(cut(name.into(), MOST_NAME))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Named(name) => f.write_str(name),
            Self::Node(name) => write!(f, "node {name}"),
        }
    }
}

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// What was done.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum AuditAction {
            $($(#[$doc])* $name,)*
            /// Something that only a newer version does, by its word.
            Other(String),
        }

        impl AuditAction {
            /// All that this version does.
            pub const KNOWN: &'static [Self] = &[$(Self::$name),*];

            /// The action in words of lower case, with hyphens.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Other(word) => word,
                }
            }

            /// The action of these words.
            pub fn of(word: &str) -> Self {
                match word {
                    $($word => Self::$name,)*
                    _ => Self::Other(cut(word.to_owned(), MOST_NAME)),
                }
            }
        }
    };
}

actions! {
    /// A resource, subscription or consumer was created.
    Created = "created",
    /// Its settings were replaced.
    Replaced = "replaced",
    /// It was deleted.
    Deleted = "deleted",
    /// It is held until it is resumed.
    Paused = "paused",
    /// It goes on.
    Resumed = "resumed",
    /// Its client asked for no more, or has only failed for long.
    Suspended = "suspended",
    /// A client that is down or waits is tried at once.
    Retried = "retried",
    /// Notifications that were given up, or messages that were rejected, are tried again.
    Replayed = "replayed",
    /// The documents that are there are told to it.
    Backfilled = "backfill-asked",
    /// That was ended.
    BackfillCancelled = "backfill-cancelled",
    /// All documents are told to it again.
    Resynced = "resync-asked",
    /// That was ended.
    ResyncCancelled = "resync-cancelled",
    /// A slot was given to a node, or a subscription a slot of its own.
    Pinned = "pinned",
    /// That was ended.
    Unpinned = "unpinned",
    /// A node takes part in the cluster.
    Joined = "joined",
    /// A node left the cluster in good order.
    Left = "left",
    /// A node is gone without having left.
    Lost = "lost",
    /// A node was asked to hand over what it works, and to leave.
    Drained = "drain-asked",
    /// A request to sign in was refused.
    Refused = "refused",
}

impl fmt::Display for AuditAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What something was done to: a kind of thing and which, written `subscription/0190163d-…`.
///
/// ```
/// use flare_core::model::AuditSubject;
///
/// let slot: AuditSubject = "slot/7".parse()?;
/// assert_eq!((slot.kind(), slot.id()), ("slot", "7"));
/// assert_eq!(slot, AuditSubject::slot(7));
/// assert!("slot".parse::<AuditSubject>().is_err());
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuditSubject(String);

impl AuditSubject {
    /// A resource.
    pub fn resource(id: ResourceId) -> Self {
        Self(format!("resource/{id}"))
    }

    /// A subscription.
    pub fn subscription(id: SubscriptionId) -> Self {
        Self(format!("subscription/{id}"))
    }

    /// A consumer.
    pub fn consumer(id: ConsumerId) -> Self {
        Self(format!("consumer/{id}"))
    }

    /// A slot.
    pub fn slot(slot: u32) -> Self {
        Self(format!("slot/{slot}"))
    }

    /// An incarnation of a node.
    pub fn node(id: NodeId) -> Self {
        Self(format!("node/{id}"))
    }

    /// A way in that was refused, by what was wrong with it.
    pub fn sign_in(what: &str) -> Self {
        let what: String = what.chars().filter(|it| !it.is_control()).collect();
        Self(cut(format!("sign-in/{what}"), MOST_NAME))
    }

    /// What kind of thing.
    pub fn kind(&self) -> &str {
        self.0.split_once('/').map_or("", |(kind, _)| kind)
    }

    /// Which of them.
    pub fn id(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, id)| id)
    }

    /// Both, as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AuditSubject {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let is_word = |kind: &str| {
            !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        let fits = |id: &str| !id.is_empty() && !id.chars().any(char::is_control);
        match text.split_once('/') {
            Some((kind, id)) if is_word(kind) && fits(id) && text.len() <= MOST_NAME => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(Invalid::new("subject", "must be a kind and an id like slot/7")),
        }
    }
}

impl fmt::Display for AuditSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AuditSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a store keeps of an entry beside id, time and subject.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredAudit {
    actor: Actor,
    action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    count: u64,
}

/// The beginning of a text, so many bytes at most.
fn cut(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(actor: Actor, action: AuditAction) -> AuditEntry {
        let id = AuditEntryId::from_bytes([7; 16]);
        AuditEntry::new(id, Timestamp::EPOCH, actor, action, AuditSubject::slot(3))
    }

    #[test]
    fn what_is_stored_stays_readable() {
        let told = entry(Actor::named("ops"), AuditAction::Paused).with_detail("for now");
        for (entry, text) in [
            (told, r#"{"actor":{"named":"ops"},"action":"paused","detail":"for now","count":1}"#),
            (
                entry(Actor::Host, AuditAction::Refused).with_count(9),
                r#"{"actor":"host","action":"refused","count":9}"#,
            ),
            (
                entry(Actor::node("n1"), AuditAction::Joined),
                r#"{"actor":{"node":"n1"},"action":"joined","count":1}"#,
            ),
        ] {
            assert_eq!(entry.stored().unwrap(), text);
            let read =
                AuditEntry::from_stored(entry.id, entry.at, entry.subject.clone(), text).unwrap();
            assert_eq!(read, entry);
        }
    }

    #[test]
    fn a_newer_version_s_words_are_kept() {
        let text = r#"{"actor":"host","action":"painted","count":1,"colour":"red"}"#;
        let (id, subject) = (AuditEntryId::from_bytes([1; 16]), "wall/north".parse().unwrap());
        let read = AuditEntry::from_stored(id, Timestamp::EPOCH, subject, text).unwrap();
        assert_eq!(read.action, AuditAction::Other("painted".to_owned()));
        assert_eq!((read.action.as_str(), read.subject.kind()), ("painted", "wall"));
    }

    #[test]
    fn every_word_is_read_as_it_is_written() {
        for action in AuditAction::KNOWN {
            assert_eq!(AuditAction::of(action.as_str()), *action);
        }
    }

    #[test]
    fn an_entry_holds_so_much_and_no_more() {
        let long = "é".repeat(4_000);
        let entry = entry(Actor::named(&long), AuditAction::Paused).with_detail(&long);
        assert_eq!(entry.detail.map(|detail| detail.len()), Some(1_024));
        assert_eq!(Actor::named(&long).to_string().len(), 200);
        assert_eq!(AuditSubject::sign_in(&long).as_str().len(), 200);
        assert_eq!(AuditSubject::sign_in(&long).kind(), "sign-in");
    }

    #[test]
    fn a_subject_is_a_kind_and_an_id() {
        for wrong in ["", "slot", "slot/", "/7", "Slot/7", "slot/7\n", &"a/".repeat(200)] {
            let refused = wrong.parse::<AuditSubject>().unwrap_err();
            assert_eq!(refused.field(), "subject", "{wrong:?}");
        }
        let nested: AuditSubject = "sign-in/a/b".parse().unwrap();
        assert_eq!((nested.kind(), nested.id()), ("sign-in", "a/b"));
    }
}
