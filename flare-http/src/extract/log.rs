//! Takes the query of a request for the log; gives the page it asks for, and of what.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use flare_core::model::AuditSubject;
use flare_core::port::Page;

use super::page::PageReader;
use crate::options::State;
use crate::problem::Problem;

/// The page of the log a request asks for, and what it is to be about: `?limit=`, `&offset=` and `&subject=`.
pub(crate) struct LogPaging {
    pub(crate) page: Page,
    pub(crate) subject: Option<AuditSubject>,
}

impl FromRequestParts<State> for LogPaging {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        let mut subject = None;
        let mut page = PageReader::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name == "subject" {
                if subject.replace(value.parse::<AuditSubject>()?).is_some() {
                    return Err(Problem::invalid(name, "is given twice"));
                }
            } else if !page.take(&name, &value)? {
                let known = "is unknown: there are limit, offset and subject";
                return Err(Problem::invalid(name, known));
            }
        }
        let page = page.page(state.options().default_limit);
        Ok(Self { page, subject })
    }
}
