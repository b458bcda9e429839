//! What most hosts import: `use flare_core::prelude::*;`.

#[cfg(feature = "http")]
pub use crate::http::{Guard, HttpConfig};
pub use crate::model::subscription::{Method, RetryPolicy};
pub use crate::model::{
    Action, DocumentChange, NewResource, Resource, ResourceId, Subscription, SubscriptionId,
    SubscriptionSpec, SubscriptionStatus,
};
pub use crate::pipeline::{Event, EventKind, EventListener, Settings};
pub use crate::{
    Backend, Error, ErrorKind, Flare, FlareBuilder, Left, Result, Runtime, RuntimeHandle,
};
