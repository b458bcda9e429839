//! Takes the query of a request for all subscriptions; gives which it asks for, and in which order.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use flare_core::OverviewQuery;
use flare_core::model::{SubscriptionStatus, SummaryOrder};

use super::page::PageReader;
use crate::options::State;
use crate::problem::Problem;

/// Which subscriptions a request asks for: `?order=`, `&status=`, `&limit=` and `&offset=`.
pub(crate) struct Ordered(pub(crate) OverviewQuery);

impl FromRequestParts<State> for Ordered {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Problem> {
        read(parts.uri.query().unwrap_or_default(), state.options().default_limit).map(Self)
    }
}

fn read(query: &str, default_limit: u32) -> Result<OverviewQuery, Problem> {
    let mut page = PageReader::default();
    let (mut order, mut status) = (None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let twice = match &*name {
            "order" => {
                let given: SummaryOrder = value.parse().map_err(|_| {
                    Problem::invalid("order", one_of(SummaryOrder::ALL.map(SummaryOrder::as_str)))
                })?;
                order.replace(given).is_some()
            }
            "status" => status.replace(standing(&value)?).is_some(),
            _ if page.take(&name, &value)? => false,
            _ => {
                let known = "is unknown: there are order, status, limit and offset";
                return Err(Problem::invalid(name, known));
            }
        };
        if twice {
            return Err(Problem::invalid(name, "is given twice"));
        }
    }
    let mut asked = OverviewQuery::new(page.page(default_limit));
    asked.order = order.unwrap_or_default();
    asked.status = status;
    Ok(asked)
}

fn standing(text: &str) -> Result<SubscriptionStatus, Problem> {
    let shown = SubscriptionStatus::SHOWN;
    let known = shown.into_iter().find(|status| status.as_str() == text);
    known.ok_or_else(|| Problem::invalid("status", one_of(shown.map(SubscriptionStatus::as_str))))
}

fn one_of<const N: usize>(words: [&str; N]) -> String {
    format!("must be one of {}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use flare_core::port::Page;

    use super::*;

    #[test]
    fn reads_what_is_allowed() {
        let read = |query| read(query, 30).unwrap();
        assert_eq!(read(""), OverviewQuery::new(Page::new(30, 0)));
        let asked = OverviewQuery::new(Page::new(5, 7)).by(SummaryOrder::Failures);
        assert_eq!(read("offset=7&order=failures&limit=5"), asked);
        let suspended = asked.status(SubscriptionStatus::Suspended);
        assert_eq!(read("offset=7&order=failures&limit=5&status=suspended"), suspended);
    }

    #[test]
    fn refuses_everything_else_by_name() {
        for (query, field) in [
            ("order=", "order"),
            ("order=Lag", "order"),
            ("order=lag&order=lag", "order"),
            ("status=deleting", "status"),
            ("status=active&status=active", "status"),
            ("sort=lag", "sort"),
            ("limit=0", "limit"),
            ("limit=1&limit=1", "limit"),
            ("offset=x", "offset"),
        ] {
            let problem = read(query, 30).unwrap_err();
            assert_eq!(problem.status(), 400, "{query}");
            let shown = format!("{problem:?}");
            assert!(shown.contains(&format!("field: Some({field:?})")), "{query}: {shown}");
        }
    }
}
