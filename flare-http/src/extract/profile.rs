//! Takes the query of a request for a profile; gives how long it is to take, and its form.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::page::number;
use crate::options::State;
use crate::problem::Problem;
use crate::profile::ProfileForm;

/// How long a profile takes that does not say.
const USUAL: u64 = 5;
/// The longest one.
const LONGEST: u64 = 60;
/// What is left of a request's time for telling what was seen.
const FOR_TELLING: u64 = 5;

/// What is asked for: `?seconds=` and `&format=`.
pub(crate) struct ProfileWish {
    pub(crate) seconds: u64,
    pub(crate) form: ProfileForm,
}

impl FromRequestParts<State> for ProfileWish {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Problem> {
        let most = state.options().timeout.as_secs().saturating_sub(FOR_TELLING).clamp(1, LONGEST);
        let query = parts.uri.query().unwrap_or_default();
        let (mut seconds, mut form) = (None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let twice = match &*name {
                "seconds" => seconds.replace(number(&name, &value, 1, most)?).is_some(),
                "format" => {
                    let given = match &*value {
                        "svg" => ProfileForm::Svg,
                        "pprof" => ProfileForm::Pprof,
                        _ => return Err(Problem::invalid(name, "must be svg or pprof")),
                    };
                    form.replace(given).is_some()
                }
                _ => {
                    return Err(Problem::invalid(name, "is unknown: there are seconds and format"));
                }
            };
            if twice {
                return Err(Problem::invalid(name, "is given twice"));
            }
        }
        let seconds = seconds.unwrap_or(USUAL.min(most));
        Ok(Self { seconds, form: form.unwrap_or(ProfileForm::Svg) })
    }
}
