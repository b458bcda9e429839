//! What is asked of a store that spreads documents to everyone at once, and what it answers. Values; and
//! the way of a store that needs several steps for it.

use std::collections::HashMap;

use super::{Member, Repository};
use crate::error::Result;
use crate::model::{Document, DocumentKey, DocumentUrl, ResourceId, Row, RowKey, Spread, Version};

/// Documents of one resource that are to be spread to everyone who subscribed to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpreadDocuments {
    /// Of which resource.
    pub resource: ResourceId,
    /// The documents, each once, and the version of each that is to be spread.
    pub documents: Vec<(DocumentUrl, Version)>,
    /// Rows to write at most.
    pub most_rows: usize,
    /// Whether what is spread is dispatched with it.
    pub dispatch: bool,
    /// Bytes of content that may be given back, with the rows; if none may be, no row is.
    pub most_content: usize,
}

impl SpreadDocuments {
    /// Documents to spread, about no more than `most_rows` rows at a time.
    pub const fn new(
        resource: ResourceId,
        documents: Vec<(DocumentUrl, Version)>,
        most_rows: usize,
    ) -> Self {
        Self { resource, documents, most_rows, dispatch: false, most_content: 0 }
    }

    /// The same; what is spread is dispatched.
    #[must_use]
    pub const fn dispatching(mut self, dispatch: bool) -> Self {
        self.dispatch = dispatch;
        self
    }

    /// The same; rows are given back, with so many bytes of content at most.
    #[must_use]
    pub const fn giving(mut self, most_content: usize) -> Self {
        self.most_content = most_content;
        self
    }

    /// How many of the documents are taken if so many are to be told of each; none, if not even one can be.
    pub fn taken(&self, members: usize) -> usize {
        let fit = self.most_rows.checked_div(members).unwrap_or(usize::MAX);
        fit.min(self.documents.len())
    }

    /// Whether it is not the store's to do: of several partitions each is spread by itself, and a client that has
    /// a filter has its documents looked at first.
    pub fn is_apart(&self, partitions: usize, members: &[Member]) -> bool {
        let plain = partitions <= 1 && !members.iter().any(|member| member.filtered);
        !plain || self.taken(members.len()) < self.documents.len().min(1)
    }

    /// The rows that one document makes.
    pub fn spreads<'a>(
        &'a self,
        members: &'a [Member],
        url: &'a DocumentUrl,
        version: Version,
    ) -> impl Iterator<Item = Spread> + 'a {
        members.iter().map(move |member| {
            let document = DocumentKey::new(self.resource, url.clone());
            Spread::new(member.subscription, member.generation, document, version)
        })
    }
}

/// What became of documents that were to be spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpreadAnswer {
    /// Nothing was written: there are several partitions, a member with a filter, or more members than
    /// rows may be written.
    Apart,
    /// Some of them are spread.
    Done(DocumentsSpread),
}

/// Documents that were spread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DocumentsSpread {
    /// So many of those that were named, the first ones, have nothing left to be spread now.
    pub taken: usize,
    /// Who was told.
    pub members: Vec<Member>,
    /// Those of them that had something left to be spread.
    pub spread: Vec<DocumentUrl>,
    /// What they are now, as far as it was asked for.
    pub written: Vec<WrittenRows>,
}

impl DocumentsSpread {
    /// An answer as a backend hands it out.
    pub const fn new(taken: usize, members: Vec<Member>) -> Self {
        Self { taken, members, spread: Vec::new(), written: Vec::new() }
    }
}

/// A document that was spread, and the rows that want it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRows {
    /// The document, with its content.
    pub document: Document,
    /// The rows as they were written.
    pub rows: Vec<Row>,
}

/// Spreads documents by the other calls of a store: for one that cannot do it in one write.
pub async fn spread_in_steps(
    store: &dyn Repository,
    request: SpreadDocuments,
) -> Result<SpreadAnswer> {
    let key = |url: &DocumentUrl| DocumentKey::new(request.resource, url.clone());
    let keys: Vec<DocumentKey> = request.documents.iter().map(|(url, _)| key(url)).collect();
    let heads = store.document_heads(keys);
    let (partitions, heads) = futures::join!(store.partitions(request.resource), heads);
    let (partitions, heads) = (partitions?, heads?);
    let members = match partitions[..] {
        [only] => store.members(request.resource, only).await?,
        _ => Vec::new(),
    };
    if request.is_apart(partitions.len(), &members) {
        return Ok(SpreadAnswer::Apart);
    }
    let taken = request.taken(members.len());
    let mut answer = DocumentsSpread::new(taken, members);
    let owed = request.documents.iter().zip(heads).take(taken);
    let owed: Vec<_> = owed
        .filter(|((_, version), head)| head.as_ref().is_some_and(|head| head.owes(*version)))
        .map(|(document, _)| document.clone())
        .collect();
    let spread = |(url, version): &(DocumentUrl, Version)| {
        request.spreads(&answer.members, url, *version).collect::<Vec<_>>()
    };
    let rows: Vec<Spread> = owed.iter().flat_map(spread).collect();
    if !rows.is_empty() {
        store.spread_rows(rows).await?;
    }
    if request.dispatch && !owed.is_empty() {
        let versions = owed.iter().map(|(url, version)| (key(url), *version)).collect();
        store.mark_dispatched(versions).await.into_iter().collect::<Result<()>>()?;
    }
    answer.spread = owed.into_iter().map(|(url, _)| url).collect();
    if request.most_content > 0 && !answer.spread.is_empty() && !answer.members.is_empty() {
        answer.written = read_back(store, &request, &answer).await?;
    }
    Ok(SpreadAnswer::Done(answer))
}

/// What was written, where all of it can be read and is not too large.
async fn read_back(
    store: &dyn Repository,
    request: &SpreadDocuments,
    answer: &DocumentsSpread,
) -> Result<Vec<WrittenRows>> {
    let DocumentsSpread { members, spread, .. } = answer;
    let key = |url: &DocumentUrl| DocumentKey::new(request.resource, url.clone());
    let rows = spread
        .iter()
        .flat_map(|url| members.iter().map(|member| RowKey::new(member.subscription, url.clone())));
    let documents = store.documents(spread.iter().map(key).collect());
    let (documents, rows) = futures::join!(documents, store.rows(rows.collect()));
    // A spread that looks for them finds out what is the matter.
    let (Ok(documents), Ok(rows)) = (documents, rows) else { return Ok(Vec::new()) };
    let mut by_url: HashMap<DocumentUrl, Vec<Row>> = HashMap::new();
    for row in rows.into_iter().flatten() {
        by_url.entry(row.key.url.clone()).or_default().push(row);
    }
    let mut left = request.most_content;
    let mut written = Vec::new();
    for document in documents.into_iter().flatten() {
        let rows = by_url.remove(&document.key.url).unwrap_or_default();
        let size = document.content.as_ref().map_or(0, |content| content.as_bytes().len());
        if let Some(rest) = left.checked_sub(size) {
            left = rest;
            written.push(WrittenRows { document, rows });
        }
    }
    Ok(written)
}
