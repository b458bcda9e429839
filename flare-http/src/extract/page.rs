//! Takes the query of a request; gives the page it asks for. A parameter nobody knows is refused.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use flare_core::port::Page;

use crate::options::State;
use crate::problem::Problem;
use crate::wire::page::PageQuery;

/// The longest page.
pub(crate) const MAX_LIMIT: u32 = 1_000;

/// The page of a list a request asks for: `?limit=` and `&offset=`.
pub(crate) struct Paging(pub(crate) Page);

/// Says that a route takes no query.
pub(crate) struct NoQuery;

impl FromRequestParts<State> for Paging {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Problem> {
        read(parts.uri.query().unwrap_or_default(), state.options().default_limit).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).next() {
            None => Ok(Self),
            Some((name, _)) => Err(Problem::invalid(name, "is unknown: there are no parameters")),
        }
    }
}

fn read(query: &str, default_limit: u32) -> Result<Page, Problem> {
    let mut page = PageReader::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if !page.take(&name, &value)? {
            return Err(Problem::invalid(name, "is unknown: there are limit and offset"));
        }
    }
    Ok(page.page(default_limit))
}

/// Reads the parameters that say which page.
#[derive(Default)]
pub(super) struct PageReader(PageQuery);

impl PageReader {
    /// Takes a parameter; tells whether it is one of a page.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<bool, Problem> {
        let Self(given) = self;
        let twice = match name {
            "limit" => given.limit.replace(number(name, value, 1, MAX_LIMIT)?).is_some(),
            "offset" => given.offset.replace(number(name, value, 0, i64::MAX as u64)?).is_some(),
            _ => return Ok(false),
        };
        if twice {
            return Err(Problem::invalid(name.to_owned(), "is given twice"));
        }
        Ok(true)
    }

    pub(super) fn page(self, default_limit: u32) -> Page {
        Page::new(self.0.limit.unwrap_or(default_limit), self.0.offset.unwrap_or(0))
    }
}

pub(super) fn number<T>(name: &str, text: &str, low: T, high: T) -> Result<T, Problem>
where
    T: FromStr + PartialOrd + Display + Copy,
{
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && (low..=high).contains(number));
    let refusal = || Problem::invalid(name, format!("must be an integer from {low} to {high}"));
    number.ok_or_else(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_allowed() {
        for (query, limit, offset) in [
            ("", 30, 0),
            ("limit=1", 1, 0),
            ("limit=1000&offset=7", 1_000, 7),
            ("offset=9223372036854775807", 30, i64::MAX as u64),
            ("%6cimit=5", 5, 0),
        ] {
            assert_eq!(read(query, 30).unwrap(), Page::new(limit, offset), "{query}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for query in [
            "limit=0",
            "limit=1001",
            "limit=",
            "limit",
            "limit=-1",
            "limit=%2b5",
            "limit=1.5",
            "limit=1&limit=2",
            "offset=-1",
            "offset=9223372036854775808",
            "offset=x",
            "page=1",
            "Limit=1",
        ] {
            let problem = read(query, 30).unwrap_err();
            assert_eq!(problem.status(), 400, "{query}");
        }
    }
}
