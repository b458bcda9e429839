//! Takes a put that another driver is to make; gives the statement and its values. Reads the resources, never the
//! document.

use bytes::Bytes;
use flare_core::model::{Content, DocumentUrl};
use flare_core::port::ResourceStore;
use flare_core::{Error, ErrorKind, Result};

use super::super::PostgresRepository;
use crate::error;

const OPERATION: &str = "prepare_put";

/// A put as a statement, for a driver that Flare does not know. Run inside a transaction of the host's own it is
/// committed with that, or not at all; its one row has one text: *created*, *updated*, *unchanged* or *stale*.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreparedPut {
    /// The statement; its values are the other fields, in their order.
    pub sql: String,
    /// `$1`, text: the id of the resource.
    pub resource: String,
    /// `$2`, text: the URL in normal form.
    pub url: String,
    /// `$3`, text: the document.
    pub content: String,
    /// `$4`, bigint: its revision.
    pub revision: i64,
}

impl PostgresRepository {
    pub(crate) async fn prepare_put(&self, url: &str, json: Bytes) -> Result<PreparedPut> {
        let invalid = |invalid| Error::invalid(OPERATION, invalid);
        let url = DocumentUrl::parse(url).map_err(invalid)?;
        let matched = self.match_resources(vec![url.clone()]).await?;
        let Some(resource) = matched.into_iter().flatten().next() else {
            let detail = format!("{url} matches the endpoint of no resource");
            return Err(error::of(ErrorKind::NotFound, OPERATION, detail).with_field("url"));
        };
        let (revision, content) = Content::parse(&resource.change, json).map_err(invalid)?;
        if content.as_bytes().len() > self.max_content {
            let detail = format!("more than {} bytes do not fit (max-content)", self.max_content);
            return Err(error::of(ErrorKind::TooLarge, OPERATION, detail).with_field("document"));
        }
        const SQL: &str = "SELECT flare.put_read($1::text::uuid, $2::text, $3::text, $4::bigint)";
        Ok(PreparedPut {
            sql: self.database.schema.text(SQL).into_owned(),
            resource: resource.id.to_string(),
            url: url.to_string(),
            // It was read as JSON, so it is text.
            content: String::from_utf8_lossy(content.as_bytes()).into_owned(),
            revision: revision.get(),
        })
    }
}
