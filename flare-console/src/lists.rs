//! Takes which part of a list is asked for; gives the page of it, and the links to the pages beside it.

use flare_core::port::Page;

use crate::fields::{Fields, query};
use crate::show::count;

/// How many entries a page has.
pub(crate) const ENTRIES: u32 = 25;
/// No list has so many pages that one beyond could be meant.
const LAST: u64 = 1_000_000_000;

/// Which part of a list a page shows.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    number: u64,
    total: u64,
    /// What else the page was asked for, and keeps.
    kept: Vec<(&'static str, String)>,
    /// What the number of the page is called in the query.
    name: &'static str,
}

impl Part {
    /// The part that a query asks for; `kept` names what else in it belongs to the list.
    pub(crate) fn asked(fields: &Fields, kept: &[&'static str]) -> Self {
        Self::asked_as("page", fields, kept)
    }

    /// The same, where a page has several lists.
    pub(crate) fn asked_as(name: &'static str, fields: &Fields, kept: &[&'static str]) -> Self {
        let number = fields.text(name).parse().unwrap_or(1).clamp(1, LAST);
        let kept = kept.iter().map(|name| (*name, fields.text(name).to_owned())).collect();
        Self { number, total: 0, kept, name }
    }

    /// What to ask the handle for.
    pub(crate) fn page(&self) -> Page {
        Page::new(ENTRIES, (self.number - 1) * u64::from(ENTRIES))
    }

    /// The same, of a list of so many entries.
    pub(crate) fn of(mut self, total: u64) -> Self {
        self.total = total;
        self
    }

    /// What this part has of all the entries there are.
    pub(crate) fn take<T>(self, all: Vec<T>) -> (Vec<T>, Self) {
        let (skip, total) = (self.page().offset, all.len() as u64);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        (all.into_iter().skip(skip).take(ENTRIES as usize).collect(), self.of(total))
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.number == 1 && self.total <= u64::from(ENTRIES)
    }

    /// 26–50 of 1,234.
    pub(crate) fn words(&self) -> String {
        let Page { limit, offset } = self.page();
        let first = (offset + 1).min(self.total);
        let last = (offset + u64::from(limit)).min(self.total);
        format!("{}–{} of {}", count(first), count(last), count(self.total))
    }

    pub(crate) fn before(&self) -> Option<String> {
        // From far beyond the end the way back is to its last page.
        let last = self.total.div_ceil(u64::from(ENTRIES)).max(1);
        (self.number > 1).then(|| self.link((self.number - 1).min(last)))
    }

    pub(crate) fn after(&self) -> Option<String> {
        let end = self.number * u64::from(ENTRIES);
        (end < self.total).then(|| self.link(self.number + 1))
    }

    fn link(&self, number: u64) -> String {
        let number = number.to_string();
        let kept = self.kept.iter().map(|(name, value)| (*name, value.as_str()));
        query(kept.chain([(self.name, number.as_str())]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_and_keep_what_was_asked() {
        let asked = |text: &str, total| {
            let part = Part::asked(&Fields::read(text.as_bytes()), &["search"]).of(total);
            (part.words(), part.before(), part.after())
        };
        let link = |text: &str| Some(text.to_owned());
        assert_eq!(asked("", 60), ("1–25 of 60".to_owned(), None, link("?page=2")));
        assert_eq!(
            asked("page=2&search=a%26b&x=1", 60),
            ("26–50 of 60".into(), link("?search=a%26b&page=1"), link("?search=a%26b&page=3"))
        );
        assert_eq!(asked("page=3", 60), ("51–60 of 60".into(), link("?page=2"), None));
        assert_eq!(asked("page=99", 60), ("60–60 of 60".into(), link("?page=3"), None));
        assert_eq!(asked("page=0", 0), ("0–0 of 0".into(), None, None));
        assert_eq!(asked("page=99999999999999999999", 3).0, "1–3 of 3");
        let (shown, part) = Part::asked(&Fields::read(b"page=2"), &[]).take((0..30).collect());
        assert_eq!((shown, part.is_whole()), ((25..30).collect::<Vec<_>>(), false));
    }
}
