//! Breaks RD1 to RD17.

use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::{
    Content, Document, DocumentChange, DocumentKey, DocumentUrl, ResourceId, Timestamp, Version,
};
use flare_core::port::{
    ClosePartition, Closed, DocumentHead, DocumentStore, DocumentWrite, OpenPartitions, Opened,
    Operation, Scan, Undispatched, WriteOutcome,
};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::{BrokenRepository, Fault, changed, first, one_more};

#[async_trait]
impl DocumentStore for BrokenRepository {
    async fn write_documents(&self, mut writes: Vec<DocumentWrite>) -> Vec<Result<WriteOutcome>> {
        let backwards = self.has(Fault::BatchRunsBackwards);
        if backwards {
            writes.reverse();
        }
        let mut outcomes = Vec::new();
        for write in writes {
            outcomes.push(self.write(write).await);
        }
        if backwards {
            outcomes.reverse();
        }
        outcomes
    }

    async fn documents(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        let mut documents = self.inner.documents(keys).await?;
        documents.iter_mut().flatten().for_each(|document| self.spoil(document));
        Ok(documents)
    }

    async fn document_heads(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        let mut heads = match self.has(Fault::HeadsCarryContent) {
            true => self.inner.documents(keys).await?,
            false => self.inner.document_heads(keys).await?,
        };
        for head in heads.iter_mut().flatten() {
            self.spoil(head);
            head.content = head.content.take().filter(|_| self.has(Fault::HeadsCarryContent));
        }
        if self.has(Fault::HeadsLeaveOutMisses) {
            heads.retain(Option::is_some);
        }
        Ok(heads)
    }

    async fn open_partitions(&self, mut opens: Vec<OpenPartitions>) -> Vec<Result<Opened>> {
        let asked: Vec<_> = opens.iter().map(|open| open.partitions.clone()).collect();
        for open in &mut opens {
            if self.has(Fault::OpensAtAnyVersion) {
                open.version = self.version(&open.key).await.unwrap_or(open.version);
            }
        }
        let answers = self.inner.open_partitions(opens).await;
        let answers = answers.into_iter().zip(asked).map(|(answer, asked)| match answer {
            Ok(Opened::Open(_)) if self.has(Fault::OpenAnswersWhatWasAsked) => {
                Ok(Opened::Open(asked))
            }
            answer => answer,
        });
        answers.collect()
    }

    async fn close_partitions(&self, mut closes: Vec<ClosePartition>) -> Vec<Result<Closed>> {
        for close in &mut closes {
            let version = self.version(&close.key).await;
            if self.has(Fault::ClosesAtAnyVersion) {
                close.version = version.unwrap_or(close.version);
            }
            if self.has(Fault::FirstRemovalDispatches) && version == Some(close.version) {
                self.inner.mark_dispatched(vec![(close.key.clone(), close.version)]).await;
            }
        }
        self.inner.close_partitions(closes).await
    }

    async fn mark_dispatched(&self, mut versions: Vec<(DocumentKey, Version)>) -> Vec<Result<()>> {
        if self.has(Fault::MarksWhateverIsStored) {
            for (key, version) in &mut versions {
                *version = self.version(key).await.unwrap_or(*version);
            }
        }
        self.inner.mark_dispatched(versions).await
    }

    fn undispatched(&self, until: Timestamp) -> Scan<'_, Undispatched> {
        let until = if self.has(Fault::FindsWhatIsTooYoung) { Timestamp::MAX } else { until };
        let shows_notes = !self.has(Fault::UndispatchedOnesShowNoNote);
        let shown = move |mut found: Undispatched| {
            found.moved_from = found.moved_from.filter(|_| shows_notes);
            found
        };
        self.inner.undispatched(until).map_ok(shown).boxed()
    }

    async fn take_puts_beside(&self, limit: usize, wait: Duration) -> Result<Vec<Undispatched>> {
        if self.has(Fault::EveryPutIsBeside) {
            return self.inner.undispatched(Timestamp::MAX).take(limit).try_collect().await;
        }
        self.inner.take_puts_beside(limit, wait).await
    }

    async fn count_undispatched(&self, resource: Option<ResourceId>) -> Result<u64> {
        let count = self.inner.count_undispatched(resource).await?;
        Ok(count + u64::from(self.has(Fault::UndispatchedMiscounted)))
    }

    fn scan_documents(
        &self,
        resource: ResourceId,
        after: Option<DocumentUrl>,
    ) -> Scan<'_, DocumentHead> {
        let scan = self.inner.scan_documents(resource, after.clone());
        let Some(after) = after.filter(|_| self.has(Fault::ScanRepeatsTheLast)) else {
            return scan;
        };
        let again = async move {
            let key = DocumentKey::new(resource, after);
            let last = first(self.inner.documents(vec![key]).await)?;
            let head = last.map(|it| DocumentHead::new(it.key, it.version, it.updated_at));
            Ok::<_, flare_core::Error>(stream::iter(head.map(Ok)))
        };
        stream::once(again).try_flatten().chain(scan).boxed()
    }

    fn tombstones(&self, after: Option<Timestamp>, until: Timestamp) -> Scan<'_, DocumentHead> {
        let until = if self.has(Fault::TombstonesTooYoung) { Timestamp::MAX } else { until };
        let found = self.inner.tombstones(after, until);
        match self.has(Fault::TombstonesLatestFirst) {
            true => changed(found, |heads| heads.reverse()),
            false => found,
        }
    }

    async fn remove_document(&self, key: &DocumentKey, version: Version) -> Result<bool> {
        let stored = self.version(key).await;
        if self.has(Fault::RemovesUndispatched) && stored == Some(version) {
            self.inner.mark_dispatched(vec![(key.clone(), version)]).await;
        }
        let any = stored.filter(|_| self.has(Fault::RemovesAnyVersion));
        self.inner.remove_document(key, any.unwrap_or(version)).await
    }

    async fn count_documents(&self, resource: ResourceId) -> Result<u64> {
        let count = self.inner.count_documents(resource).await?;
        Ok(if self.has(Fault::CountsOneDocumentMore) { count + 1 } else { count })
    }

    async fn remove_documents(&self, resource: ResourceId, limit: usize) -> Result<u64> {
        let limit = one_more(limit, self.has(Fault::RemovesOneDocumentMore));
        self.inner.remove_documents(resource, limit).await
    }
}

impl BrokenRepository {
    async fn stored(&self, key: &DocumentKey) -> Option<Document> {
        first(self.inner.documents(vec![key.clone()]).await).unwrap_or_default()
    }

    async fn version(&self, key: &DocumentKey) -> Option<Version> {
        self.stored(key).await.map(|document| document.version)
    }

    async fn write(&self, mut write: DocumentWrite) -> Result<WriteOutcome> {
        let key = write.key.clone();
        let operation = write.operation.clone();
        let is_delete = matches!(operation, Operation::Delete { .. });
        if self.has(Fault::DeletesLoseTheirTrace) && is_delete {
            write.trace = None;
        }
        let before = self.stored(&key).await;
        if let Operation::Leave { at } = &mut write.operation
            && self.has(Fault::LeavesWhateverIsThere)
        {
            *at = before.as_ref().map_or(*at, |before| before.version);
        }
        let note = write.moved_from;
        let mut outcome = match self.inner.write_documents(vec![write]).await.pop().unwrap() {
            Err(_) if self.has(Fault::TooLargeSaysBusy) => {
                return Err(Error::new(ErrorKind::Busy, "write_documents"));
            }
            Err(error)
                if error.unreadable().is_some() && self.has(Fault::NewerDocumentsAreAnswered) =>
            {
                return Ok(WriteOutcome::new(DocumentChange::Updated, None, true));
            }
            answer => answer?,
        };
        let version = outcome.version;
        let stored = before.as_ref().map(|before| before.version) != version;
        match self.fault {
            Fault::LaterChangesDropTheNote if stored => {
                self.memory().notes.insert(key, note);
            }
            Fault::NotesOutliveTheirDispatch if stored && note.is_some() => {
                self.memory().notes.insert(key, note);
            }
            Fault::StaleSaysUnchanged if outcome.change == DocumentChange::Stale => {
                outcome.change = DocumentChange::Unchanged;
            }
            Fault::EveryWriterCreates
                if outcome.change == DocumentChange::Unchanged && !is_delete =>
            {
                outcome.change = DocumentChange::Created;
            }
            Fault::SilentTombstonesAreUndispatched
                if outcome.change == DocumentChange::Unchanged && is_delete =>
            {
                outcome.undispatched = true;
            }
            Fault::RaisedTombstonesAreDispatched
                if outcome.change == DocumentChange::Unchanged && is_delete =>
            {
                if let Some(version) = version {
                    self.inner.mark_dispatched(vec![(key, version)]).await;
                    outcome.undispatched = false;
                }
            }
            Fault::OpenSetSurvives => {
                if let Some(open) = before.filter(|it| Some(it.version) != version)
                    && let (Some(version), Some(partitions)) = (version, open.open)
                {
                    self.inner
                        .open_partitions(vec![OpenPartitions { key, version, partitions }])
                        .await;
                }
            }
            Fault::EqualRevisionReplaces => {
                if let Operation::Put { content, revision } = operation
                    && Some(Version::live(revision)) == version
                {
                    self.memory().contents.insert(key, content);
                }
            }
            _ => {}
        }
        Ok(outcome)
    }

    fn spoil(&self, document: &mut Document) {
        match self.fault {
            Fault::DispatchedIsAFlag if document.is_undispatched() => document.dispatched = None,
            Fault::LaterChangesDropTheNote | Fault::NotesOutliveTheirDispatch => {
                if let Some(note) = self.memory().notes.get(&document.key) {
                    let spread = !document.is_undispatched();
                    let outlives = self.has(Fault::NotesOutliveTheirDispatch);
                    document.moved_from = if spread && !outlives { None } else { *note };
                }
            }
            Fault::DeleteDropsContent if document.version.is_gone() => document.content = None,
            Fault::EqualRevisionReplaces => {
                if let Some(content) = self.memory().contents.get(&document.key) {
                    document.content = Some(content.clone());
                }
            }
            Fault::ContentIsRewritten => {
                if let Some(content) = &document.content {
                    let tight: Vec<u8> =
                        content.as_bytes().iter().copied().filter(|byte| *byte != b' ').collect();
                    document.content = Some(Content::from_stored(tight.into()));
                }
            }
            _ => {}
        }
    }
}
