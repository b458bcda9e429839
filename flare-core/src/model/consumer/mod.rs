//! What documents are pulled from: a consumer's settings, how its messages become documents, and what is done.

mod checkpoint;
mod endpoints;
mod mapping;
mod pointer;
mod preset;
mod record;
mod reject;
mod rejection;
mod settings;
mod state;

pub use checkpoint::Checkpoint;
pub use endpoints::SourceEndpoints;
pub use mapping::{
    DeleteInput, DeleteRule, JudgeExpression, MAX_SPLIT, MappedChange, MappedDocument, Mapping,
    MappingInput,
};
pub use pointer::MessagePointer;
pub use preset::MappingPreset;
pub use record::{Consumer, ConsumerStatus, NewConsumer, OnReject};
pub use reject::{MAX_REJECT_BYTES, Reject};
pub use rejection::{RejectReason, Rejection};
pub use settings::SourceSettings;
pub use state::{ConsumerRates, ConsumerState};

pub use super::WindowRates;
