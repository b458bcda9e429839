//! Takes a request; gives its parts checked, or the refusal in the one shape. In the order in which
//! a request has them: path, query, headers, body.

mod bodies;
mod body;
mod etag;
mod ids;
mod page;

pub(crate) use bodies::Bodies;
pub(crate) use body::{JsonBody, Operation};
pub(crate) use etag::{IfMatch, etag};
pub(crate) use ids::{Ids, NodeOnly, ResourceOnly};
pub(crate) use page::{MAX_LIMIT, NoQuery, Paging};
