//! Takes puts and deletes that are to be part of a host's own transaction; has the schema's own function write them
//! there, by the same rules as any other, and announce them by the same commit. Awaits whoever else has locked one of
//! the documents; never tries anything again that the transaction could not.

use std::collections::HashSet;

use bytes::Bytes;
use flare_core::model::{Content, DocumentChange, DocumentUrl, Resource, Revision};
use flare_core::port::ResourceStore;
use flare_core::{Error, ErrorKind, Result};

use super::super::PostgresRepository;
use crate::codec::read_word;
use crate::connection::{Within, WriteColumns};
use crate::error;

const WRITE: &str = "SELECT w.place, w.change FROM flare.write_documents($1::text[]::uuid[], $2::text[], $3::text[], \
     $4::bigint[], $5::bytea[], $6::boolean[]) w";

/// What a host wants of a document.
pub(crate) struct Wish {
    url: String,
    kind: WishKind,
}

enum WishKind {
    Put(Bytes),
    /// The revision as clients see it, if one is named.
    Delete(Option<String>),
}

impl Wish {
    pub(crate) fn put(url: &str, json: Bytes) -> Self {
        Self { url: url.to_owned(), kind: WishKind::Put(json) }
    }

    pub(crate) fn delete(url: &str, revision: Option<String>) -> Self {
        Self { url: url.to_owned(), kind: WishKind::Delete(revision) }
    }

    fn operation(&self) -> &'static str {
        match self.kind {
            WishKind::Put(_) => "put_in",
            WishKind::Delete(_) => "delete_in",
        }
    }

    /// What is to be written of the document, by the rules of the resources that match, the most specific first.
    fn write(
        &self,
        url: &DocumentUrl,
        resources: &[Resource],
        max_content: usize,
    ) -> Result<WriteIn> {
        let operation = self.operation();
        let Some((best, others)) = resources.split_first() else {
            let detail = format!("{url} matches the endpoint of no resource");
            return Err(error::of(ErrorKind::NotFound, operation, detail).with_field("url"));
        };
        let invalid = |invalid| Error::invalid(operation, invalid);
        let (revision, content) = match &self.kind {
            WishKind::Put(json) => {
                let read = Content::parse(&best.change, json.clone());
                let (revision, content) = read.map_err(invalid)?;
                check_length(operation, &content, max_content)?;
                (Some(revision), Some(content))
            }
            WishKind::Delete(shown) => {
                // It is deleted where it is stored, and by the rule of that resource.
                let read = |resource: &Resource| -> Result<Option<Revision>> {
                    let read = shown.as_ref().map(|shown| resource.change.read_shown(shown));
                    read.transpose().map_err(|wrong| invalid(wrong.within("revision")))
                };
                let revision = read(best)?;
                if others.iter().any(|other| read(other).ok() != Some(revision)) {
                    let detail = format!(
                        "several resources match {url} and read revision {} differently: delete it without one, \
                         or by the handle",
                        shown.as_deref().unwrap_or_default()
                    );
                    let error = error::of(ErrorKind::Unsupported, operation, detail);
                    return Err(error.with_field("revision"));
                }
                (revision, None)
            }
        };
        let others: Vec<String> = others.iter().map(|other| other.id.to_string()).collect();
        Ok(WriteIn {
            resource: best.id.to_string(),
            others: (!others.is_empty()).then(|| format!("{{{}}}", others.join(","))),
            url: url.clone(),
            revision: revision.map(Revision::get),
            content,
        })
    }
}

fn check_length(operation: &'static str, content: &Content, most: usize) -> Result<()> {
    let bytes = content.as_bytes().len();
    if bytes <= most {
        return Ok(());
    }
    let detail = format!("{bytes} bytes, at most {most} fit (max-content)");
    Err(error::of(ErrorKind::TooLarge, operation, detail).with_field("document"))
}

/// A version to write, or none to delete the document.
struct WriteIn {
    resource: String,
    /// The less specific resources that match, as an array of the server's.
    others: Option<String>,
    url: DocumentUrl,
    revision: Option<i64>,
    content: Option<Content>,
}

impl PostgresRepository {
    /// Writes inside a host's transaction; one answer each, or an error of all.
    pub(crate) async fn write_in(
        &self,
        mut transaction: impl Within,
        wishes: Vec<Wish>,
    ) -> Result<Vec<DocumentChange>> {
        let Some(operation) = wishes.first().map(Wish::operation) else { return Ok(Vec::new()) };
        let urls = wishes.iter().map(|wish| DocumentUrl::parse(&wish.url));
        let urls = urls.collect::<std::result::Result<Vec<_>, _>>();
        let urls = urls.map_err(|invalid| Error::invalid(operation, invalid))?;
        let matched = self.match_resources(urls.clone()).await?;
        let sql = self.database.schema.text(WRITE);
        let writes = wishes.iter().zip(&urls).zip(&matched);
        let writes = writes
            .map(|((wish, url), resources)| wish.write(url, resources, self.max_content))
            .collect::<Result<Vec<WriteIn>>>()?;
        let mut changes: Vec<Option<DocumentChange>> = vec![None; writes.len()];
        let mut left: Vec<usize> = (0..writes.len()).collect();
        // A document that occurs twice is written twice, in that order; the first time around locks them all.
        while !left.is_empty() {
            let mut seen: HashSet<&DocumentUrl> = HashSet::with_capacity(left.len());
            let (now, later): (Vec<usize>, Vec<usize>) =
                left.into_iter().partition(|at| seen.insert(&writes[*at].url));
            let some: Vec<&WriteIn> = now.iter().map(|at| &writes[*at]).collect();
            for (place, change) in write(&mut transaction, operation, &sql, &some).await? {
                if let Some(at) = now.get(place) {
                    changes[*at] = Some(change);
                }
            }
            left = later;
        }
        let changes = changes.into_iter().collect::<Option<Vec<DocumentChange>>>();
        changes.ok_or_else(|| {
            error::of(ErrorKind::Internal, operation, "a document has got no answer".to_owned())
        })
    }
}

/// Writes documents of different URLs; gives what came of each, by its place.
async fn write(
    transaction: &mut impl Within,
    operation: &'static str,
    sql: &str,
    writes: &[&WriteIn],
) -> Result<Vec<(usize, DocumentChange)>> {
    let columns = WriteColumns {
        resources: writes.iter().map(|write| write.resource.clone()).collect(),
        others: writes.iter().map(|write| write.others.clone()).collect(),
        urls: writes.iter().map(|write| write.url.as_str()).collect(),
        revisions: writes.iter().map(|write| write.revision).collect(),
        contents: writes
            .iter()
            .map(|write| write.content.as_ref().map(Content::as_bytes))
            .collect(),
        goes: writes.iter().map(|write| write.content.is_none()).collect(),
    };
    let written = transaction.write(operation, sql, &columns).await?;
    written.iter().map(|(place, change)| answer(operation, writes, *place, change)).collect()
}

fn answer(
    operation: &'static str,
    writes: &[&WriteIn],
    place: i64,
    change: &str,
) -> Result<(usize, DocumentChange)> {
    let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
    let newer = |_| {
        let url = writes.get(place).map(|write| write.url.as_str()).unwrap_or_default();
        let detail = format!("the document {url} was written by a newer version of Flare");
        error::of(ErrorKind::Unsupported, operation, detail)
    };
    Ok((place, read_word(change, "change").map_err(newer)?))
}
