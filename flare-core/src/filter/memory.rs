//! Takes filters and documents; gives what each filter says of each document. A filter is compiled once, and
//! asked once about each version of a document, however many subscriptions have it and however many
//! stages want to know. Both memories are bounded: what was not needed of late is done again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::compiled::CompiledFilter;
use super::language::FilterLanguage;
use super::subject::FilterSubject;
use super::trial::{FilterJudgement, FilterTrial};
use crate::model::{
    Document, DocumentKey, Filter, FilterVerdict, Invalid, Resource, Timestamp, Version,
};
use crate::tools::lock;

/// Bytes that compiled filters may hold, in each of two halves.
const COMPILED_BYTES: usize = 64 * 1024 * 1024;
/// Verdicts that are remembered, in each of two halves.
const VERDICTS: usize = 64 * 1024;

/// What a verdict about a document costs to remember beside the others: its name.
const DOCUMENT: usize = 16;

/// Tries a filter on a document, as clients would be judged by it. Refused as `filter` or `document`.
///
/// ```
/// use flare_core::filter::try_filter;
/// use flare_core::model::Filter;
///
/// let filter = Filter::new("document.total > 9007199254740992 && params.shop == 'bern'")?;
/// let tried = try_filter(&filter, br#"{"total":9007199254740993}"#, [("shop", "bern")])?;
/// assert!(tried.matches);
///
/// let refused = try_filter(&Filter::new("document.total >")?, b"{}", []).unwrap_err();
/// assert_eq!(refused.to_string(), "filter: line 1, column 17: mismatched input '<EOF>'");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
pub fn try_filter<'a>(
    filter: &Filter,
    document: &[u8],
    params: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<FilterTrial, Invalid> {
    let language = FilterLanguage::new();
    let compiled = compile(&language, filter)?;
    let subject = FilterSubject::new(&language.env(), document, None, params)?;
    Ok(FilterTrial::of(compiled.says(&subject)))
}

fn compile(language: &FilterLanguage, filter: &Filter) -> Result<CompiledFilter, Invalid> {
    CompiledFilter::new(language, filter).map_err(|invalid| invalid.within("filter"))
}

/// The filters of one Flare.
pub(crate) struct Filters {
    language: FilterLanguage,
    compiled: Mutex<TwoAges<Filter, Arc<NumberedFilter>>>,
    said: Mutex<TwoAges<JudgedVersion, Arc<Mutex<Verdicts>>>>,
    next: AtomicU64,
}

/// A compiled filter, and what its verdicts are kept by.
#[derive(Debug)]
struct NumberedFilter {
    number: u64,
    /// `None` if it cannot be compiled: another version may have taken it.
    compiled: Option<CompiledFilter>,
}

/// A version of a document. A tombstone may have been forgotten and the same revision put again, so the time
/// belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct JudgedVersion {
    key: DocumentKey,
    version: Version,
    updated_at: Timestamp,
}

type Verdicts = HashMap<u64, FilterVerdict>;

impl Filters {
    /// Refuses a filter that cannot be compiled, or that names a wildcard there is not.
    pub(crate) fn check(&self, filter: &Filter, wildcards: &[&str]) -> Result<(), Invalid> {
        let compiled = compile(&self.language, filter)?;
        compiled.check_params(wildcards).map_err(|invalid| invalid.within("filter"))
    }

    /// What filters say of a document, each in its place.
    pub(crate) fn judge(
        &self,
        filters: &[&Filter],
        resource: &Resource,
        document: &Document,
    ) -> FilterJudgement {
        let filters: Vec<_> = filters.iter().map(|filter| self.numbered(filter)).collect();
        let mut judgement = FilterJudgement::default();
        let Some(content) = &document.content else {
            // Deleted so long ago that nothing is left to tell, nor to keep to oneself.
            judgement.verdicts = vec![Some(FilterVerdict::Wants); filters.len()];
            return judgement;
        };
        let said = self.said_of(document);
        let mut said = lock(&said);
        let mut subject = None;
        for filter in &filters {
            let Some(compiled) = &filter.compiled else {
                judgement.verdicts.push(None);
                continue;
            };
            let verdict = said.get(&filter.number).copied().unwrap_or_else(|| {
                let subject = subject.get_or_insert_with(|| {
                    let params = resource.endpoint.matches(&document.key.url).unwrap_or_default();
                    let revision = resource.change.shown(document.version.revision());
                    let (env, json) = (self.language.env(), content.as_bytes());
                    FilterSubject::new(&env, json, Some(&revision), params.iter())
                });
                let asked = subject.as_ref().map_err(Invalid::to_string);
                let answer = asked.and_then(|subject| compiled.says(subject));
                judgement.evaluated += 1;
                judgement.failed += u64::from(answer.is_err());
                let verdict = FilterVerdict::of(answer.unwrap_or(false));
                said.insert(filter.number, verdict);
                verdict
            });
            judgement.verdicts.push(Some(verdict));
        }
        if judgement.evaluated > 0 {
            let more = usize::try_from(judgement.evaluated).unwrap_or(VERDICTS);
            lock(&self.said).grow(more, VERDICTS);
        }
        judgement
    }

    fn numbered(&self, filter: &Filter) -> Arc<NumberedFilter> {
        if let Some(known) = lock(&self.compiled).get(filter) {
            return Arc::clone(known);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let compiled = CompiledFilter::new(&self.language, filter).ok();
        let bytes = compiled.as_ref().map_or(0, |compiled| compiled.bytes);
        let mut known = lock(&self.compiled);
        // Another thread may have been faster: one number for each.
        if let Some(known) = known.get(filter) {
            return Arc::clone(known);
        }
        let compiled = Arc::new(NumberedFilter { number, compiled });
        known.grow(bytes, COMPILED_BYTES);
        known.insert(filter.clone(), Arc::clone(&compiled));
        compiled
    }

    fn said_of(&self, document: &Document) -> Arc<Mutex<Verdicts>> {
        let judged = JudgedVersion {
            key: document.key.clone(),
            version: document.version,
            updated_at: document.updated_at,
        };
        let mut said = lock(&self.said);
        if let Some(known) = said.get(&judged) {
            return Arc::clone(known);
        }
        let fresh = Arc::default();
        said.grow(DOCUMENT, VERDICTS);
        said.insert(judged, Arc::clone(&fresh));
        fresh
    }
}

impl Default for Filters {
    fn default() -> Self {
        Self {
            language: FilterLanguage::new(),
            compiled: Mutex::default(),
            said: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }
}

impl std::fmt::Debug for Filters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filters").finish_non_exhaustive()
    }
}

/// What was needed of late, and what was before that: when the young half is full the old one is forgotten.
#[derive(Debug)]
struct TwoAges<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// What the young half holds.
    held: usize,
}

impl<K, V> Default for TwoAges<K, V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), held: 0 }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> TwoAges<K, V> {
    fn get(&mut self, key: &K) -> Option<&V> {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            self.young.insert(key, value);
        }
        self.young.get(key)
    }

    /// The young half is to hold more.
    fn grow(&mut self, more: usize, limit: usize) {
        if self.held + more > limit && self.held > 0 {
            self.old = std::mem::take(&mut self.young);
            self.held = 0;
        }
        self.held += more;
    }

    fn insert(&mut self, key: K, value: V) {
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let mut ages = TwoAges::default();
        for number in 0..1_000_u32 {
            ages.grow(1, 10);
            ages.insert(number, number);
            assert_eq!(ages.get(&0), Some(&0), "used all the time");
            assert!(ages.young.len() + ages.old.len() <= 22);
        }
        assert_eq!(ages.get(&500), None);
        assert_eq!(ages.get(&999), Some(&999));
    }
}
