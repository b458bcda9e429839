//! Takes what one stage has to say to the next; gives the bytes that travel through a queue, and
//! back. Carries ids, never content; every task may arrive twice, late, or not at all.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::model::{DocumentKey, DocumentUrl, LaneId, PartitionId, ResourceId, Version};

/// The format written today. Version N reads N and N − 1.
const FORMAT: u32 = 1;

/// A document at a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentVersion {
    /// Which document.
    pub url: DocumentUrl,
    /// Which version of it.
    pub version: Version,
}

/// What one stage of the journey asks of the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
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
    /// Look after a lane: it may have rows that are due.
    Wake {
        /// Which lane.
        lane: LaneId,
    },
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

#[derive(Deserialize)]
struct Opened {
    #[serde(flatten)]
    task: Task,
    #[serde(rename = "v")]
    _format: u32,
}

impl Task {
    /// The task in its stored form.
    ///
    /// ```
    /// use flare_core::model::LaneId;
    /// use flare_core::pipeline::Task;
    ///
    /// let lane: LaneId = "0190163d-8694-739b-aea5-966c26f8ad91-0".parse()?;
    /// let bytes = Task::Wake { lane }.encode()?;
    /// assert_eq!(Task::decode(&bytes)?, Task::Wake { lane });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode(&self) -> Result<Bytes> {
        serde_json::to_vec(&Sealed { v: FORMAT, task: self })
            .map(Bytes::from)
            .map_err(|source| Error::new(ErrorKind::Internal, "encode_task").source(source))
    }

    /// Reads a task from its stored form.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let corrupt =
            |detail: &'static str| Error::new(ErrorKind::Corrupt, "decode_task").detail(detail);
        let stamp: Stamp = serde_json::from_slice(bytes)
            .map_err(|source| corrupt("is no task of Flare's").source(source))?;
        if stamp.v != FORMAT {
            let detail = format!("is written in format {}, this version reads {FORMAT}", stamp.v);
            return Err(Error::new(ErrorKind::Corrupt, "decode_task").detail(detail));
        }
        let opened: Opened = serde_json::from_slice(bytes)
            .map_err(|source| corrupt("names no task this version knows").source(source))?;
        Ok(opened.task)
    }

    /// The documents a partition or spread task is about, with their keys.
    pub fn documents(&self) -> impl Iterator<Item = (DocumentKey, Version)> {
        let (resource, documents) = match self {
            Self::Partition { resource, documents } | Self::Spread { resource, documents, .. } => {
                (Some(*resource), documents.as_slice())
            }
            Self::Wake { .. } => (None, [].as_slice()),
        };
        documents.iter().filter_map(move |document| {
            resource.map(|resource| {
                (DocumentKey::new(resource, document.url.clone()), document.version)
            })
        })
    }
}
