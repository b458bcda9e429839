//! Takes a row that was given up; gives what its owner may know of it, as lists show it.

use super::{
    Action, ChangeRule, DeadLetterId, DeathReason, DocumentUrl, Row, ShownRevision, Timestamp,
    Version,
};

/// A notification that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadNotification {
    /// What it is replayed by.
    pub id: DeadLetterId,
    /// About which document.
    pub document: DocumentUrl,
    /// Which version of it was given up.
    pub version: Version,
    /// The revision of that version, as clients see it.
    pub revision: ShownRevision,
    /// What the client would have been told.
    pub action: Action,
    /// Why it was given up.
    pub reason: DeathReason,
    /// How many attempts were made.
    pub attempts: u32,
    /// The last status the client answered, if it answered.
    pub last_status: Option<u16>,
    /// The last error or the beginning of the last answer's body.
    pub last_error: Option<String>,
    /// When the first attempt failed.
    pub first_failure_at: Timestamp,
    /// When it was given up.
    pub died_at: Timestamp,
}

impl DeadNotification {
    /// What a row of a resource with this rule gave up; `None` if it is no dead letter.
    pub fn of(row: &Row, rule: &ChangeRule) -> Option<Self> {
        let (dead, version) = (row.dead.as_ref()?, row.given_up?);
        Some(Self {
            id: dead.id,
            document: row.key.url.clone(),
            version,
            revision: rule.shown(version.revision()),
            action: dead.action,
            reason: dead.reason,
            attempts: dead.attempts,
            last_status: dead.last_status,
            last_error: dead.last_error.clone(),
            first_failure_at: dead.first_failure_at,
            died_at: dead.died_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{
        DeadLetter, DocumentKey, Generation, ResourceId, Revision, Spread, SubscriptionId,
    };

    fn row() -> Row {
        let url = DocumentUrl::parse("http://a.example/u/1").unwrap();
        let spread = Spread::new(
            SubscriptionId::from_bytes([1; 16]),
            Generation::new(1),
            DocumentKey::new(ResourceId::from_bytes([2; 16]), url),
            Version::live(Revision::new(7)),
        );
        Row::new(&spread, Timestamp::EPOCH)
    }

    #[test]
    fn only_a_row_with_details_is_listed() {
        let rule = ChangeRule::new("rev", None).unwrap();
        let mut row = row();
        assert_eq!(DeadNotification::of(&row, &rule), None);
        row.given_up = Some(row.wanted);
        assert_eq!(DeadNotification::of(&row, &rule), None, "past its retention");
    }
    #[test]
    fn what_a_row_gave_up_is_listed() {
        let id = DeadLetterId::from_bytes([3; 16]);
        let died = Timestamp::EPOCH + Duration::from_millis(1_500);
        let mut row = row();
        row.given_up = Some(Version::live(Revision::new(5)));
        let mut dead = DeadLetter::new(id, Action::Update, DeathReason::Exhausted, died);
        (dead.last_status, dead.last_error) = (Some(500), Some("answered 500".to_owned()));
        row.dead = Some(dead);
        let listed = DeadNotification::of(&row, &ChangeRule::new("rev", None).unwrap()).unwrap();
        assert_eq!((listed.id, &listed.document), (id, &row.key.url));
        assert_eq!(
            (listed.version, listed.revision),
            (row.given_up.unwrap(), ShownRevision::Number(5))
        );
        assert_eq!((listed.action, listed.reason), (Action::Update, DeathReason::Exhausted));
        assert_eq!((listed.attempts, listed.last_status), (0, Some(500)));
        assert_eq!(listed.last_error.as_deref(), Some("answered 500"));
        assert_eq!((listed.first_failure_at, listed.died_at), (died, died));
    }
}
