//! Takes keys of documents; gives the documents, one answer each.

use bytes::Bytes;
use flare_core::model::{Content, Document, DocumentKey};
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::PostgresRepository;
use super::name_of;
use crate::codec::document::StoredDocument;
use crate::codec::{id as uuid, unreadable_record};
use crate::fault::Worked;

macro_rules! select {
    ($content:literal, $join:literal) => {
        concat!(
            "SELECT d.n, d.url, d.revision, d.gone, d.updated, d.dispatched, d.dispatched_gone, d.open, \
             d.trace, d.moved, d.needs, k.i, ",
            $content,
            " FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY k(resource, url, i) \
             JOIN flare.resource_ids r ON r.id = k.resource JOIN flare.documents d \
             ON d.resource = r.n AND d.hash = hashtextextended(k.url, 0) AND d.url = k.url",
            $join
        )
    };
}

pub(super) const HEADS: &str = select!("NULL::bytea", "");
const WHOLE: &str = select!("c.content", " LEFT JOIN flare.contents c ON c.document = d.n");

impl PostgresRepository {
    pub(super) async fn read_heads(&self, keys: &[DocumentKey]) -> Worked<Vec<Option<Document>>> {
        self.read_by_keys("document_heads", HEADS, keys).await
    }

    pub(super) async fn read_whole(&self, keys: &[DocumentKey]) -> Worked<Vec<Option<Document>>> {
        self.read_by_keys("documents", WHOLE, keys).await
    }

    async fn read_by_keys(
        &self,
        operation: &'static str,
        sql: &'static str,
        keys: &[DocumentKey],
    ) -> Worked<Vec<Option<Document>>> {
        let resources: Vec<Uuid> = keys.iter().map(|key| uuid(key.resource.as_bytes())).collect();
        let urls: Vec<&str> = keys.iter().map(|key| key.url.as_str()).collect();
        let rows = self.database.all(operation, sql, &[&resources, &urls]).await?;
        by_keys(operation, keys, &rows)
    }
}

/// The documents of these keys, out of what was read; one answer each.
pub(super) fn by_keys(
    operation: &'static str,
    keys: &[DocumentKey],
    rows: &[Row],
) -> Worked<Vec<Option<Document>>> {
    let mut documents = vec![None; keys.len()];
    for row in rows {
        let place: i64 = row.try_get(11)?;
        let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
        if let (Some(key), Some(answer)) = (keys.get(place), documents.get_mut(place)) {
            *answer = document(operation, key, row)?;
        }
    }
    Ok(documents)
}

/// The document of a record, with the content that stands after it.
fn document(operation: &'static str, key: &DocumentKey, row: &Row) -> Worked<Option<Document>> {
    let Some(head) = StoredDocument::of(row)?.head() else { return Ok(None) };
    let head = head.map_err(|why| unreadable_record(operation, name_of(key), why))?;
    let mut document = head.document(key.clone());
    let content: Option<Vec<u8>> = row.try_get(12)?;
    document.content = content.map(|content| Content::from_stored(Bytes::from(content)));
    Ok(Some(document))
}
