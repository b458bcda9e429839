//! Takes filters and documents; gives what each filter says of each document. A filter is compiled once, and
//! asked once about each version of a document, however many subscriptions have it and however many
//! stages want to know. Both memories are bounded: what was not needed of late is done again.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cel::common::value::Val;

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
    PreparedFilter::new(filter)?.try_on(document, params)
}

/// A filter that is compiled, to be asked again and again as stages do.
#[derive(Debug)]
pub struct PreparedFilter {
    compiled: CompiledFilter,
}

impl PreparedFilter {
    /// Compiles a filter; refused as `filter`.
    pub fn new(filter: &Filter) -> Result<Self, Invalid> {
        Ok(Self { compiled: compile(&FilterLanguage::new(), filter)? })
    }

    /// Asks it about a document, which is read for it. Refused as `document`.
    pub fn try_on<'a>(
        &self,
        document: &[u8],
        params: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<FilterTrial, Invalid> {
        let env = self.compiled.language.env();
        let subject = FilterSubject::new(&env, document, None, params)?;
        Ok(FilterTrial::of(self.compiled.says(&subject)))
    }
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
        let filters = self.numbered(filters);
        let mut judgement = FilterJudgement::default();
        let Some(content) = &document.content else {
            // Deleted so long ago that nothing is left to tell, nor to keep to oneself.
            judgement.verdicts = vec![Some(FilterVerdict::Wants); filters.len()];
            return judgement;
        };
        let said = self.said_of(document);
        let mut said = lock(&said);
        let subject = OnceCell::new();
        let subject = || {
            let read = subject.get_or_init(|| {
                let params = resource.endpoint.matches(&document.key.url).unwrap_or_default();
                let revision = resource.change.shown(document.version.revision());
                let (env, json) = (self.language.env(), content.as_bytes());
                FilterSubject::new(&env, json, Some(&revision), params.iter())
            });
            read.as_ref().map_err(Invalid::to_string)
        };
        let mut values: HashMap<&[String], Option<&dyn Val>> = HashMap::new();
        for filter in &filters {
            let Some(compiled) = &filter.compiled else {
                judgement.verdicts.push(None);
                continue;
            };
            if let Some(known) = said.get(&filter.number) {
                judgement.verdicts.push(Some(*known));
                continue;
            }
            if let Ok(subject) = subject() {
                let value_at = |path| *values.entry(path).or_insert_with(|| subject.value_at(path));
                if compiled.excludes(value_at) {
                    judgement.verdicts.push(Some(FilterVerdict::Refuses));
                    continue;
                }
            }
            let answer = subject().and_then(|subject| compiled.says(subject));
            judgement.evaluated += 1;
            judgement.failed += u64::from(answer.is_err());
            let verdict = FilterVerdict::of(answer.unwrap_or(false));
            said.insert(filter.number, verdict);
            judgement.verdicts.push(Some(verdict));
        }
        if judgement.evaluated > 0 {
            let more = usize::try_from(judgement.evaluated).unwrap_or(VERDICTS);
            lock(&self.said).grow(more, VERDICTS);
        }
        judgement
    }

    /// The compiled form of each filter.
    fn numbered(&self, filters: &[&Filter]) -> Vec<Arc<NumberedFilter>> {
        let known: Vec<_> = {
            let mut known = lock(&self.compiled);
            filters.iter().map(|filter| known.get(filter).cloned()).collect()
        };
        let all = filters.iter().zip(known);
        all.map(|(filter, known)| known.unwrap_or_else(|| self.compile(filter))).collect()
    }

    fn compile(&self, filter: &Filter) -> Arc<NumberedFilter> {
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
    use crate::model::{ChangeRule, Content, DocumentUrl, Endpoint, ResourceId, Revision};

    fn resource() -> Resource {
        let endpoint = Endpoint::parse("http://a.example/{shop}/{id}").unwrap();
        let change = ChangeRule::new("rev", None).unwrap();
        Resource::new(ResourceId::from_bytes([1; 16]), endpoint, change, Timestamp::EPOCH)
    }

    fn document(revision: i64, json: &'static str) -> Document {
        let url = DocumentUrl::parse("http://a.example/bern/1").unwrap();
        let key = DocumentKey::new(ResourceId::from_bytes([1; 16]), url);
        let version = Version::live(Revision::new(revision));
        let mut document = Document::new(key, version, Timestamp::EPOCH);
        document.content = Some(Content::from_stored(json.into()));
        document
    }

    #[test]
    fn a_filter_is_asked_once_about_a_version_and_failures_are_counted() {
        use FilterVerdict::{Refuses, Wants};
        let (filters, resource) = (Filters::default(), resource());
        let [one, same, fails] =
            ["params.shop == 'bern'", "params.shop == 'bern'", "document.a > 1"]
                .map(|text| Filter::new(text).unwrap());
        let judged = |document: &Document| {
            let judged = filters.judge(&[&one, &same, &fails], &resource, document);
            (judged.verdicts, judged.evaluated, judged.failed)
        };
        let first = document(1, r#"{"rev":1}"#);
        let verdicts = vec![Some(Wants), Some(Wants), Some(Refuses)];
        assert_eq!(judged(&first), (verdicts.clone(), 2, 1));
        assert_eq!(judged(&first), (verdicts, 0, 0), "it is known");
        let second = document(2, r#"{"rev":2,"a":2}"#);
        assert_eq!(judged(&second), (vec![Some(Wants); 3], 2, 0));
        let mut again = second.clone();
        again.updated_at = Timestamp::from_unix_seconds(1);
        again.content = Some(Content::from_stored(r#"{"rev":2,"a":0}"#.into()));
        let verdicts = vec![Some(Wants), Some(Wants), Some(Refuses)];
        assert_eq!(judged(&again), (verdicts, 2, 0), "put again after its tombstone was forgotten");
    }

    #[test]
    fn what_requires_another_number_or_one_of_others_is_refused_unasked() {
        let (filters, resource) = (Filters::default(), resource());
        let texts = (0..100).map(|number| match number % 3 {
            0 => format!("document.n == {number}"),
            1 => format!("document.n in [{number}, {}, 'x']", number + 1_000),
            _ => format!("document.yes && {number}.0 == document.n"),
        });
        let all: Vec<Filter> = texts.map(|text| Filter::new(text).unwrap()).collect();
        let all: Vec<&Filter> = all.iter().collect();
        for number in [6, 7, 8] {
            let json = format!(r#"{{"rev":{number},"n":{number},"yes":true}}"#).leak();
            let judged = filters.judge(&all, &resource, &document(number, json));
            let wanted: Vec<_> = (0..100).map(|it| Some(FilterVerdict::of(it == number))).collect();
            assert_eq!((judged.verdicts, judged.evaluated, judged.failed), (wanted, 1, 0));
        }
    }

    #[test]
    fn what_requires_another_text_is_refused_unasked() {
        let (filters, resource) = (Filters::default(), resource());
        let texts = (0..100).map(|number| format!("document.shop == 'shop {number}'"));
        let all: Vec<Filter> = texts.map(|text| Filter::new(text).unwrap()).collect();
        let all: Vec<&Filter> = all.iter().collect();
        let judged = filters.judge(&all, &resource, &document(1, r#"{"rev":1,"shop":"shop 7"}"#));
        let wanted: Vec<_> = (0..100).map(|number| Some(FilterVerdict::of(number == 7))).collect();
        assert_eq!((judged.verdicts, judged.evaluated, judged.failed), (wanted, 1, 0));
        let judged = filters.judge(&all, &resource, &document(2, r#"{"rev":2}"#));
        assert_eq!((judged.evaluated, judged.failed), (100, 100), "each of them fails");
    }

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
