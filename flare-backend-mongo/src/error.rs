//! Takes what the driver and the server say went wrong; gives Flare's kind and whether to try
//! again. The table is here and nowhere else.

use flare_core::{Error, ErrorKind};
use mongodb::error::{
    ErrorKind as DriverError, InsertManyError, RETRYABLE_ERROR, RETRYABLE_WRITE_ERROR,
    SYSTEM_OVERLOADED_ERROR, WriteFailure,
};

use crate::BACKEND;

/// A unique index, or an id, has this value already.
pub(crate) const DUPLICATE_KEY: i32 = 11000;

/// What the server's codes mean, by the names of its `error_codes.yml`. Codes that are not here are
/// faults of ours or of the server's.
const TABLE: &[(ErrorKind, &[(i32, &str)])] = &[
    (
        ErrorKind::Denied,
        &[
            (11, "UserNotFound"),
            (13, "Unauthorized"),
            (18, "AuthenticationFailed"),
            // A validator of the host's on a collection of ours.
            (121, "DocumentValidationFailure"),
            (214, "AuthenticationRestrictionUnmet"),
            (334, "MechanismUnavailable"),
            (391, "ReauthenticationRequired"),
            (411, "QueryRejectedBySettings"),
            // Atlas: a refused sign-in, or something its small servers do not allow.
            (8000, "AtlasError"),
        ],
    ),
    (
        ErrorKind::Conflict,
        &[
            (48, "NamespaceExists"),
            (68, "IndexAlreadyExists"),
            (85, "IndexOptionsConflict"),
            (86, "IndexKeySpecsConflict"),
            (DUPLICATE_KEY, "DuplicateKey"),
            (11001, "DuplicateKey (update, before 4.0)"),
            (12582, "DuplicateKey (sharded, before 4.0)"),
        ],
    ),
    (
        ErrorKind::TooLarge,
        &[
            (10334, "BSONObjectTooLarge"),
            (16493, "string too large"),
            (17419, "document too large after an update"),
            (17420, "document too large after a replacement"),
        ],
    ),
    (
        ErrorKind::Timeout,
        &[
            (50, "MaxTimeMSExpired"),
            // Written, but not known to most members in time.
            (64, "WriteConcernTimeout"),
            (89, "NetworkTimeout"),
            (202, "NetworkInterfaceExceededTimeLimit"),
            (262, "ExceededTimeLimit"),
            (407, "PooledConnectionAcquisitionExceededTimeLimit"),
        ],
    ),
    (
        ErrorKind::Busy,
        &[
            (24, "LockTimeout"),
            (46, "LockBusy"),
            (112, "WriteConflict"),
            (117, "ConflictingOperationInProgress"),
            (146, "ExceededMemoryLimit"),
            (208, "TooManyLocks"),
            (264, "TooManyFilesOpen"),
            (314, "ObjectIsBusy"),
            (365, "TemporarilyUnavailable"),
            (402, "ResourceExhausted"),
            (433, "AdmissionQueueOverflow"),
            (449, "RateLimitExceeded"),
            (450, "PooledConnectionAcquisitionRejected"),
            (462, "IngressRequestRateLimitExceeded"),
            (12586, "BackgroundOperationInProgressForDatabase"),
            (12587, "BackgroundOperationInProgressForNamespace"),
            (14031, "OutOfDiskSpace"),
        ],
    ),
    (
        ErrorKind::Unavailable,
        &[
            (6, "HostUnreachable"),
            (7, "HostNotFound"),
            (43, "CursorNotFound"),
            (91, "ShutdownInProgress"),
            (100, "UnsatisfiableWriteConcern"),
            (133, "FailedToSatisfyReadPreference"),
            (134, "ReadConcernMajorityNotAvailableYet"),
            (150, "StaleEpoch"),
            (175, "QueryPlanKilled"),
            (187, "LinearizableReadConcernError"),
            (189, "PrimarySteppedDown"),
            (216, "ElectionInProgress"),
            (237, "CursorKilled"),
            (246, "SnapshotUnavailable"),
            (249, "StaleDbVersion"),
            (279, "ClientDisconnect"),
            (303, "SplitHorizonChange"),
            (317, "ConnectionPoolExpired"),
            (355, "InterruptedDueToStorageChange"),
            (371, "UserWritesBlocked"),
            (384, "ConnectionError"),
            (453, "InterruptedDueToReshardingCriticalSection"),
            (9001, "SocketException"),
            (10058, "LegacyNotPrimary"),
            (10107, "NotWritablePrimary"),
            (11600, "InterruptedAtShutdown"),
            (11601, "Interrupted"),
            (11602, "InterruptedDueToReplStateChange"),
            (13388, "StaleConfig"),
            (13435, "NotPrimaryNoSecondaryOk"),
            (13436, "NotPrimaryOrSecondary"),
            (91331, "RetriableRemoteCommandFailure"),
            (10_045_600, "InterruptedDueToFCVChange"),
        ],
    ),
    (ErrorKind::NotFound, &[(26, "NamespaceNotFound"), (27, "IndexNotFound")]),
    (ErrorKind::Corrupt, &[(301, "DataCorruptionDetected")]),
    (
        ErrorKind::Unsupported,
        &[
            (20, "IllegalOperation"),
            (59, "CommandNotFound"),
            (76, "NoReplicationEnabled"),
            (79, "UnknownReplWriteConcern"),
            (101, "OutdatedClient"),
            (115, "CommandNotSupported"),
            (123, "NotAReplicaSet"),
            (148, "ReadConcernMajorityNotEnabled"),
            (166, "CommandNotSupportedOnView"),
            (167, "OptionNotSupportedOnView"),
            (235, "InternalErrorNotSupported"),
            (238, "NotImplemented"),
            (322, "APIVersionError"),
            (323, "APIStrictError"),
            (324, "APIDeprecationError"),
            (352, "UnsupportedOpQueryCommand"),
            (40573, "change streams need a replica set"),
        ],
    ),
];

fn kind_of(code: i32) -> ErrorKind {
    let has = |codes: &[(i32, &str)]| codes.iter().any(|(it, _)| *it == code);
    TABLE.iter().find(|(_, codes)| has(codes)).map_or(ErrorKind::Internal, |(kind, _)| *kind)
}

/// The server's code, wherever the driver put it.
pub(crate) fn code(error: &mongodb::error::Error) -> Option<i32> {
    match error.kind.as_ref() {
        DriverError::Command(command) => Some(command.code),
        DriverError::Write(WriteFailure::WriteError(write)) => Some(write.code),
        DriverError::Write(WriteFailure::WriteConcernError(concern)) => Some(concern.code),
        DriverError::InsertMany(InsertManyError { write_errors: Some(errors), .. }) => {
            errors.first().map(|first| first.code)
        }
        DriverError::InsertMany(InsertManyError { write_concern_error: Some(concern), .. }) => {
            Some(concern.code)
        }
        DriverError::BulkWrite(bulk) => match bulk.write_errors.values().next() {
            Some(first) => Some(first.code),
            None => bulk.write_concern_errors.first().map(|concern| concern.code),
        },
        _ => None,
    }
}

/// An error of Flare's for a code of the server's.
pub(crate) fn from_code(operation: &'static str, code: i32, message: &str) -> Error {
    Error::new(kind_of(code), operation)
        .with_backend(BACKEND)
        .with_detail(format!("{message} (code {code})"))
}

/// An error of Flare's for one of the driver's.
///
/// The driver's own is not kept behind it: all it knows is in the detail, and would be said twice.
pub(crate) fn from_driver(operation: &'static str, error: mongodb::error::Error) -> Error {
    use std::error::Error as _;
    if let Some(code) = code(&error) {
        let message = match error.kind.as_ref() {
            DriverError::Command(command) => command.message.clone(),
            DriverError::Write(WriteFailure::WriteError(write)) => write.message.clone(),
            DriverError::Write(WriteFailure::WriteConcernError(concern)) => concern.message.clone(),
            other => other.to_string(),
        };
        return match from_code(operation, code, &message) {
            // Newer servers say of errors we have not heard of that they pass.
            unknown if unknown.kind() == ErrorKind::Internal && passes(&error) => {
                Error::new(ErrorKind::Busy, operation)
                    .with_backend(BACKEND)
                    .with_detail(unknown.detail().to_owned())
            }
            known => known,
        };
    }
    // A batch that was cut off has the cause underneath.
    if let DriverError::BulkWrite(_) = error.kind.as_ref()
        && let Some(cause) =
            error.source().and_then(|it| it.downcast_ref::<mongodb::error::Error>())
    {
        return from_driver(operation, cause.clone());
    }
    let kind = match error.kind.as_ref() {
        DriverError::InvalidArgument { .. } | DriverError::InvalidTlsConfig { .. } => {
            ErrorKind::Invalid
        }
        DriverError::Authentication { .. } => ErrorKind::Denied,
        DriverError::Io(cause) => match cause.kind() {
            // Nobody was there, so nothing can have happened.
            std::io::ErrorKind::ConnectionRefused => ErrorKind::Unavailable,
            _ => ErrorKind::Timeout,
        },
        // A server the driver is too new for is one it does not select.
        DriverError::ServerSelection { message, .. } if message.contains("wire version") => {
            ErrorKind::Unsupported
        }
        DriverError::ServerSelection { .. }
        | DriverError::ConnectionPoolCleared { .. }
        | DriverError::DnsResolve { .. }
        | DriverError::Shutdown => ErrorKind::Unavailable,
        DriverError::Bson(_)
        | DriverError::BsonDeserialization(_)
        | DriverError::InvalidResponse { .. } => ErrorKind::Corrupt,
        DriverError::IncompatibleServer { .. } | DriverError::SessionsNotSupported => {
            ErrorKind::Unsupported
        }
        _ => ErrorKind::Internal,
    };
    let detail = error.kind.to_string();
    Error::new(kind, operation).with_backend(BACKEND).with_detail(detail)
}

/// Whether the server, or the driver, expects the same call to work later.
fn passes(error: &mongodb::error::Error) -> bool {
    [RETRYABLE_ERROR, RETRYABLE_WRITE_ERROR, SYSTEM_OVERLOADED_ERROR]
        .iter()
        .any(|label| error.contains_label(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written out a second time: a code that changes its meaning is seen by somebody.
    const MEANT: &[(ErrorKind, &[i32])] = &[
        (ErrorKind::Denied, &[11, 13, 18, 121, 214, 334, 391, 411, 8000]),
        (ErrorKind::Conflict, &[48, 68, 85, 86, 11000, 11001, 12582]),
        (ErrorKind::TooLarge, &[10334, 16493, 17419, 17420]),
        (ErrorKind::Timeout, &[50, 64, 89, 202, 262, 407]),
        (
            ErrorKind::Busy,
            &[
                24, 46, 112, 117, 146, 208, 264, 314, 365, 402, 433, 449, 450, 462, 12586, 12587,
                14031,
            ],
        ),
        (
            ErrorKind::Unavailable,
            &[
                6, 7, 43, 91, 100, 133, 134, 150, 175, 187, 189, 216, 237, 246, 249, 279, 303, 317,
                355, 371, 384, 453, 9001, 10058, 10107, 11600, 11601, 11602, 13388, 13435, 13436,
                91331, 10_045_600,
            ],
        ),
        (ErrorKind::NotFound, &[26, 27]),
        (ErrorKind::Corrupt, &[301]),
        (
            ErrorKind::Unsupported,
            &[20, 59, 76, 79, 101, 115, 123, 148, 166, 167, 235, 238, 322, 323, 324, 352, 40573],
        ),
    ];

    #[test]
    fn every_code_means_what_it_should() {
        for (kind, codes) in MEANT {
            for code in *codes {
                assert_eq!(kind_of(*code), *kind, "code {code}");
            }
        }
    }

    #[test]
    fn no_code_is_listed_twice_or_untried() {
        let listed = TABLE.iter().flat_map(|(_, codes)| codes.iter().map(|(code, _)| *code));
        let mut listed: Vec<i32> = listed.collect();
        let mut tried: Vec<i32> =
            MEANT.iter().flat_map(|(_, codes)| codes.iter().copied()).collect();
        listed.sort_unstable();
        tried.sort_unstable();
        assert!(listed.is_sorted_by(|a, b| a < b), "a code is listed twice: {listed:?}");
        assert_eq!(listed, tried);
    }

    #[test]
    fn unknown_codes_are_faults() {
        for code in [0, 1, 2, 8, 9, -1, i32::MAX, i32::MIN] {
            let error = from_code("write", code, "odd");
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert!(!error.is_temporary());
        }
    }

    #[test]
    fn an_error_says_what_the_server_said() {
        let error = from_code("write", 14031, "no space left");
        assert_eq!(error.to_string(), "write (mongodb): busy: no space left (code 14031)");
    }

    #[test]
    fn a_lost_connection_leaves_the_outcome_open() {
        let broken = |kind: std::io::ErrorKind| {
            from_driver("write", std::io::Error::from(kind).into()).kind()
        };
        assert_eq!(broken(std::io::ErrorKind::UnexpectedEof), ErrorKind::Timeout);
        assert_eq!(broken(std::io::ErrorKind::ConnectionReset), ErrorKind::Timeout);
        assert_eq!(broken(std::io::ErrorKind::ConnectionRefused), ErrorKind::Unavailable);
    }
}
