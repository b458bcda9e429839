//! Takes what clients asked for when they were created and since: filters, calm, to be told anew; gives what may
//! hold for them, and what certainly does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flare_core::model::subscription::Filter;
use flare_core::model::{DocumentUrl, RowKey, Subscription, SubscriptionId, Version};
use flare_core::port::Repository;
use futures::FutureExt;

use crate::client::Versions;
use crate::known::Wanted;

/// What all clients of a history asked for.
pub(crate) struct AllAsked {
    /// Where it is found how a subscription was created: whether it was is not always told.
    store: Arc<dyn Repository>,
    of: BTreeMap<SubscriptionId, Asked>,
}

impl AllAsked {
    pub(crate) fn new(store: Arc<dyn Repository>) -> Self {
        Self { store, of: BTreeMap::new() }
    }

    /// It is found elsewhere from now on.
    #[allow(dead_code, reason = "memory bears no outage")]
    pub(crate) fn look_at(&mut self, store: Arc<dyn Repository>) {
        self.store = store;
    }

    /// Whether the row of a document that is told of has settled nothing: the one before it was forgotten.
    pub(crate) fn row_is_new(&self, id: SubscriptionId, document: &DocumentUrl) -> bool {
        let key = RowKey::new(id, document.clone());
        // Stores of histories answer at once.
        let mut rows = self.store.rows(vec![key]).now_or_never().unwrap().unwrap();
        rows.pop().flatten().is_some_and(|row| row.settled.is_none())
    }

    /// What one of them asked for. It is looked up as long as nobody can have replaced it.
    pub(crate) fn of(&mut self, id: SubscriptionId) -> &mut Asked {
        let Self { store, of } = self;
        of.entry(id).or_insert_with(|| {
            // Stores of histories answer at once.
            let stored = store.subscription(id).now_or_never().unwrap().unwrap();
            Asked::at_creation(stored.as_ref())
        })
    }
}

/// What a client asked for.
pub(crate) struct Asked {
    /// What filters it may have had.
    filters: Vec<Wanted>,
    /// The filter that counts for whatever is newer than this, where that is known.
    certain: Option<(Wanted, Versions)>,
    /// The shortest time it may have wanted to hear nothing more of a document.
    pub(crate) interval: Option<Duration>,
    /// How often it asked for everything, or what is there, to be told anew.
    pub(crate) retellings: u32,
}

impl Asked {
    fn at_creation(stored: Option<&Subscription>) -> Self {
        let spec = stored.map(|stored| &stored.spec);
        let filter = spec.and_then(|spec| spec.filter()).map(Filter::as_str);
        Self {
            filters: vec![Wanted::by(filter)],
            certain: None,
            interval: spec.and_then(|spec| spec.delivery().min_interval()),
            retellings: u32::from(spec.is_some_and(|spec| spec.backfill())),
        }
    }

    /// From now on it may want these documents alone, and be left alone for so long.
    pub(crate) fn may_be_replaced(&mut self, wanted: Wanted, interval: Option<Duration>) {
        self.filters.push(wanted);
        self.certain = None;
        self.interval = self.interval.min(interval);
    }

    /// It wants these documents alone, of whatever is newer than this.
    pub(crate) fn certainly_wants(&mut self, wanted: Wanted, versions: Versions) {
        self.certain = Some((wanted, versions));
    }

    /// Whether it wants a version, as far as that can be known.
    pub(crate) fn wants(&self, url: &str, version: Version) -> Option<bool> {
        if let Some((wanted, since)) = &self.certain
            && since.get(url) < Some(&version)
        {
            return Some(wanted.wants(version.revision().get()));
        }
        let (may_want, may_refuse) = self.may_want(version);
        (may_want != may_refuse).then_some(may_want)
    }

    /// Whether one of the filters it may have had wants a version, and whether one refuses it.
    pub(crate) fn may_want(&self, version: Version) -> (bool, bool) {
        let revision = version.revision().get();
        let wants = |wanted: &Wanted| wanted.wants(revision);
        (self.filters.iter().any(wants), !self.filters.iter().all(wants))
    }
}
