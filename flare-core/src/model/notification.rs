//! Takes a document, what the client is told and how it wants to be told; gives the bytes of the
//! notification and its id. Pure; copies the document's bytes, never parses them.

use std::io::Write as _;

use bytes::Bytes;
use uuid::Uuid;

use super::{
    Action, ChangeFormat, ChangeRule, ContentOptions, Document, DocumentUrl, Round, SubscriptionId,
    SubscriptionSpec, Target, Version,
};

/// What a client is told about one document.
///
/// ```
/// use flare_core::model::{Action, ChangeRule, Content, ContentOptions, Document, DocumentKey,
///     DocumentUrl, IdSource, Notification, Timestamp, Version};
///
/// let rule = ChangeRule::new("rev", None)?;
/// let (revision, content) = Content::parse(&rule, r#"{"rev":3}"#.into())?;
/// let url = DocumentUrl::parse("http://a.example/users/1")?;
/// let resource = IdSource::seeded(1).next(Timestamp::EPOCH).into();
/// let mut document =
///     Document::new(DocumentKey::new(resource, url), Version::live(revision), Timestamp::EPOCH);
/// document.content = Some(content);
///
/// let told = Notification::new(&rule, &document, Action::Create);
/// assert_eq!(
///     told.body(ContentOptions::default()),
///     concat!(
///         r#"{"id":"http://a.example/users/1","action":"create","revision":3,"#,
///         r#""updatedAt":"1970-01-01T00:00:00Z","document":{"rev":3}}"#,
///     ),
/// );
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone)]
pub struct Notification<'a> {
    rule: &'a ChangeRule,
    document: &'a Document,
    action: Action,
    data: Option<&'a str>,
    webhook_id: Option<&'a str>,
    withheld: bool,
}

impl<'a> Notification<'a> {
    /// Tells `action` about `document`, whose resource versions it by `rule`.
    pub fn new(rule: &'a ChangeRule, document: &'a Document, action: Action) -> Self {
        Self { rule, document, action, data: None, webhook_id: None, withheld: false }
    }

    /// The same with the subscription's data, a JSON object with every placeholder filled in.
    #[must_use]
    pub fn data(mut self, rendered: Option<&'a str>) -> Self {
        self.data = rendered;
        self
    }

    /// The same with its id in the envelope, for a client that is told many things at once.
    #[must_use]
    pub fn webhook_id(mut self, id: &'a str) -> Self {
        self.webhook_id = Some(id);
        self
    }

    /// The same without the document's content: what a filter turned into a delete may be secret
    /// by now.
    #[must_use]
    pub fn withhold_content(mut self) -> Self {
        self.withheld = true;
        self
    }

    /// The revision as clients see it.
    pub fn shown_revision(&self) -> String {
        self.rule.show(self.document.version.revision())
    }

    /// The request's body: the envelope, or the document itself where there is no envelope.
    pub fn body(&self, options: ContentOptions) -> Bytes {
        let content =
            self.document.content.as_ref().filter(|_| options.document() && !self.withheld);
        if !options.envelope() {
            return content.map(|content| content.bytes().clone()).unwrap_or_default();
        }
        let content = content.map(|content| content.as_bytes());
        let mut body = Vec::with_capacity(256 + content.map_or(0, <[u8]>::len));
        body.extend_from_slice(b"{\"id\":");
        push_string(&mut body, self.document.key.url.as_str());
        body.extend_from_slice(b",\"action\":");
        push_string(&mut body, self.action.as_str());
        body.extend_from_slice(b",\"revision\":");
        if matches!(self.rule.format(), ChangeFormat::Integer) {
            body.extend_from_slice(self.shown_revision().as_bytes());
        } else {
            push_string(&mut body, &self.shown_revision());
        }
        body.extend_from_slice(b",\"updatedAt\":\"");
        // Writing to a Vec cannot fail, and a timestamp has nothing to escape.
        let _ = write!(body, "{}", self.document.updated_at);
        body.push(b'"');
        if let Some(id) = self.webhook_id {
            body.extend_from_slice(b",\"webhookId\":");
            push_string(&mut body, id);
        }
        for (name, json) in [("data", self.data.map(str::as_bytes)), ("document", content)] {
            if let Some(json) = json {
                body.push(b',');
                push_string(&mut body, name);
                body.push(b':');
                body.extend_from_slice(json);
            }
        }
        body.push(b'}');
        body.into()
    }
}

/// Bytes of an envelope beside what differs in length: names, action, revision, time, id.
const ENVELOPE: usize = 256;

/// No fewer bytes than the envelope of `document` has, as a subscription is told it with its id among
/// others. Knows no wildcards, so takes each to be as long as the URL it is part of.
pub(crate) fn most_bytes(document: &Document, spec: &SubscriptionSpec) -> usize {
    let url = document.key.url.as_str().len();
    let data = spec.data().map_or(0, |data| data.most_bytes(url));
    let content = document.content.as_ref().filter(|_| spec.content().document());
    ENVELOPE + url + data + content.map_or(0, |content| content.as_bytes().len())
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    // Strings always serialize, and a Vec takes all bytes.
    let _ = serde_json::to_writer(out, text);
}

/// The `webhook-id`: the same over retries, restarts and replays of one (subscription, document,
/// version, target, round), different for every other. Has no dot in it, which signatures rely on.
pub fn webhook_id(
    subscription: SubscriptionId,
    url: &DocumentUrl,
    version: Version,
    target: Target,
    round: Round,
) -> String {
    let state = if version.is_gone() { "gone" } else { "live" };
    let target = match target {
        Target::Present => "present",
        Target::Absent => "absent",
    };
    // The URL comes last: it is the only part of free length.
    let mut name = format!("{state} {target} {} {url}", version.revision());
    // What was told anew because a client or operator asked for it is no repetition.
    if round > Round::ZERO {
        name.insert_str(0, &format!("round {round} "));
    }
    let namespace = Uuid::from_bytes(*subscription.as_bytes());
    format!("msg_{}", Uuid::new_v5(&namespace, name.as_bytes()).simple())
}

/// The `webhook-id` of a request that tells of many: the same for the same notifications, in whatever
/// order. Has no dot in it either.
pub fn batch_id(subscription: SubscriptionId, ids: &[String]) -> String {
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    let namespace = Uuid::from_bytes(*subscription.as_bytes());
    format!("batch_{}", Uuid::new_v5(&namespace, ids.join(" ").as_bytes()).simple())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::model::{Content, DocumentKey, IdSource, Revision, Timestamp};

    fn ids() -> (crate::model::ResourceId, SubscriptionId) {
        let source = IdSource::seeded(1);
        (source.next(Timestamp::EPOCH).into(), source.next(Timestamp::EPOCH).into())
    }

    fn document(rule: &ChangeRule, json: &'static str) -> Document {
        let (revision, content) =
            Content::parse(rule, Bytes::from_static(json.as_bytes())).unwrap();
        let key = DocumentKey::new(ids().0, DocumentUrl::parse("http://a.example/u/1").unwrap());
        let at = Timestamp::from_unix_millis(1_700_000_000_250);
        let mut document = Document::new(key, Version::live(revision), at);
        document.content = Some(content);
        document
    }

    #[test]
    fn the_document_travels_byte_for_byte() {
        let rule = ChangeRule::new("rev", None).unwrap();
        let exact = "{ \"z\":12345678901234567890123,\"a\":1.0e+5 ,\"rev\":1,\"\\u00e9\":\"\\/\" }";
        let document = document(&rule, exact);
        let told = Notification::new(&rule, &document, Action::Update);
        let body = String::from_utf8(told.body(ContentOptions::default()).to_vec()).unwrap();
        assert!(body.ends_with(&format!(",\"document\":{exact}}}")), "{body}");
        serde_json::from_str::<serde_json::Value>(&body).unwrap();
        assert_eq!(told.body(ContentOptions::new(true, false).unwrap()), exact);
    }

    #[test]
    fn formatted_revisions_are_strings_and_data_comes_before_the_document() {
        let rule = ChangeRule::new("at", Some("rfc3339")).unwrap();
        let document = document(&rule, r#"{"at":"2024-01-02T03:04:05.500+01:00"}"#);
        let told = Notification::new(&rule, &document, Action::Create).data(Some(r#"{"k":1}"#));
        assert_eq!(
            told.body(ContentOptions::default()),
            concat!(
                r#"{"id":"http://a.example/u/1","action":"create","revision":"2024-01-02T02:04:05.5Z","#,
                r#""updatedAt":"2023-11-14T22:13:20.25Z","data":{"k":1},"#,
                r#""document":{"at":"2024-01-02T03:04:05.500+01:00"}}"#,
            )
        );
    }

    #[test]
    fn a_delete_carries_the_last_content_unless_withheld_or_expired() {
        let rule = ChangeRule::new("rev", None).unwrap();
        let mut document = document(&rule, r#"{"rev":7}"#);
        document.version = Version::gone(Revision::new(7));
        let enveloped = ContentOptions::default();
        let bare = ContentOptions::new(true, false).unwrap();

        let told = Notification::new(&rule, &document, Action::Delete);
        assert!(told.body(enveloped).ends_with(br#""document":{"rev":7}}"#));
        assert_eq!(told.body(bare), r#"{"rev":7}"#);

        let withheld = told.clone().withhold_content();
        assert!(!withheld.body(enveloped).windows(10).any(|w| w == b"\"document\""));
        assert!(withheld.body(bare).is_empty());

        document.content = None;
        let expired = Notification::new(&rule, &document, Action::Delete);
        assert!(expired.body(enveloped).ends_with(b"Z\"}"));
        assert!(expired.body(bare).is_empty());
    }

    #[test]
    fn content_document_false_leaves_the_document_out() {
        let rule = ChangeRule::new("rev", None).unwrap();
        let document = document(&rule, r#"{"rev":7}"#);
        let told = Notification::new(&rule, &document, Action::Update);
        assert!(told.body(ContentOptions::new(false, true).unwrap()).ends_with(b"Z\"}"));
    }

    #[test]
    fn webhook_ids_differ_in_every_part_and_have_no_dot() {
        let (_, subscription) = ids();
        let other: SubscriptionId = IdSource::seeded(2).next(Timestamp::EPOCH).into();
        let mut seen = HashSet::new();
        for subscription in [subscription, other] {
            for url in ["http://a.example/u/1", "http://a.example/u/2"] {
                let url = DocumentUrl::parse(url).unwrap();
                for revision in [-1, 1, 11].map(Revision::new) {
                    for version in [Version::live(revision), Version::gone(revision)] {
                        for target in [Target::Present, Target::Absent] {
                            for round in [0, 1, 11].map(Round::new) {
                                let id = || webhook_id(subscription, &url, version, target, round);
                                assert!(!id().contains('.') && id().len() == 36, "{}", id());
                                assert!(seen.insert(id()) && !seen.insert(id()));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_same_notifications_have_the_same_batch_id_in_whatever_order() {
        let (_, subscription) = ids();
        let id = |ids: &[&str]| {
            batch_id(subscription, &ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(id(&["msg_a", "msg_b"]), id(&["msg_b", "msg_a"]));
        let others =
            [id(&["msg_a", "msg_b"]), id(&["msg_a"]), id(&["msg_b"]), id(&["msg_a", "msg_c"])];
        assert_eq!(others.iter().collect::<HashSet<_>>().len(), 4);
        assert!(others.iter().all(|id| !id.contains('.')), "{others:?}");
        let url = DocumentUrl::parse("http://a.example/u/1").unwrap();
        let version = Version::live(Revision::new(5));
        let one = webhook_id(subscription, &url, version, Target::Present, Round::ZERO);
        assert_ne!(id(&[&one]), one, "a request of one is a batch too");
        let fixed = batch_id(SubscriptionId::from_bytes([7; 16]), &["msg_a".to_owned()]);
        assert_eq!(fixed, "batch_cc8cbfd79d28529a813b2abdc700a17d", "over releases");
    }

    #[test]
    fn no_envelope_is_longer_than_is_expected() {
        let rule = ChangeRule::new("at", Some("rfc3339")).unwrap();
        let json = r#"{"at":"2024-01-02T03:04:05.123456789Z","x":"é"}"#;
        for (segment, id, text) in [
            ("1".to_owned(), "1".to_owned(), "{id}"),
            // What is one byte of three in a URL is six in JSON.
            ("%00".repeat(600), "\0".repeat(600), "\u{1}{id}{id}\""),
        ] {
            let spec = SubscriptionSpec::post("http://h/")
                .data("a", text)
                .data("b\n", serde_json::json!(["{revision}", 1.5, true, text]))
                .build()
                .unwrap();
            let mut document = document(&rule, json);
            document.key.url =
                DocumentUrl::parse(&format!("http://a.example/u/{segment}")).unwrap();
            document.updated_at = Timestamp::from_unix_nanos(1_700_000_000_123_456_789);
            let told = Notification::new(&rule, &document, Action::Create);
            let revision = told.shown_revision();
            let value =
                |name: &str| Some(if name == "id" { id.as_str() } else { revision.as_str() });
            let data = spec.data().unwrap().render(value).unwrap();
            let webhook = format!("msg_{}", "0".repeat(32));
            let body = told.data(Some(&data)).webhook_id(&webhook).body(spec.content());
            assert!(body.len() <= most_bytes(&document, &spec), "{}", body.len());
        }
    }

    #[test]
    fn webhook_ids_stay_what_they_are_over_releases() {
        let subscription = SubscriptionId::from_bytes([7; 16]);
        let url = DocumentUrl::parse("http://a.example/u/1").unwrap();
        let version = Version::live(Revision::new(5));
        let id = webhook_id(subscription, &url, version, Target::Present, Round::ZERO);
        assert_eq!(id, "msg_e3c992e2848c5eac9f7040ac62e37a00");
    }
}
