//! Takes what the SDK and Kinesis say went wrong; gives Flare's kind and whether to try again. The table is here
//! and nowhere else.

use std::error::Error as StdError;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_kinesis::config::http::HttpResponse;
use aws_sdk_kinesis::error::{ProvideErrorMetadata, SdkError};
use flare_core::{Error, ErrorKind};

use crate::BACKEND;

/// A place in a shard that was not used for five minutes is no more.
pub(crate) const EXPIRED_ITERATOR: &str = "ExpiredIteratorException";

/// What Kinesis's codes mean; those of a key that encrypts the stream are its owner's to mend.
const TABLE: &[(ErrorKind, &[&str])] = &[
    (ErrorKind::NotFound, &["ResourceNotFoundException"]),
    (
        ErrorKind::Busy,
        &[
            "ProvisionedThroughputExceededException",
            "LimitExceededException",
            // The stream is being made, or resharded.
            "ResourceInUseException",
            "KMSThrottlingException",
            "ThrottlingException",
            "Throttling",
            "ThrottledException",
            "RequestLimitExceeded",
            "TooManyRequestsException",
        ],
    ),
    (
        ErrorKind::Denied,
        &[
            "AccessDenied",
            "AccessDeniedException",
            "ExpiredToken",
            "ExpiredTokenException",
            "IncompleteSignature",
            "InvalidClientTokenId",
            "InvalidSignatureException",
            "KMSAccessDeniedException",
            "KMSDisabledException",
            "KMSInvalidStateException",
            "KMSNotFoundException",
            "KMSOptInRequired",
            "MissingAuthenticationToken",
            "NotAuthorized",
            "OptInRequired",
            // The machine's clock is wrong.
            "RequestExpired",
            "SignatureDoesNotMatch",
            "UnrecognizedClientException",
        ],
    ),
    (
        ErrorKind::Unavailable,
        &["InternalFailure", "InternalFailureException", "ServiceUnavailable"],
    ),
    (ErrorKind::Timeout, &["RequestTimeout"]),
    (ErrorKind::Invalid, &["InvalidArgumentException", "ValidationError", "ValidationException"]),
    // The next one is asked for at once: nobody but this crate sees it.
    (ErrorKind::Lost, &[EXPIRED_ITERATOR, "ExpiredNextTokenException"]),
];

/// A failure of a call.
pub(crate) fn from_sdk<E>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let kind = match error {
        SdkError::ServiceError(refusal) => {
            let (meta, status) = (refusal.err().meta(), refusal.raw().status().as_u16());
            let code = meta.code().unwrap_or("no code");
            let detail = match meta.message() {
                Some(said) => format!("{said} ({code})"),
                None => code.to_owned(),
            };
            return Error::new(kind_of(code, status), operation)
                .with_backend(BACKEND)
                .with_detail(detail);
        }
        SdkError::TimeoutError(_) => ErrorKind::Timeout,
        SdkError::DispatchFailure(failure) if failure.is_timeout() => ErrorKind::Timeout,
        SdkError::DispatchFailure(failure) if failure.is_io() => ErrorKind::Unavailable,
        SdkError::DispatchFailure(failure) if failure.is_user() => ErrorKind::Invalid,
        // There is nothing to sign with; or the connection ended with the request on its way.
        SdkError::DispatchFailure(failure) => {
            kind_of_unsigned(failure.as_connector_error().and_then(StdError::source))
        }
        SdkError::ResponseError(response) => match response.raw().status().as_u16() {
            200..300 => ErrorKind::Corrupt,
            status => kind_of("", status),
        },
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, operation).with_backend(BACKEND).with_detail(chain(error))
}

fn kind_of(code: &str, status: u16) -> ErrorKind {
    let known = TABLE.iter().find(|(_, codes)| codes.contains(&code));
    match (known, status) {
        (Some((kind, _)), _) => *kind,
        (None, 429) => ErrorKind::Busy,
        (None, 401 | 403) => ErrorKind::Denied,
        (None, 500..) => ErrorKind::Unavailable,
        (None, _) => ErrorKind::Internal,
    }
}

/// Why there are no credentials: whoever gives them out may be away for a moment. What is no matter of credentials is
/// one of the connection, such as one that ended in the middle.
fn kind_of_unsigned(cause: Option<&(dyn StdError + 'static)>) -> ErrorKind {
    match cause.and_then(|it| it.downcast_ref::<CredentialsError>()) {
        Some(CredentialsError::CredentialsNotLoaded(_)) => ErrorKind::Denied,
        Some(CredentialsError::InvalidConfiguration(_)) => ErrorKind::Invalid,
        Some(_) | None => ErrorKind::Unavailable,
    }
}

/// An error and all behind it, in one line.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| (*error).source());
    let said: Vec<String> = all.map(ToString::to_string).collect();
    said.join(": ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use aws_sdk_kinesis::error::ConnectorError;
    use aws_sdk_kinesis::operation::list_shards::ListShardsError;

    use super::*;

    #[test]
    fn codes_mean_what_they_should() {
        for (code, status, kind) in [
            ("ResourceNotFoundException", 400, ErrorKind::NotFound),
            ("ProvisionedThroughputExceededException", 400, ErrorKind::Busy),
            ("LimitExceededException", 400, ErrorKind::Busy),
            ("KMSThrottlingException", 400, ErrorKind::Busy),
            ("KMSDisabledException", 400, ErrorKind::Denied),
            ("AccessDeniedException", 400, ErrorKind::Denied),
            ("ExpiredIteratorException", 400, ErrorKind::Lost),
            ("InvalidArgumentException", 400, ErrorKind::Invalid),
            ("InternalFailure", 500, ErrorKind::Unavailable),
            ("Odd", 400, ErrorKind::Internal),
            ("Odd", 403, ErrorKind::Denied),
            ("Odd", 429, ErrorKind::Busy),
            ("Odd", 503, ErrorKind::Unavailable),
        ] {
            assert_eq!(kind_of(code, status), kind, "{code} {status}");
        }
    }

    #[test]
    fn a_connection_that_ends_in_the_middle_is_tried_again() {
        let ended = std::io::Error::other("connection closed before message completed");
        let failed = ConnectorError::other(ended.into(), None);
        let error: SdkError<ListShardsError> = SdkError::dispatch_failure(failed);
        assert_eq!(from_sdk("receive", &error).kind(), ErrorKind::Unavailable);
        let unsigned = CredentialsError::not_loaded("no key");
        let failed = ConnectorError::other(unsigned.into(), None);
        let error: SdkError<ListShardsError> = SdkError::dispatch_failure(failed);
        assert_eq!(from_sdk("receive", &error).kind(), ErrorKind::Denied);
    }

    #[test]
    fn no_code_is_listed_twice() {
        let mut codes: Vec<_> = TABLE.iter().flat_map(|(_, codes)| codes.iter()).collect();
        codes.sort_unstable();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    }
}
