//! Takes documents of a resource; gives everyone in its only partition a row that wants them, and says
//! who that is. Rows are written before a document is dispatched.

use flare_core::Result;
use flare_core::model::{DocumentKey, DocumentUrl, Spread, Version};
use flare_core::port::{DocumentsSpread, Member, SpreadAnswer, SpreadDocuments, WrittenRows};

use super::MemoryRepository;
use super::shard::Shard;
use crate::lock;

const OPERATION: &str = "spread_documents";

impl MemoryRepository {
    pub(super) fn spread_to_all(&self, request: &SpreadDocuments) -> Result<SpreadAnswer> {
        let (partitions, members) = self.seats(request.resource);
        if request.is_apart(partitions, &members) {
            return Ok(SpreadAnswer::Apart);
        }
        let taken = request.taken(members.len());
        let first = &request.documents[..taken];
        let keys: Vec<DocumentKey> = first.iter().map(|(url, _)| key(request, url)).collect();
        let heads = self.read_documents(OPERATION, &keys, Shard::head)?;
        let owed = first
            .iter()
            .zip(heads)
            .filter(|((_, version), head)| head.as_ref().is_some_and(|head| head.owes(*version)));
        let owed: Vec<&(DocumentUrl, Version)> = owed.map(|(document, _)| document).collect();
        self.write_spreads(&spreads(request, &members, &owed));
        if request.dispatch {
            for (url, version) in &owed {
                let mut shard = lock(self.documents.shard(url));
                shard.mark_dispatched(&key(request, url), *version);
            }
        }
        let mut answer = DocumentsSpread::new(taken, members);
        answer.spread = owed.into_iter().map(|(url, _)| url.clone()).collect();
        answer.written = self.written(request, &answer);
        Ok(SpreadAnswer::Done(answer))
    }

    /// What was written, as far as it may be given.
    fn written(&self, request: &SpreadDocuments, answer: &DocumentsSpread) -> Vec<WrittenRows> {
        let mut left = request.most_content;
        let mut written = Vec::new();
        for url in answer.spread.iter().filter(|_| request.most_content > 0) {
            let read = self.read_documents(OPERATION, &[key(request, url)], Shard::get);
            let Some(document) = read.ok().and_then(|mut read| read.pop().flatten()) else {
                continue;
            };
            let size = document.content.as_ref().map_or(0, |content| content.as_bytes().len());
            let Some(rest) = left.checked_sub(size) else { continue };
            left = rest;
            let row = |member: &Member| self.row_to_give(member.subscription, url);
            let rows = answer.members.iter().filter_map(row).collect();
            written.push(WrittenRows { document, rows });
        }
        written
    }
}

fn key(request: &SpreadDocuments, url: &DocumentUrl) -> DocumentKey {
    DocumentKey::new(request.resource, url.clone())
}

/// Those of one subscription next to each other, which share a turn of its lock.
fn spreads(
    request: &SpreadDocuments,
    members: &[Member],
    documents: &[&(DocumentUrl, Version)],
) -> Vec<Spread> {
    let spread = |member: &Member| {
        let Member { subscription, generation, .. } = *member;
        documents.iter().map(move |(url, version)| {
            Spread::new(subscription, generation, key(request, url), *version)
        })
    };
    members.iter().flat_map(spread).collect()
}
