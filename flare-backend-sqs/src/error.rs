//! Takes what the SDK and SQS say went wrong; gives Flare's kind and whether to try again. The table
//! is here and nowhere else.

use std::error::Error as StdError;
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::BatchResultErrorEntry;
use flare_core::{Error, ErrorKind, Retry};

use crate::BACKEND;

/// What older codes begin with.
const OLD_STYLE: &str = "AWS.SimpleQueueService.";

/// A queue of that name was deleted less than a minute ago.
const DELETED_RECENTLY: &str = "QueueDeletedRecently";

/// How long SQS keeps the name of a deleted queue.
const NAME_KEPT: Duration = Duration::from_secs(60);

/// What SQS's codes mean, old ones without [`OLD_STYLE`]. Codes that are not here are faults of ours.
const TABLE: &[(ErrorKind, &[&str])] = &[
    (ErrorKind::NotFound, &["QueueDoesNotExist", "NonExistentQueue", "ResourceNotFoundException"]),
    (ErrorKind::Lost, &["ReceiptHandleIsInvalid", "MessageNotInflight"]),
    (ErrorKind::Conflict, &["QueueNameExists", "QueueAlreadyExists"]),
    (ErrorKind::TooLarge, &["MessageTooLong", "BatchRequestTooLong"]),
    (
        ErrorKind::Busy,
        &[
            DELETED_RECENTLY,
            "PurgeQueueInProgress",
            // A hundred and twenty thousand messages of one queue are in flight.
            "OverLimit",
            "RequestThrottled",
            "RequestThrottledException",
            "RequestLimitExceeded",
            "BandwidthLimitExceeded",
            "LimitExceededException",
            "PriorRequestNotComplete",
            "Throttling",
            "ThrottlingException",
            "ThrottledException",
            "TooManyRequestsException",
            "SlowDown",
            "KmsThrottled",
        ],
    ),
    (
        ErrorKind::Denied,
        &[
            "AccessDenied",
            "AccessDeniedException",
            "AuthFailure",
            "ExpiredToken",
            "ExpiredTokenException",
            "IncompleteSignature",
            "InvalidClientTokenId",
            "InvalidSecurity",
            "InvalidSignatureException",
            "KmsAccessDenied",
            "KmsDisabled",
            "KmsInvalidKeyUsage",
            "KmsInvalidState",
            "KmsNotFound",
            "KmsOptInRequired",
            "MissingAuthenticationToken",
            "NotAuthorized",
            "OptInRequired",
            // The machine's clock is wrong.
            "RequestExpired",
            "RequestTimeTooSkewed",
            "SignatureDoesNotMatch",
            "UnauthorizedOperation",
            "UnrecognizedClientException",
        ],
    ),
    (
        ErrorKind::Unavailable,
        &[
            "InternalError",
            "InternalFailure",
            "InternalServerError",
            "ServiceUnavailable",
            "ServiceUnavailableException",
        ],
    ),
    (ErrorKind::Timeout, &["RequestTimeout", "RequestTimeoutException"]),
    (
        ErrorKind::Invalid,
        &[
            "InvalidAddress",
            "InvalidAttributeName",
            "InvalidAttributeValue",
            "InvalidMessageContents",
            "InvalidParameterCombination",
            "InvalidParameterValue",
            "InvalidQueryParameter",
            "MissingParameter",
            "ValidationError",
            "ValidationException",
        ],
    ),
    (
        ErrorKind::Unsupported,
        &["InvalidAction", "UnsupportedOperation", "UnknownOperationException"],
    ),
    // Requests that this crate must not make.
    (
        ErrorKind::Internal,
        &[
            "BatchEntryIdsNotDistinct",
            "EmptyBatchRequest",
            "InvalidBatchEntryId",
            "InvalidIdFormat",
            "MalformedQueryString",
            "MissingAction",
            "SerializationException",
            "TooManyEntriesInBatchRequest",
        ],
    ),
];

/// What a code means; one that is not known, by the status of its answer.
fn kind_of(code: &str, status: Option<u16>) -> ErrorKind {
    let code = code.strip_prefix(OLD_STYLE).unwrap_or(code);
    let known = TABLE.iter().find(|(_, codes)| codes.contains(&code));
    known.map_or_else(|| kind_of_status(status), |(kind, _)| *kind)
}

fn kind_of_status(status: Option<u16>) -> ErrorKind {
    match status {
        Some(429) => ErrorKind::Busy,
        Some(401 | 403) => ErrorKind::Denied,
        Some(500..) => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    }
}

fn from_code(
    operation: &'static str,
    code: &str,
    message: Option<&str>,
    status: Option<u16>,
) -> Error {
    let message = message.unwrap_or_default();
    let kind = match kind_of(code, status) {
        // Said of receipts that were good once.
        ErrorKind::Invalid if message.to_lowercase().replace(' ', "").contains("receipthandle") => {
            ErrorKind::Lost
        }
        kind => kind,
    };
    let detail = if message.is_empty() { code.to_owned() } else { format!("{message} ({code})") };
    let error = Error::new(kind, operation).with_backend(BACKEND).with_detail(detail);
    if code.ends_with(DELETED_RECENTLY) { error.with_retry(Retry::After(NAME_KEPT)) } else { error }
}

/// An error of Flare's for one item of a batch.
pub(crate) fn from_entry(operation: &'static str, entry: &BatchResultErrorEntry) -> Error {
    from_code(operation, entry.code(), entry.message(), None)
}

/// An error of Flare's for one of the SDK's.
///
/// The SDK's own is not kept behind it: all it knows is in the detail, and would be said twice.
pub(crate) fn from_sdk<E>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> Error
where
    E: StdError + ProvideErrorMetadata + 'static,
{
    let kind = match error {
        SdkError::ServiceError(refusal) => {
            let (meta, status) = (refusal.err().meta(), refusal.raw().status().as_u16());
            let code = meta.code().unwrap_or("no code");
            return from_code(operation, code, meta.message(), Some(status));
        }
        SdkError::TimeoutError(_) => ErrorKind::Timeout,
        SdkError::DispatchFailure(failure) if failure.is_timeout() => ErrorKind::Timeout,
        SdkError::DispatchFailure(failure) if failure.is_io() => ErrorKind::Unavailable,
        SdkError::DispatchFailure(failure) if failure.is_user() => ErrorKind::Invalid,
        // No connection was even tried: there is nothing to sign with.
        SdkError::DispatchFailure(failure) => {
            kind_of_unsigned(failure.as_connector_error().and_then(StdError::source))
        }
        SdkError::ResponseError(response) => match response.raw().status().as_u16() {
            200..300 => ErrorKind::Corrupt,
            status => kind_of_status(Some(status)),
        },
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, operation).with_backend(BACKEND).with_detail(chain(error))
}

/// Why there are no credentials: whoever gives them out may be away for a moment.
fn kind_of_unsigned(cause: Option<&(dyn StdError + 'static)>) -> ErrorKind {
    match cause.and_then(|it| it.downcast_ref::<CredentialsError>()) {
        Some(CredentialsError::CredentialsNotLoaded(_)) => ErrorKind::Denied,
        Some(CredentialsError::InvalidConfiguration(_)) => ErrorKind::Invalid,
        Some(cause) if is_refusal(&chain(cause)) => ErrorKind::Denied,
        Some(_) => ErrorKind::Unavailable,
        None => ErrorKind::Internal,
    }
}

/// Whether whoever gives credentials out will not, by the code that its error ends with. Its type says
/// no more: who that is depends on the machine.
fn is_refusal(said: &str) -> bool {
    let refusals = TABLE.iter().filter(|(kind, _)| *kind == ErrorKind::Denied);
    refusals.flat_map(|(_, codes)| codes.iter()).any(|code| said.contains(&format!("({code})")))
}

/// An error and all behind it, in one line.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| (*error).source());
    let said: Vec<String> = all.map(ToString::to_string).collect();
    said.join(": ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::error::ConnectorError;
    use aws_sdk_sqs::operation::list_queues::ListQueuesError;

    use super::*;

    /// Written out a second time: a code that changes its meaning is seen by somebody.
    const MEANT: &[(ErrorKind, &str)] = &[
        (ErrorKind::NotFound, "QueueDoesNotExist NonExistentQueue ResourceNotFoundException"),
        (ErrorKind::Lost, "ReceiptHandleIsInvalid MessageNotInflight"),
        (ErrorKind::Conflict, "QueueNameExists QueueAlreadyExists"),
        (ErrorKind::TooLarge, "MessageTooLong BatchRequestTooLong"),
        (
            ErrorKind::Busy,
            "QueueDeletedRecently PurgeQueueInProgress OverLimit RequestThrottled \
             RequestLimitExceeded Throttling ThrottlingException ThrottledException \
             TooManyRequestsException SlowDown KmsThrottled RequestThrottledException \
             BandwidthLimitExceeded LimitExceededException PriorRequestNotComplete",
        ),
        (
            ErrorKind::Denied,
            "AccessDenied AccessDeniedException ExpiredToken ExpiredTokenException \
             IncompleteSignature InvalidClientTokenId InvalidSecurity KmsAccessDenied KmsDisabled \
             KmsInvalidKeyUsage KmsInvalidState KmsNotFound KmsOptInRequired \
             MissingAuthenticationToken NotAuthorized OptInRequired RequestExpired \
             SignatureDoesNotMatch UnrecognizedClientException AuthFailure \
             InvalidSignatureException RequestTimeTooSkewed UnauthorizedOperation",
        ),
        (
            ErrorKind::Unavailable,
            "InternalError InternalFailure InternalServerError ServiceUnavailable \
             ServiceUnavailableException",
        ),
        (ErrorKind::Timeout, "RequestTimeout RequestTimeoutException"),
        (
            ErrorKind::Invalid,
            "InvalidAddress InvalidAttributeName InvalidAttributeValue InvalidMessageContents \
             InvalidParameterCombination InvalidParameterValue MissingParameter ValidationError \
             InvalidQueryParameter ValidationException",
        ),
        (ErrorKind::Unsupported, "InvalidAction UnsupportedOperation UnknownOperationException"),
        (
            ErrorKind::Internal,
            "BatchEntryIdsNotDistinct EmptyBatchRequest InvalidBatchEntryId InvalidIdFormat \
             MalformedQueryString MissingAction SerializationException \
             TooManyEntriesInBatchRequest",
        ),
    ];

    fn meant() -> impl Iterator<Item = (ErrorKind, &'static str)> {
        MEANT.iter().flat_map(|(kind, codes)| codes.split(' ').map(|code| (*kind, code)))
    }

    #[test]
    fn every_code_means_what_it_should() {
        for (kind, code) in meant() {
            assert_eq!(kind_of(code, Some(400)), kind, "{code}");
            assert_eq!(kind_of(&format!("{OLD_STYLE}{code}"), None), kind, "{code}");
        }
    }

    #[test]
    fn no_code_is_listed_twice_or_untried() {
        let mut listed: Vec<_> =
            TABLE.iter().flat_map(|(_, codes)| codes.iter().copied()).collect();
        let mut tried: Vec<_> = meant().map(|(_, code)| code).collect();
        listed.sort_unstable();
        tried.sort_unstable();
        assert!(listed.is_sorted_by(|a, b| a < b), "a code is listed twice: {listed:?}");
        assert_eq!(listed, tried);
    }

    #[test]
    fn unknown_codes_go_by_the_status() {
        assert_eq!(kind_of("Odd", None), ErrorKind::Internal);
        assert_eq!(kind_of("Odd", Some(400)), ErrorKind::Internal);
        assert_eq!(kind_of("Odd", Some(403)), ErrorKind::Denied);
        assert_eq!(kind_of("Odd", Some(429)), ErrorKind::Busy);
        assert_eq!(kind_of("Odd", Some(503)), ErrorKind::Unavailable);
    }

    #[test]
    fn a_receipt_that_has_expired_is_lost() {
        let said = "Value AQ for parameter ReceiptHandle is invalid. Reason: The receipt handle \
                    has expired.";
        let error = from_code("settle", "InvalidParameterValue", Some(said), Some(400));
        assert_eq!(error.kind(), ErrorKind::Lost);
        let other = Some("Value 99999 for parameter VisibilityTimeout is invalid.");
        let error = from_code("extend", "InvalidParameterValue", other, Some(400));
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }

    #[test]
    fn the_name_of_a_deleted_queue_is_free_after_a_minute() {
        let error = from_code("create", "AWS.SimpleQueueService.QueueDeletedRecently", None, None);
        assert_eq!(error.retryable(), Retry::After(Duration::from_secs(60)));
    }

    #[test]
    fn an_error_says_what_sqs_said() {
        let error = from_code("send", "OverLimit", Some("too many"), Some(400));
        assert_eq!(error.to_string(), "send (sqs): busy: too many (OverLimit)");
        assert!(error.is_temporary());
    }

    #[test]
    fn nothing_to_sign_with_is_told_from_nobody_to_ask_for_it() {
        let kind = |cause: CredentialsError| {
            let failed = ConnectorError::other(cause.into(), None);
            let error: SdkError<ListQueuesError> = SdkError::dispatch_failure(failed);
            from_sdk("connect", &error).kind()
        };
        assert_eq!(kind(CredentialsError::not_loaded("no key")), ErrorKind::Denied);
        assert_eq!(kind(CredentialsError::invalid_configuration("odd")), ErrorKind::Invalid);
        let late = CredentialsError::provider_timed_out(Duration::from_secs(5));
        assert_eq!(kind(late), ErrorKind::Unavailable);
        assert_eq!(kind(CredentialsError::provider_error("500")), ErrorKind::Unavailable);
        let refused = CredentialsError::provider_error("unhandled error (AccessDenied)");
        assert_eq!(kind(refused), ErrorKind::Denied);
    }

    #[test]
    fn a_connection_that_failed_is_told_in_one_line() {
        let refused = std::io::Error::other("no\n  route");
        let failed = ConnectorError::io(refused.into());
        let error: SdkError<ListQueuesError> = SdkError::dispatch_failure(failed);
        let said = from_sdk("connect", &error).to_string();
        assert_eq!(said, "connect (sqs): unavailable: dispatch failure: io error: no route");
    }
}
