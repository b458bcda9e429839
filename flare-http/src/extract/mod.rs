//! Takes a request; gives its parts checked, or the refusal in the one shape. In the order in which
//! a request has them: path, query, headers, body.

mod acting;
mod bodies;
mod body;
mod etag;
mod ids;
mod log;
mod ordered;
mod page;
#[cfg(feature = "profile")]
mod profile;

pub(crate) use acting::Acting;
pub(crate) use bodies::Bodies;
pub(crate) use body::{JsonBody, Operation};
pub(crate) use etag::{IfMatch, etag};
pub(crate) use ids::{
    ConsumerOnly, FeedingConsumer, Ids, NodeOnly, ProducerIds, ResourceOnly, SlotOnly,
};
pub(crate) use log::LogPaging;
pub(crate) use ordered::Ordered;
pub(crate) use page::{MAX_LIMIT, NoQuery, Paging};
#[cfg(feature = "profile")]
pub(crate) use profile::ProfileWish;
