//! Takes what went wrong anywhere below the handle; gives one error that machines can act on
//! (kind, retry) and people can read (operation, backend, sources). Never a vendor's type.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Invalid, Unreadable};

/// What every fallible call of Flare returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong: the part a program decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller's input breaks a rule; [`Error::field`] names where.
    Invalid,
    /// What was named does not exist.
    NotFound,
    /// It exists already, or changed meanwhile, or its state forbids the call.
    Conflict,
    /// A limit of ours is reached (memory, a full stage); the same call may succeed later.
    Busy,
    /// The backend cannot be reached or is failing over.
    Unavailable,
    /// The backend did not answer in time; whether the effect took place is unknown.
    Timeout,
    /// The value is larger than the backend can hold; no retry will help.
    TooLarge,
    /// The backend refuses our credentials or rights.
    Denied,
    /// The caller no longer owns what it acts on: lease, receipt or claim is gone.
    Lost,
    /// A watch was asked to resume from a revision the store has already forgotten.
    Compacted,
    /// What came out of the store cannot be understood (format too new, damaged).
    Corrupt,
    /// The backend cannot do this at all.
    Unsupported,
    /// A fault of Flare or a backend that none of the others describes.
    Internal,
}

impl ErrorKind {
    /// The kind in lower-case words, as it stands in messages and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotFound => "not found",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::TooLarge => "too large",
            Self::Denied => "denied",
            Self::Lost => "lost",
            Self::Compacted => "compacted",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::Internal => "internal",
        }
    }

    /// Whether errors of this kind are usually gone when the same call is made again later.
    fn default_retry(self) -> Retry {
        match self {
            Self::Busy | Self::Unavailable | Self::Timeout => Retry::Later,
            _ => Retry::Never,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether making the same call again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Retry {
    /// The same call will fail again.
    Never,
    /// Temporary: try again, with back-off.
    Later,
    /// Temporary: try again, but not before this time has passed.
    After(Duration),
}

/// An error of Flare.
///
/// `Display` is one sentence without the sources; walk [`std::error::Error::source`] for those.
/// Cloning is cheap: a batch that failed as a whole reports the same error for each of its items.
///
/// ```
/// use flare_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Unavailable, "receive").with_backend("sqs").with_detail("no route to host");
/// assert_eq!(error.to_string(), "receive (sqs): unavailable: no route to host");
/// assert!(error.is_temporary());
/// ```
///
/// `Debug` adds the sources, for `main` functions and tests that end with an error; and where it began, of faults
/// that no input, load or network explains.
#[derive(Clone)]
pub struct Error {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    retry: Retry,
    operation: &'static str,
    backend: Option<&'static str>,
    field: Option<Cow<'static, str>>,
    detail: Cow<'static, str>,
    unreadable: Option<Arc<Unreadable>>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    origin: &'static Location<'static>,
}

impl Error {
    /// An error of `kind` in `operation` (the port's verb, such as `"settle"`). Where it is called is its
    /// [`origin`](Self::origin).
    #[track_caller]
    pub fn new(kind: ErrorKind, operation: &'static str) -> Self {
        Self {
            inner: Arc::new(Inner {
                kind,
                retry: kind.default_retry(),
                operation,
                backend: None,
                field: None,
                detail: Cow::Borrowed(""),
                unreadable: None,
                source: None,
                origin: Location::caller(),
            }),
        }
    }

    /// A refused input, in `operation`.
    #[track_caller]
    pub fn invalid(operation: &'static str, invalid: Invalid) -> Self {
        let error =
            Self::new(ErrorKind::Invalid, operation).with_detail(invalid.reason().to_owned());
        match invalid.field() {
            // The whole is wrong, not a field of it.
            "" => error,
            field => error.with_field(field.to_owned()),
        }
    }

    /// The same, as the failure of what the caller asked for: it knows no verb of a port.
    #[must_use]
    pub(crate) fn during(self, operation: &'static str) -> Self {
        self.edit(|inner| inner.operation = operation)
    }

    /// A record that cannot be read, met in `operation`. It says nothing about any other record.
    #[track_caller]
    pub fn of_record(operation: &'static str, unreadable: Unreadable) -> Self {
        Self::new(ErrorKind::Corrupt, operation)
            .with_detail(unreadable.to_string())
            .edit(|inner| inner.unreadable = Some(Arc::new(unreadable)))
    }

    /// Names the backend (`"memory"`, `"mongodb"` …).
    #[must_use]
    pub fn with_backend(self, backend: &'static str) -> Self {
        self.edit(|inner| inner.backend = Some(backend))
    }

    /// Says in words what happened.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        self.edit(|inner| inner.detail = detail)
    }

    /// Names the field of the caller's input that is at fault.
    #[must_use]
    pub fn with_field(self, field: impl Into<Cow<'static, str>>) -> Self {
        let field = field.into();
        self.edit(|inner| inner.field = Some(field))
    }

    /// Overrides whether to retry, where the backend knows better than the kind.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        self.edit(|inner| inner.retry = retry)
    }

    /// Keeps the error underneath.
    #[must_use]
    pub fn with_source(self, source: impl StdError + Send + Sync + 'static) -> Self {
        let source: Arc<dyn StdError + Send + Sync> = Arc::new(source);
        self.edit(|inner| inner.source = Some(source))
    }

    fn edit(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Whether making the call again can help.
    pub fn retryable(&self) -> Retry {
        self.inner.retry
    }

    /// Whether making the call again can help at all.
    pub fn is_temporary(&self) -> bool {
        self.inner.retry != Retry::Never
    }

    /// Which call failed.
    pub fn operation(&self) -> &'static str {
        self.inner.operation
    }

    /// Which backend it came from, if from one.
    pub fn backend(&self) -> Option<&'static str> {
        self.inner.backend
    }

    /// The field of the caller's input at fault, as a path.
    pub fn field(&self) -> Option<&str> {
        self.inner.field.as_deref()
    }

    /// The one record that cannot be read, if that is all that went wrong: all others can be.
    pub fn unreadable(&self) -> Option<&Unreadable> {
        self.inner.unreadable.as_deref()
    }

    /// Where in the source it was made: with the commit that was built, where to look for what went wrong.
    pub fn origin(&self) -> &'static Location<'static> {
        self.inner.origin
    }

    /// Whether it is a fault of ours or of what a store has, rather than of input, load or the network: then its
    /// `Debug` says where it began.
    fn is_a_fault(&self) -> bool {
        matches!(self.inner.kind, ErrorKind::Internal | ErrorKind::Corrupt)
    }

    /// What happened, in words; empty if the kind says it all.
    pub fn detail(&self) -> &str {
        &self.inner.detail
    }
}

/// So that `?` takes refusals of values a host makes itself, before any call.
impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::invalid("check", invalid)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.inner;
        f.write_str(inner.operation)?;
        if let Some(backend) = inner.backend {
            write!(f, " ({backend})")?;
        }
        write!(f, ": {}", inner.kind)?;
        if let Some(field) = &inner.field {
            write!(f, ": {field}")?;
        }
        if !inner.detail.is_empty() {
            write!(f, ": {}", inner.detail)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        let mut source = StdError::source(self);
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        match self.is_a_fault() {
            true => write!(f, " (at {})", self.inner.origin),
            false => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_sentence_without_the_source() {
        let error = Error::new(ErrorKind::Timeout, "write_documents")
            .with_backend("mongodb")
            .with_detail("no answer within 5s")
            .with_source(std::io::Error::other("socket closed"));
        assert_eq!(error.to_string(), "write_documents (mongodb): timeout: no answer within 5s");
        assert_eq!(
            StdError::source(&error).map(ToString::to_string).as_deref(),
            Some("socket closed")
        );
    }

    #[test]
    fn debug_tells_people_the_sources_too() {
        let error =
            Error::new(ErrorKind::Internal, "run").with_source(std::io::Error::other("boom"));
        let told = format!("{error:?}");
        assert!(told.starts_with("run: internal: boom (at "), "{told}");
        let busy = Error::new(ErrorKind::Busy, "run").with_source(std::io::Error::other("boom"));
        assert_eq!(format!("{busy:?}"), "run: busy: boom");
    }

    #[test]
    fn an_error_knows_where_it_was_made() {
        let line = line!() + 1;
        let made = Error::new(ErrorKind::Internal, "run");
        let later = made.clone().with_detail("x").during("other");
        for error in [made, later] {
            assert_eq!((error.origin().line(), error.origin().file()), (line, file!()));
        }
        let line = line!() + 1;
        let refused = Error::invalid("put", Invalid::new("x", "is wrong"));
        assert_eq!(refused.origin().line(), line);
    }

    #[test]
    fn only_busy_unavailable_and_timeout_are_temporary_by_default() {
        use ErrorKind::*;
        for kind in [
            Invalid,
            NotFound,
            Conflict,
            Busy,
            Unavailable,
            Timeout,
            TooLarge,
            Denied,
            Lost,
            Compacted,
            Corrupt,
            Unsupported,
            Internal,
        ] {
            let expected = matches!(kind, Busy | Unavailable | Timeout);
            assert_eq!(Error::new(kind, "call").is_temporary(), expected, "{kind}");
        }
    }

    #[test]
    fn a_backend_may_know_better_than_the_kind() {
        let error = Error::new(ErrorKind::Conflict, "create")
            .with_retry(Retry::After(Duration::from_secs(60)));
        assert!(error.is_temporary());
        assert_eq!(error.retryable(), Retry::After(Duration::from_secs(60)));
    }

    #[test]
    fn a_refused_input_keeps_field_and_reason() {
        let error = Error::invalid("create_resource", Invalid::new("endpoint", "has no wildcard"));
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.field(), Some("endpoint"));
        assert_eq!(error.to_string(), "create_resource: invalid: endpoint: has no wildcard");
    }

    #[test]
    fn clones_share_their_source() {
        let error = Error::new(ErrorKind::Internal, "call").with_source(std::io::Error::other("x"));
        assert!(StdError::source(&error.clone()).is_some());
    }
}
