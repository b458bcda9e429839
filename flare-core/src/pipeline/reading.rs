//! Takes the keys of documents; gives the documents, no more of them at a time than the process has room for.
//! How large they are is known only once they are read. Waits for the store alone.

use super::context::Context;
use super::lane::Reserved;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Document, DocumentKey};

/// The most documents that a filter is shown together, and that go again at once.
const AT_ONCE: usize = 16;

/// Documents that were read.
pub(crate) struct ReadDocuments {
    /// One answer for each of the first keys, as many as there was room for.
    pub(crate) found: Vec<Result<Option<Document>>>,
    /// The size of the largest.
    pub(crate) largest: usize,
}

/// Reads documents until there is no room for more.
pub(crate) async fn read_within(
    context: &Context,
    mut keys: &[DocumentKey],
    room: &Reserved,
) -> Result<ReadDocuments> {
    let mut reading = room.reading();
    let mut found = Vec::with_capacity(keys.len().min(room.documents));
    while !keys.is_empty() && reading.next() > 0 {
        let count = reading.next().min(context.batch_limit()).min(keys.len());
        let (next, rest) = keys.split_at(count);
        let ask = |keys| context.repository.documents(keys);
        let read = context.each_readable(next.to_vec(), ask).await?;
        let sizes = read.iter().map(|it| it.as_ref().ok().and_then(Option::as_ref).map_or(0, size));
        reading.read(sizes);
        found.extend(read);
        keys = rest;
    }
    Ok(ReadDocuments { found, largest: reading.largest() })
}

/// Shows documents to a caller that lets them go again, in the order of their keys: each that is there and can
/// be read, else nothing. There is always room for one of them, so no caller waits for another one's to go.
pub(crate) async fn show_each(
    context: &Context,
    mut keys: &[DocumentKey],
    mut show: impl FnMut(&DocumentKey, Option<Document>),
) -> Result<()> {
    let mut part = context.content.part();
    while !keys.is_empty() {
        // Nothing is held by then, so there is one of its own at the least.
        let room = part.reserve(keys.len().min(AT_ONCE), false);
        let room = room.ok_or_else(|| Error::new(ErrorKind::Internal, "documents"))?;
        let some = keys.get(..room.documents).unwrap_or(keys);
        let ReadDocuments { found, largest } = read_within(context, some, &room).await?;
        part.learn(largest);
        let (shown, rest) = keys.split_at(found.len());
        for (key, document) in shown.iter().zip(found) {
            show(key, document.ok().flatten());
        }
        keys = rest;
        // No other task would run while thousands of filters are asked.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Bytes of a document's content.
pub(crate) fn size(document: &Document) -> usize {
    document.content.as_ref().map_or(0, |content| content.as_bytes().len())
}
