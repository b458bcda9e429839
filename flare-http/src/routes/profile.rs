//! Takes a time; gives what the process was at meanwhile.

use std::time::Duration;

use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use flare_core::{Error, ErrorKind};

use super::answer::Answer;
use crate::extract::ProfileWish;
use crate::options::State;
use crate::profile::Profile;
use crate::wire::profile::ProfileQuery;

/// Watches what the threads of this process use the processor for, and tells it as a flame graph or a file for pprof.
/// One at a time; costs nothing while none is taken.
#[utoipa::path(get, operation_id = "takeProfile", path = "/debug/profile", tag = "node", params(ProfileQuery),
    responses(
        (status = 200, description = "What they were at", content(
            (String = "image/svg+xml"), (Vec<u8> = "application/octet-stream"))),
        (status = 404, description = "No thread used the processor meanwhile"),
        (status = 409, description = "Another profile is being taken"),
    ))]
pub(crate) async fn profile(Shared(state): Shared<State>, wish: ProfileWish) -> Answer {
    let profile = Profile::begin()?;
    state.options().clock.sleep(Duration::from_secs(wish.seconds)).await;
    let told = tokio::task::spawn_blocking(move || profile.told(wish.form)).await;
    let told = told.map_err(|source| {
        Error::new(ErrorKind::Internal, "profile").with_detail("it broke off").with_source(source)
    })??;
    Ok((StatusCode::OK, [(CONTENT_TYPE, wish.form.media_type())], told).into_response())
}
