//! Takes who a request is from, as the layer that let it in has noted; gives what every route works with,
//! on behalf of that one.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::auth::Caller;
use crate::options::State;

/// What every route works with, for one that changes something: the log of what was done says who did it.
pub(crate) struct Acting(pub(crate) State);

impl FromRequestParts<State> for Acting {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Infallible> {
        let caller = parts.extensions.get::<Caller>();
        Ok(Self(caller.map_or_else(|| state.clone(), |caller| state.acting_as(caller))))
    }
}
