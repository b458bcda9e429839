//! What work on a connection may end with: a failure of SQLite, or a refusal that changed nothing.

use flare_core::Error;

use crate::error;

/// Why a piece of work did not come to its end.
#[derive(Debug)]
pub(crate) enum Fault {
    /// SQLite failed: what the work wrote until then has to be taken back.
    Sql(rusqlite::Error),
    /// The work refused, before it wrote anything.
    Refused(Error),
}

/// What work on a connection gives.
pub(crate) type Worked<T> = std::result::Result<T, Fault>;

impl Fault {
    /// The error that the caller is given.
    pub(crate) fn into_error(self, operation: &'static str) -> Error {
        match self {
            Self::Sql(error) => error::from_sqlite(operation, error),
            Self::Refused(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::types::FromSqlError> for Fault {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::Sql(error.into())
    }
}
