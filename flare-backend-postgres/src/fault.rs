//! What work on a connection may end with: a failure of the server or of the way to it, or a refusal that
//! changed nothing.

use flare_core::Error;

use crate::error;

/// Why a piece of work did not come to its end.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The driver or the server failed: whatever the work wrote is taken back with its transaction.
    Sql(tokio_postgres::Error),
    /// The work refused.
    Refused(Error),
}

/// What work on a connection gives.
pub(crate) type Worked<T> = std::result::Result<T, Fault>;

impl Fault {
    /// The error that the caller is given.
    pub(crate) fn into_error(self, operation: &'static str) -> Error {
        match self {
            Self::Sql(error) => error::from_driver(operation, error),
            Self::Refused(error) => error,
        }
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}
