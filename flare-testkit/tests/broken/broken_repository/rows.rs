//! Breaks RR1 to RR24.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Applied, BucketRange, ClaimEffect, DeadLetterId, DocumentKey, Epoch, Generation, LaneState,
    Present, ResourceId, Round, Row, RowEffect, RowKey, Spread, SpreadCause, SubscriptionId,
    Timestamp, Version,
};
use flare_core::port::{
    ClaimRows, ClaimUpdate, EpochGrant, Listing, Page, Pending, PendingQuery, Replay, RowRemoval,
    RowStore, RowUpdate, Scan, SpreadAnswer, SpreadDocuments,
};
use futures::TryStreamExt;

use super::{BrokenRepository, Fault, changed, ending, first, one_more};

#[async_trait]
impl RowStore for BrokenRepository {
    async fn store_time(&self) -> Result<Timestamp> {
        let time = self.inner.store_time().await?;
        Ok(if self.has(Fault::TimeOfAnotherClock) { time + Duration::from_secs(1) } else { time })
    }

    async fn next_epoch(&self) -> Result<EpochGrant> {
        let mut grant = self.inner.next_epoch().await?;
        let mut memory = self.memory();
        match memory.drawn.take() {
            Some(again) if self.has(Fault::EpochsDrawnTwice) => grant.epoch = again,
            _ => memory.drawn = Some(grant.epoch),
        }
        Ok(grant)
    }

    async fn spread_rows(&self, mut spreads: Vec<Spread>) -> Result<()> {
        if self.has(Fault::SpreadLostBesideAnEffect) && self.applying.load(Ordering::SeqCst) > 0 {
            return Ok(());
        }
        for spread in &mut spreads {
            self.memory().spread_to.insert(spread.subscription);
            if self.has(Fault::GenerationLost) {
                spread.generation = Generation::new(1);
            }
            let key = RowKey::new(spread.subscription, spread.document.url.clone());
            let (wanted, change) = (spread.wanted, spread.cause == SpreadCause::Change);
            let known =
                |row: &Row| change && row.wanted == wanted && row.settled == Some(row.wanted);
            if self.has(Fault::RefusedMakesARow)
                && !spread.makes_row()
                && self.row(&key).await.is_none()
            {
                spread.cause = SpreadCause::Change;
            }
            if self.has(Fault::RoundsBeginAgain)
                && let SpreadCause::Resync(round) = &mut spread.cause
                && let Some(row) = self.row(&key).await
            {
                *round = Round::new(round.get().max(row.round.get() + 1));
            }
            let stored = self.row(&key).await.filter(known);
            if self.has(Fault::SettledIsWantedAgain) && stored.is_some() {
                spread.wanted = Version::gone(spread.wanted.revision());
            }
        }
        self.inner.spread_rows(spreads).await
    }

    async fn spread_documents(&self, mut request: SpreadDocuments) -> Result<SpreadAnswer> {
        let SpreadDocuments { resource, documents, dispatch, .. } = request.clone();
        let partition = self.inner.partitions(resource).await?.first().copied();
        let members = match partition {
            Some(partition) => self.inner.members(resource, partition).await?,
            None => Vec::new(),
        };
        let spreads: Vec<Spread> = documents
            .iter()
            .flat_map(|(url, version)| request.spreads(&members, url, *version))
            .collect();
        let keys = spreads.iter().map(|it| RowKey::new(it.subscription, it.document.url.clone()));
        let before = self.inner.rows(keys.collect()).await?;
        if self.has(Fault::SpreadNeverDispatches) && !members.is_empty() {
            request.dispatch = false;
        }
        if self.has(Fault::SpreadGivesAnyContent) && request.most_content > 0 {
            request.most_content = usize::MAX;
        }
        let mut done = match self.inner.spread_documents(request).await? {
            SpreadAnswer::Done(done) => done,
            SpreadAnswer::Apart => {
                if self.has(Fault::SpreadsOneOfSeveralPartitions) {
                    self.inner.spread_rows(spreads).await?;
                }
                return Ok(SpreadAnswer::Apart);
            }
        };
        if self.has(Fault::SpreadsWhatIsOvertaken) {
            self.inner.spread_rows(spreads).await?;
        }
        if self.has(Fault::SpreadDispatchesWhatItLeaves) && dispatch {
            let key = |url| DocumentKey::new(resource, url);
            let all = documents.into_iter().map(|(url, version)| (key(url), version));
            self.inner.mark_dispatched(all.collect()).await.into_iter().collect::<Result<()>>()?;
        }
        if self.has(Fault::SpreadTellsNoMember) {
            done.members.clear();
        }
        if self.has(Fault::SpreadGivesRowsOfBefore) {
            let before: HashMap<_, _> =
                before.into_iter().flatten().map(|row| (row.key.clone(), row)).collect();
            for row in done.written.iter_mut().flat_map(|written| &mut written.rows) {
                *row = before.get(&row.key).cloned().unwrap_or_else(|| row.clone());
            }
        }
        Ok(SpreadAnswer::Done(done))
    }

    async fn rows(&self, mut keys: Vec<RowKey>) -> Result<Vec<Option<Row>>> {
        if self.has(Fault::RowsComeSorted) {
            keys.sort();
        }
        if self.has(Fault::UnreadableRowsAreMissing) {
            let mut rows = Vec::new();
            for key in keys {
                rows.push(first(self.inner.rows(vec![key]).await).unwrap_or_default());
            }
            return Ok(rows);
        }
        self.inner.rows(keys).await
    }

    fn pending_rows(&self, mut query: PendingQuery) -> Scan<'_, Row> {
        match self.fault {
            Fault::DemandIgnored => query.demanded = false,
            Fault::BucketsIgnored => query.buckets = BucketRange::ALL,
            Fault::DueByIsExclusive => {
                let just_before = |time| time - std::time::Duration::from_nanos(1);
                query.due_by = query.due_by.map(just_before);
            }
            _ => {}
        }
        query.limit = one_more(query.limit, self.has(Fault::OnePendingRowMore));
        let latest_first = self.has(Fault::PendingLatestFirst);
        changed(self.inner.pending_rows(query), move |rows| {
            if latest_first {
                rows.reverse();
            }
        })
    }

    async fn count_pending(&self, subscription: Option<SubscriptionId>) -> Result<Pending> {
        let mut pending = self.inner.count_pending(subscription).await?;
        if self.has(Fault::LagOffByOne) {
            pending.count += 1;
        }
        if self.has(Fault::NextDueForgotten) {
            pending.next_due = None;
        }
        Ok(pending)
    }

    fn pending_each(&self) -> Scan<'_, (SubscriptionId, Pending)> {
        let fault = self.fault;
        let told = self.memory().spread_to.clone();
        changed(self.inner.pending_each(), move |counts| match fault {
            Fault::OneThatIsBehindIsLeftOut => drop(counts.pop()),
            Fault::CountsOfEachOffByOne => counts.iter_mut().for_each(|(_, it)| it.count += 1),
            Fault::AgeOfEachForgotten => {
                counts.iter_mut().for_each(|(_, it)| it.oldest_since = None);
            }
            Fault::EveryoneIsCounted => {
                let known: BTreeSet<_> = counts.iter().map(|(id, _)| *id).collect();
                let others = told.into_iter().filter(|id| !known.contains(id));
                counts.extend(others.map(|id| (id, Pending::default())));
            }
            _ => {}
        })
    }

    async fn apply_rows(&self, epoch: Epoch, updates: Vec<RowUpdate>) -> Vec<Result<Applied>> {
        let mut answers = Vec::new();
        for mut update in updates {
            let mut epoch = epoch;
            if self.has(Fault::FenceIgnored)
                && let Some(row) = self.row(&update.key).await
            {
                epoch = epoch.max(row.epoch);
            }
            if let RowEffect::Settle { present, .. } = &mut update.effect
                && self.has(Fault::SettlingForgetsPresent)
            {
                *present = Present::No;
            }
            if self.has(Fault::SpreadLostBesideAnEffect) {
                self.applying.fetch_add(1, Ordering::SeqCst);
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
            }
            let answer = self.inner.apply_rows(epoch, vec![update]).await.pop().unwrap();
            if self.has(Fault::SpreadLostBesideAnEffect) {
                self.applying.fetch_sub(1, Ordering::SeqCst);
            }
            answers.push(match answer {
                Ok(Applied::Overtaken) if self.has(Fault::OvertakenSaysDone) => Ok(Applied::Done),
                answer => answer,
            });
        }
        answers
    }

    async fn claim_rows(&self, request: ClaimRows) -> Result<Vec<Row>> {
        let (subscription, max) = (request.subscription, request.max);
        if self.has(Fault::BeatenPullersGetNothing) && self.is_beaten().await {
            return Ok(Vec::new());
        }
        let rows = self.inner.claim_rows(request).await?;
        if rows.is_empty() && self.has(Fault::ClaimsHandedOutTwice) {
            let query = PendingQuery::new(subscription, max);
            return self.inner.pending_rows(query).try_collect().await;
        }
        Ok(rows)
    }

    async fn demand_rows(&self, subscription: SubscriptionId, max: usize) -> Result<u64> {
        if self.has(Fault::BeatenDemandsMarkNothing) && self.is_beaten().await {
            return Ok(0);
        }
        let max = one_more(max, self.has(Fault::DemandsOneMore));
        self.inner.demand_rows(subscription, max).await
    }

    async fn apply_claims(&self, updates: Vec<ClaimUpdate>) -> Vec<Result<Applied>> {
        let mut answers = Vec::new();
        for update in updates {
            let key = update.key.clone();
            let effect = update.effect.clone();
            let mut answer = self.inner.apply_claims(vec![update]).await.pop().unwrap();
            if let (Ok(Applied::Expired), ClaimEffect::Settle { version, present, .. }) =
                (&answer, effect)
                && self.has(Fault::LapsedClaimsSettle)
                && let Some(row) = self.row(&key).await
            {
                let effect = RowEffect::Settle { version, present, not_before: None };
                let update = RowUpdate { key, round: row.round, effect };
                answer = self.inner.apply_rows(row.epoch, vec![update]).await.pop().unwrap();
            }
            answers.push(answer);
        }
        answers
    }

    async fn expedite_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64> {
        let limit = one_more(limit, self.has(Fault::ExpeditesOneMore));
        let count = self.inner.expedite_rows(subscription, limit).await?;
        if self.has(Fault::ExpeditingForgetsAttempts) && count > 0 {
            let query = PendingQuery::new(subscription, 100);
            let rows: Vec<Row> = self.inner.pending_rows(query).try_collect().await?;
            for row in rows {
                self.restart(&row).await?;
            }
        }
        Ok(count)
    }

    async fn dead_letters(&self, subscription: SubscriptionId, page: Page) -> Result<Listing<Row>> {
        let mut listing = self.inner.dead_letters(subscription, page).await?;
        if self.has(Fault::NewestDeathFirst) {
            listing.items.reverse();
        }
        if self.has(Fault::DeadLettersLoseTheirError) {
            for dead in listing.items.iter_mut().filter_map(|row| row.dead.as_mut()) {
                dead.last_error = None;
            }
        }
        Ok(listing)
    }

    async fn find_dead_letters(
        &self,
        subscription: SubscriptionId,
        mut ids: Vec<DeadLetterId>,
    ) -> Result<Vec<Option<Row>>> {
        if self.has(Fault::DeadLettersFoundOutOfOrder) {
            ids.sort();
        }
        self.inner.find_dead_letters(subscription, ids).await
    }

    async fn replay_rows(&self, replays: Vec<Replay>) -> Vec<Result<bool>> {
        let mut answers = Vec::new();
        for replay in replays {
            let row = self.row(&replay.key).await;
            let replayed = self.inner.replay_rows(vec![replay]).await.pop().unwrap();
            match (replayed, row) {
                (Ok(false), Some(_)) if self.has(Fault::ReplaysTwice) => answers.push(Ok(true)),
                (Ok(true), Some(row)) if self.has(Fault::ReplayRestartsWhatIsPending) => {
                    if row.is_pending() {
                        self.restart(&row).await.unwrap();
                    }
                    answers.push(Ok(true));
                }
                (answer, _) => answers.push(answer),
            }
        }
        answers
    }

    async fn drop_dead_letters(&self, until: Timestamp, limit: usize) -> Result<u64> {
        if self.has(Fault::RetentionReplays) {
            let before = self.letters_until(until).await?;
            let count = before.len().min(limit);
            for row in before.into_iter().take(count) {
                let version = row.given_up.unwrap();
                let replay = Replay { key: row.key, version };
                self.inner.replay_rows(vec![replay]).await.pop().unwrap()?;
            }
            return Ok(count as u64);
        }
        let until = if self.has(Fault::RetentionIsImpatient) { Timestamp::MAX } else { until };
        let limit = one_more(limit, self.has(Fault::RetentionTakesOneMore));
        self.inner.drop_dead_letters(until, limit).await
    }

    async fn remove_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64> {
        let limit = one_more(limit, self.has(Fault::RemovesOneRowMore));
        self.inner.remove_rows(subscription, limit).await
    }

    async fn remove_settled_rows(
        &self,
        mut rows: Vec<(RowKey, Version)>,
    ) -> Vec<Result<RowRemoval>> {
        if self.has(Fault::RemovesNewerRows) {
            let newest = Version::gone(flare_core::model::Revision::new(i64::MAX));
            rows.iter_mut().for_each(|(_, version)| *version = newest);
        }
        let answers = self.inner.remove_settled_rows(rows).await.into_iter();
        let answers = answers.map(|answer| match answer {
            Ok(RowRemoval::Kept) if self.has(Fault::KeptSaysRemoved) => Ok(RowRemoval::Removed),
            answer => answer,
        });
        answers.collect()
    }

    async fn rows_of(
        &self,
        documents: Vec<DocumentKey>,
        after: Option<RowKey>,
        limit: usize,
    ) -> Result<Listing<Row>> {
        let limit = one_more(limit, self.has(Fault::OneRowOfADocumentMore));
        let mut rows = self.inner.rows_of(documents, after.clone(), limit).await?;
        if let Some(last) = after.filter(|_| self.has(Fault::RowsOfRepeatTheLast)) {
            let last = first(self.inner.rows(vec![last]).await)?;
            rows.items.splice(0..0, last);
            rows.items.truncate(limit);
        }
        if let Some(row) = rows.items.last_mut().filter(|_| self.has(Fault::RowsOfAnotherResource))
        {
            row.document.resource = ResourceId::from_bytes([0; 16]);
        }
        Ok(rows)
    }

    async fn store_lanes(&self, epoch: Epoch, lanes: Vec<LaneState>) -> Vec<Result<Applied>> {
        let mut answers = Vec::new();
        for lane in lanes {
            let mut epoch = epoch;
            if self.has(Fault::LaneFenceIgnored) {
                let stored = self.inner.lanes(lane.lane.subscription).await.unwrap();
                let stored = stored.items.into_iter().map(|it| it.epoch).max();
                epoch = epoch.max(stored.unwrap_or(epoch));
            }
            let answer = self.inner.store_lanes(epoch, vec![lane]).await.pop().unwrap();
            answers.push(match answer {
                Ok(Applied::Missing) if self.has(Fault::LanesOfNobodySayDone) => Ok(Applied::Done),
                answer => answer,
            });
        }
        answers
    }

    async fn lanes(&self, subscription: SubscriptionId) -> Result<Listing<LaneState>> {
        let mut lanes = self.inner.lanes(subscription).await?;
        let outlived = self.memory().outlived.clone().into_iter();
        lanes.items.extend(outlived.filter(|state| state.lane.subscription == subscription));
        if self.has(Fault::LanesOutOfOrder) {
            lanes.items.reverse();
        }
        Ok(lanes)
    }

    fn scan_lanes(&self) -> Scan<'_, LaneState> {
        if self.has(Fault::ScanEndsAtUnreadable) {
            return ending(self.inner.scan_lanes());
        }
        let (one_less, no_epoch) =
            (self.has(Fault::OneLaneIsLeftOut), self.has(Fault::ScannedLanesLoseTheirEpoch));
        changed(self.inner.scan_lanes(), move |lanes| {
            if one_less {
                lanes.pop();
            }
            if no_epoch {
                lanes.iter_mut().for_each(|state| state.epoch = Epoch::ZERO);
            }
        })
    }
}

impl BrokenRepository {
    async fn row(&self, key: &RowKey) -> Option<Row> {
        first(self.inner.rows(vec![key.clone()]).await).unwrap_or_default()
    }

    /// Whether another call is at the same rows: all that are come to this before the first of them goes on.
    async fn is_beaten(&self) -> bool {
        let others = self.applying.fetch_add(1, Ordering::SeqCst);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        self.applying.fetch_sub(1, Ordering::SeqCst);
        others > 0
    }

    /// Lets a row begin again, as nobody but a spread or a replay of its own may.
    async fn restart(&self, row: &Row) -> Result<()> {
        let effect = RowEffect::Retry {
            version: row.wanted,
            present: row.present,
            attempts: 0,
            due: row.since,
            first_failure: None,
        };
        let update = RowUpdate { key: row.key.clone(), round: row.round, effect };
        self.inner.apply_rows(row.epoch, vec![update]).await.pop().unwrap().map(drop)
    }

    async fn letters_until(&self, until: Timestamp) -> Result<Vec<Row>> {
        let subscriptions = self.memory().spread_to.clone();
        let mut letters = Vec::new();
        for subscription in subscriptions {
            let all = self.inner.dead_letters(subscription, Page::new(1_000, 0)).await?.items;
            letters.extend(
                all.into_iter()
                    .filter(|row| row.dead.as_ref().is_some_and(|dead| dead.died_at <= until)),
            );
        }
        Ok(letters)
    }
}
