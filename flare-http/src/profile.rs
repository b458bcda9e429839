//! Takes a start and an end; gives what the threads of this process were at in between, as often as each used the
//! processor: a flame graph, or a file for pprof's tools. Nothing of it runs, or is in memory, before or after.
//!
//! Stacks are walked by frame pointers: a program that is built without them (`-C force-frame-pointers=yes`) shows
//! few of them. The innermost function of a stack is told as a part of the one that called it.

use axum::http::StatusCode;
use flare_core::{Error, ErrorKind};
use pprof::protos::Message;
use pprof::{ProfilerGuard, ProfilerGuardBuilder};

use crate::problem::Problem;

/// Looks in a second of a processor's time: no multiple of what other timers go by.
const FREQUENCY: i32 = 99;

/// A profile that is being taken. There is one in a process at a time, as there is one timer for it.
pub(crate) struct Profile(ProfilerGuard<'static>);

/// How a profile is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfileForm {
    /// A flame graph to look at.
    Svg,
    /// A file for `pprof` and what else reads its format.
    Pprof,
}

impl ProfileForm {
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Pprof => "application/octet-stream",
        }
    }
}

impl Profile {
    /// Begins, unless another one is being taken. It ends when it is dropped.
    pub(crate) fn begin() -> Result<Self, Problem> {
        match ProfilerGuardBuilder::default().frequency(FREQUENCY).build() {
            Ok(guard) => Ok(Self(guard)),
            Err(pprof::Error::Running) => {
                let detail = "another profile is being taken: wait until it is done";
                Err(Problem::new(StatusCode::CONFLICT).detail(detail))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// What was seen so far. Takes a while, as names are looked up: not for a thread that others wait for.
    pub(crate) fn told(&self, form: ProfileForm) -> Result<Vec<u8>, Problem> {
        let report = self.0.report().build().map_err(failed)?;
        let mut bytes = Vec::new();
        match form {
            ProfileForm::Svg if report.data.is_empty() => {
                // A picture of nothing is none.
                let detail = "no thread used the processor meanwhile: there is nothing to show";
                return Err(Problem::not_found(detail));
            }
            ProfileForm::Svg => report.flamegraph(&mut bytes).map_err(failed)?,
            ProfileForm::Pprof => {
                let profile = report.pprof().map_err(failed)?;
                profile.write_to_vec(&mut bytes).map_err(|source| {
                    let error = Error::new(ErrorKind::Internal, "profile").with_source(source);
                    Problem::from(error)
                })?;
            }
        }
        Ok(bytes)
    }
}

fn failed(error: pprof::Error) -> Problem {
    let detail = "the process cannot be profiled";
    Error::new(ErrorKind::Internal, "profile").with_detail(detail).with_source(error).into()
}
