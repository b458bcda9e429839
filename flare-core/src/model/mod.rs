//! What things are: values with their rules. No I/O, no clock, no log.

mod bucket;
mod invalid;
mod normal;
mod pattern;
mod url;

pub use bucket::{Bucket, BucketRange};
pub use invalid::Invalid;
pub use pattern::{Endpoint, EndpointConflict, EndpointIndex, Params};
pub use url::DocumentUrl;
