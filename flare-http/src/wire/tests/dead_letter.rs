//! A notification that was given up, byte for byte as a list shows it.

use std::time::Duration;

use flare_core::model::{
    Action, ChangeRule, DeadLetter, DeadLetterId, DeadNotification, DeathReason, DocumentKey,
    DocumentUrl, Generation, ResourceId, Revision, Row, Spread, SubscriptionId, Timestamp, Version,
};

use super::super::dead_letter::DeadLetterView;

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
fn is_written_as_the_interface_has_it() {
    let id = DeadLetterId::from_bytes([3; 16]);
    let died = Timestamp::EPOCH + Duration::from_millis(1_500);
    let mut row = row();
    row.given_up = Some(Version::live(Revision::new(5)));
    row.dead = Some(DeadLetter::new(id, Action::Update, DeathReason::Exhausted, died));
    let rule = ChangeRule::new("rev", None).unwrap();
    let json = |row: &Row| {
        let dead = DeadNotification::of(row, &rule).unwrap();
        serde_json::to_string(&DeadLetterView::from(dead)).unwrap()
    };
    assert_eq!(
        json(&row),
        concat!(
            r#"{"id":"03030303-0303-0303-0303-030303030303","#,
            r#""document":"http://a.example/u/1","revision":5,"action":"update","#,
            r#""reason":"exhausted","attempts":0,"#,
            r#""firstFailureAt":"1970-01-01T00:00:01.5Z","diedAt":"1970-01-01T00:00:01.5Z"}"#,
        )
    );
    let dead = row.dead.as_mut().unwrap();
    (dead.last_status, dead.last_error) = (Some(500), Some("answered 500".to_owned()));
    assert!(json(&row).contains(r#""lastStatus":500,"lastError":"answered 500","#));
}
