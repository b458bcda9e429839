//! Asks the host which trace the work at hand is recorded in; gives it as clients are told of it.

use std::fmt;
use std::sync::Arc;

use crate::model::TraceContext;

/// What a host is asked.
type TraceQuestion = Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>;

/// Knows the trace of the span that is entered, where a host records any.
#[derive(Clone, Default)]
pub(crate) struct CurrentTrace(Option<TraceQuestion>);

impl CurrentTrace {
    pub(crate) fn new(ask: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(ask)))
    }

    pub(crate) fn ask(&self) -> Option<TraceContext> {
        self.0.as_ref().and_then(|ask| ask())
    }
}

impl fmt::Debug for CurrentTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CurrentTrace").field(&self.0.is_some()).finish()
    }
}
