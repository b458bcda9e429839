//! What most hosts import: `use flare_core::prelude::*;`.

#[cfg(feature = "http")]
pub use crate::http::{Guard, HttpConfig};
pub use crate::model::subscription::{BatchOptions, Method, Mode, RetryPolicy};
pub use crate::model::{
    Action, DocumentChange, NewResource, Resource, ResourceId, Subscription, SubscriptionId,
    SubscriptionSpec, SubscriptionStatus,
};
pub use crate::pipeline::{
    Event, EventKind, EventListener, PullOutcome, PullSettlement, Pulled, Settings,
};
pub use crate::port::Page;
pub use crate::{
    Backend, Error, ErrorKind, Flare, FlareBuilder, Left, Pull, Result, Runtime, RuntimeHandle,
};
