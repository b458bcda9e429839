//! Takes what a client wishes; gives it checked, to store, show and act on. In the order of reading:
//! the whole, how it comes in, its parts. No I/O; knows no resource, and nothing of REST's JSON.

mod batch;
mod builder;
mod content;
mod data;
mod delivery;
mod endpoint;
mod filter;
mod headers;
mod input;
mod method;
mod mode;
mod rate;
mod record;
mod report;
mod retry;
mod signing;
mod spec;
mod status;
mod status_codes;
mod stored;
mod summary;
mod url;

pub use batch::{BATCH_BYTES, BatchOptions, MAX_BATCH, MAX_BATCH_WAIT};
pub use builder::SubscriptionBuilder;
pub use content::ContentOptions;
pub use data::{Data, DataNumber, DataScalar, DataValue, MAX_DATA_BYTES, MAX_DATA_ENTRIES};
pub use delivery::{DeliveryOptions, MAX_CONCURRENCY, MAX_INTERVAL, MAX_LANES, MAX_TIMEOUT};
pub use endpoint::{ClientEndpoint, EndpointOverride, RequestTemplate};
pub use filter::{Filter, MAX_FILTER_BYTES};
pub use headers::{Headers, MASK, MAX_HEADER_BYTES, MAX_HEADERS};
pub use input::SubscriptionInput;
pub use method::Method;
pub use mode::Mode;
pub use rate::Rate;
pub use record::Subscription;
pub use report::{BackfillProgress, SubscriptionReport};
pub use retry::{BackoffFunction, RetryPolicy, RetryPolicyBuilder};
pub use signing::{Signing, SigningChange};
pub use spec::SubscriptionSpec;
pub use status::SubscriptionStatus;
pub use status_codes::StatusCodes;
pub use stored::Stored;
pub use summary::{SubscriptionSummary, SummaryOrder};
pub use url::{MAX_URL_BYTES, UrlTemplate};

#[cfg(test)]
mod tests;
