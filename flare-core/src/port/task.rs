//! Takes what one stage has to say to the next; gives the bytes that travel through a queue, and
//! back. Carries ids, never content; every task may arrive twice, late, or not at all.

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};

use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    DocumentKey, DocumentUrl, LaneId, PartitionId, RecordKind, RecordName, ResourceId,
    SubscriptionId, Unreadable, Version, WhyUnreadable,
};

/// The format written today. Version N reads N and N − 1.
const FORMAT: u32 = 1;

/// Documents in one task: far below any queue's payload limit even with the longest URLs.
pub(crate) const DOCUMENTS_PER_TASK: usize = 50;

/// Lanes in one task: 20 KiB.
pub(crate) const LANES_PER_TASK: usize = 500;

/// A document at a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentVersion {
    /// Which document.
    pub url: DocumentUrl,
    /// Which version of it.
    pub version: Version,
}

/// What one stage of the journey asks of the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "task", rename_all = "camelCase")]
pub enum Task {
    /// Find the partitions that have to spread these documents.
    Partition {
        /// Of which resource.
        resource: ResourceId,
        /// The documents.
        documents: Vec<DocumentVersion>,
    },
    /// Write the rows of one partition for these documents.
    Spread {
        /// Of which resource.
        resource: ResourceId,
        /// Which partition.
        partition: PartitionId,
        /// The documents.
        documents: Vec<DocumentVersion>,
    },
    /// Look after lanes: they may have rows that are due.
    Wake {
        /// Which lanes.
        #[serde(serialize_with = "as_text")]
        lanes: Vec<LaneId>,
    },
    /// Read a subscription again: it is new, or its settings or status changed.
    Refresh {
        /// Which one.
        subscription: SubscriptionId,
    },
    /// This queue had vanished and was made again: whatever was in it has to be found in the stores.
    Restored,
}

#[derive(Serialize)]
struct Sealed<'a> {
    v: u32,
    #[serde(flatten)]
    task: &'a Task,
}

#[derive(Deserialize)]
struct Stamp {
    v: u32,
}

/// What any task may hold: read in one pass, which a tagged enum is not. Fields that are not known
/// are left aside: a newer version that needs them read says so by its format.
#[derive(Deserialize)]
struct OpenedTask {
    v: u32,
    task: TaskKind,
    resource: Option<ResourceId>,
    partition: Option<PartitionId>,
    documents: Option<Vec<DocumentVersion>>,
    lanes: Option<Vec<String>>,
    subscription: Option<SubscriptionId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum TaskKind {
    Partition,
    Spread,
    Wake,
    Refresh,
    Restored,
}

impl OpenedTask {
    fn into_task(self) -> Option<Task> {
        let Self { v: _, task, resource, partition, documents, lanes, subscription } = self;
        Some(match (task, resource, partition, documents, lanes, subscription) {
            (TaskKind::Partition, Some(resource), _, Some(documents), _, _) => {
                Task::Partition { resource, documents }
            }
            (TaskKind::Spread, Some(resource), Some(partition), Some(documents), _, _) => {
                Task::Spread { resource, partition, documents }
            }
            (TaskKind::Wake, _, _, _, Some(lanes), _) => {
                let lanes = lanes.iter().map(|lane| lane.parse().ok()).collect::<Option<_>>()?;
                Task::Wake { lanes }
            }
            (TaskKind::Refresh, _, _, _, _, Some(subscription)) => Task::Refresh { subscription },
            (TaskKind::Restored, ..) => Task::Restored,
            _ => return None,
        })
    }
}

impl Task {
    /// The task in its stored form.
    ///
    /// ```
    /// use flare_core::internals::Task;
    /// use flare_core::model::LaneId;
    ///
    /// let lane: LaneId = "0190163d-8694-739b-aea5-966c26f8ad91-0".parse()?;
    /// let wake = Task::Wake { lanes: vec![lane] };
    /// assert_eq!(Task::decode(&wake.encode()?)?, wake);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode(&self) -> Result<Bytes> {
        serde_json::to_vec(&Sealed { v: FORMAT, task: self })
            .map(Bytes::from)
            .map_err(|source| Error::new(ErrorKind::Internal, "encode_task").with_source(source))
    }

    /// Reads a task from its stored form.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        const UNKNOWN: &str = "names no task this version knows";
        let corrupt = |detail: &'static str| {
            Error::new(ErrorKind::Corrupt, "decode_task").with_detail(detail)
        };
        let opened = match serde_json::from_slice::<OpenedTask>(bytes) {
            Ok(opened) if opened.v == FORMAT => opened,
            Ok(opened) => return Err(other_format(opened.v)),
            // What another version wrote is told apart from what none did.
            Err(source) => match serde_json::from_slice::<Stamp>(bytes) {
                Ok(Stamp { v }) if v != FORMAT => return Err(other_format(v)),
                Ok(_) => return Err(corrupt(UNKNOWN).with_source(source)),
                Err(_) => return Err(corrupt("is no task of Flare's").with_source(source)),
            },
        };
        opened.into_task().ok_or_else(|| corrupt(UNKNOWN))
    }

    /// The documents a partition or spread task is about, with their keys.
    pub fn documents(&self) -> impl Iterator<Item = (DocumentKey, Version)> {
        let (resource, documents) = match self {
            Self::Partition { resource, documents } | Self::Spread { resource, documents, .. } => {
                (Some(*resource), documents.as_slice())
            }
            Self::Wake { .. } | Self::Refresh { .. } | Self::Restored => (None, [].as_slice()),
        };
        documents.iter().filter_map(move |document| {
            resource.map(|resource| {
                (DocumentKey::new(resource, document.url.clone()), document.version)
            })
        })
    }
}

/// Lanes as their names: half as long as what they consist of.
fn as_text<S: Serializer>(lanes: &[LaneId], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(lanes.iter().map(LaneId::to_string))
}

/// A task of a newer format is for a newer version to read; of an older one there is none.
fn other_format(v: u32) -> Error {
    let detail = format!("is written in format {v}, this version reads {FORMAT}");
    if v < FORMAT {
        return Error::new(ErrorKind::Corrupt, "decode_task").with_detail(detail);
    }
    let shown = format!("of format {v}");
    let name = RecordName::Unnamed { kind: RecordKind::Task, shown };
    let newer = Unreadable::new(name, WhyUnreadable::Newer { needs: v });
    Error::of_record("decode_task", newer).with_detail(detail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Revision;

    fn documents() -> Vec<DocumentVersion> {
        let at =
            |url: &str, version| DocumentVersion { url: DocumentUrl::parse(url).unwrap(), version };
        vec![
            at("http://a.example/users/1", Version::live(Revision::new(7))),
            at("http://a.example/users/%C3%A9", Version::gone(Revision::new(i64::MIN))),
        ]
    }

    fn resource() -> ResourceId {
        ResourceId::from_bytes([1; 16])
    }

    /// What nodes of this release write, byte for byte: nodes of the next one have to read it.
    fn stored() -> [(Task, &'static str); 5] {
        let lane = LaneId::new(SubscriptionId::from_bytes([2; 16]), 3);
        let partition = PartitionId::new(4);
        [
            (
                Task::Partition { resource: resource(), documents: documents() },
                r#"{"v":1,"task":"partition","resource":"01010101-0101-0101-0101-010101010101","documents":[{"url":"http://a.example/users/1","version":{"revision":7,"gone":false}},{"url":"http://a.example/users/%C3%A9","version":{"revision":-9223372036854775808,"gone":true}}]}"#,
            ),
            (
                Task::Spread {
                    resource: resource(),
                    partition,
                    documents: documents()[..1].to_vec(),
                },
                r#"{"v":1,"task":"spread","resource":"01010101-0101-0101-0101-010101010101","partition":4,"documents":[{"url":"http://a.example/users/1","version":{"revision":7,"gone":false}}]}"#,
            ),
            (
                Task::Wake { lanes: vec![lane] },
                r#"{"v":1,"task":"wake","lanes":["02020202-0202-0202-0202-020202020202-3"]}"#,
            ),
            (
                Task::Refresh { subscription: lane.subscription },
                r#"{"v":1,"task":"refresh","subscription":"02020202-0202-0202-0202-020202020202"}"#,
            ),
            (Task::Restored, r#"{"v":1,"task":"restored"}"#),
        ]
    }

    #[test]
    fn the_stored_form_stays_what_it_is() {
        for (task, text) in stored() {
            assert_eq!(String::from_utf8(task.encode().unwrap().to_vec()).unwrap(), text);
            assert_eq!(Task::decode(text.as_bytes()).unwrap(), task);
        }
    }

    #[test]
    fn what_is_no_task_is_refused_with_a_reason() {
        let wake = stored()[2].1;
        let wrong = [
            ("", "is no task of Flare's"),
            ("{}", "is no task of Flare's"),
            ("[1]", "names no task this version knows"),
            (&wake.replace("\"v\":1", "\"v\":2"), "is written in format 2, this version reads 1"),
            (&wake.replace("wake", "sleep"), "names no task this version knows"),
            (&wake.replace("02-3", "02-70000"), "names no task this version knows"),
            (r#"{"v":1,"task":"partition","resource":"x","documents":[]}"#, "names no task"),
        ];
        for (text, reason) in wrong {
            let error = Task::decode(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_newer_version_adds_is_left_aside_and_what_it_must_have_read_is_left_to_it() {
        for (task, text) in stored() {
            let more = text.replacen('{', r#"{"colour":{"red":[1]},"#, 1);
            let more = more.replace(r#"{"url""#, r#"{"shade":1,"url""#);
            assert_eq!(Task::decode(more.as_bytes()).unwrap(), task, "{more}");
            let newer = more.replace(r#""v":1"#, r#""v":2"#);
            let error = Task::decode(newer.as_bytes()).unwrap_err();
            assert!(error.unreadable().is_some_and(Unreadable::is_newer), "{error}");
        }
        let damaged = Task::decode(b"{\"v\":1}").unwrap_err();
        assert!(damaged.unreadable().is_none());
    }

    #[test]
    fn documents_come_with_their_keys() {
        for (task, _) in stored() {
            for (key, version) in task.documents() {
                assert_eq!(key.resource, resource());
                assert!(documents().contains(&DocumentVersion { url: key.url, version }));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_break_decoding(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Task::decode(&bytes);
        }

        #[test]
        fn no_damage_breaks_decoding(
            which in 0..5usize, at in 0..300usize, byte: u8, cut: bool,
        ) {
            let mut bytes = stored()[which].1.as_bytes().to_vec();
            let at = at % bytes.len();
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            let _ = Task::decode(&bytes);
        }
    }
}
