//! Takes what etcd, its client and the connection say; gives an error of Flare's, and what to do
//! next: stop, or ask another member. The only place that knows what a code means.

use std::error::Error as StdError;

use flare_core::{Error, ErrorKind};
use tonic::{Code, ConnectError, Status, TimeoutExpired};

use crate::BACKEND;

/// What a caller does about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// This is the answer: no other member would say anything else.
    Stop,
    /// Nothing happened: ask another member.
    Elsewhere,
    /// Nobody knows whether it happened: ask another member, with that in mind.
    InDoubt,
    /// Nothing happened, as we have to sign in again.
    SignIn,
}

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) next: Next,
}

impl Failure {
    pub(crate) fn new(
        operation: &'static str,
        kind: ErrorKind,
        next: Next,
        detail: impl Into<String>,
    ) -> Self {
        let error = Error::new(kind, operation).with_backend(BACKEND).with_detail(detail.into());
        Self { error, next }
    }

    /// An answer that is not one of etcd's errors.
    pub(crate) fn stop(error: Error) -> Self {
        Self { error, next: Next::Stop }
    }
}

/// What etcd says in words, whatever the code: one code has several meanings.
const SAID: &[(&str, ErrorKind, Next)] = &[
    ("requested lease not found", ErrorKind::Lost, Next::Stop),
    ("lease not found", ErrorKind::Lost, Next::Stop),
    ("required revision has been compacted", ErrorKind::Compacted, Next::Stop),
    ("request is too large", ErrorKind::TooLarge, Next::Stop),
    ("received message larger than max", ErrorKind::TooLarge, Next::Stop),
    ("decoded message length too large", ErrorKind::TooLarge, Next::Stop),
    ("too large lease TTL", ErrorKind::Invalid, Next::Stop),
    // Somebody has to make room there first.
    ("database space exceeded", ErrorKind::Busy, Next::Stop),
    ("too many requests", ErrorKind::Busy, Next::Elsewhere),
    ("no leader", ErrorKind::Unavailable, Next::Elsewhere),
    ("request timed out", ErrorKind::Timeout, Next::InDoubt),
    ("leader changed", ErrorKind::Unavailable, Next::InDoubt),
    ("server stopped", ErrorKind::Unavailable, Next::InDoubt),
    ("corrupt cluster", ErrorKind::Corrupt, Next::Stop),
    ("user name is empty", ErrorKind::Denied, Next::Stop),
    ("user name not found", ErrorKind::Denied, Next::Stop),
    ("invalid user ID or password", ErrorKind::Denied, Next::Stop),
    ("authentication is not enabled", ErrorKind::Denied, Next::Stop),
    ("permission denied", ErrorKind::Denied, Next::Stop),
    ("invalid auth token", ErrorKind::Denied, Next::SignIn),
    ("revision of auth store is old", ErrorKind::Unavailable, Next::SignIn),
];

/// What etcd says in words that are known here.
fn said(message: &str) -> Option<(ErrorKind, Next)> {
    SAID.iter().find(|(words, ..)| message.contains(words)).map(|&(_, kind, next)| (kind, next))
}

/// What a code means that came with words we do not know.
fn by_code(code: Code) -> (ErrorKind, Next) {
    match code {
        Code::Unavailable | Code::Aborted | Code::Cancelled => {
            (ErrorKind::Unavailable, Next::InDoubt)
        }
        Code::DeadlineExceeded => (ErrorKind::Timeout, Next::InDoubt),
        Code::ResourceExhausted => (ErrorKind::Busy, Next::InDoubt),
        Code::PermissionDenied => (ErrorKind::Denied, Next::Stop),
        Code::Unauthenticated => (ErrorKind::Denied, Next::SignIn),
        Code::InvalidArgument | Code::OutOfRange => (ErrorKind::Invalid, Next::Stop),
        Code::NotFound => (ErrorKind::NotFound, Next::Stop),
        Code::AlreadyExists | Code::FailedPrecondition => (ErrorKind::Conflict, Next::Stop),
        Code::Unimplemented => (ErrorKind::Unsupported, Next::Stop),
        Code::DataLoss => (ErrorKind::Corrupt, Next::Stop),
        Code::Ok | Code::Unknown | Code::Internal => (ErrorKind::Internal, Next::Stop),
    }
}

/// What became of an attempt that the client calls failed.
pub(crate) fn from_client(operation: &'static str, error: &etcd_client::Error) -> Failure {
    use etcd_client::Error as Client;
    let (kind, next) = match error {
        Client::GRpcStatus(status) => return from_status(operation, status),
        Client::LeaseKeepAliveError(words) | Client::WatchError(words) => {
            said(words).unwrap_or((ErrorKind::Unavailable, Next::InDoubt))
        }
        Client::IoError(_) => (ErrorKind::Unavailable, Next::InDoubt),
        // Said of settings alone: what goes wrong on a connection is a status.
        Client::InvalidArgs(_) | Client::InvalidUri(_) | Client::TransportError(_) => {
            (ErrorKind::Invalid, Next::Stop)
        }
        Client::Utf8Error(_) | Client::InvalidMetadataValue(_) => (ErrorKind::Corrupt, Next::Stop),
        _ => (ErrorKind::Internal, Next::Stop),
    };
    let detail = match error {
        Client::TransportError(error) => chain(error),
        error => error.to_string(),
    };
    Failure::new(operation, kind, next, detail)
}

/// What a watch that etcd has ended says about it.
pub(crate) fn from_reason(operation: &'static str, reason: &str) -> Failure {
    let (kind, next) = said(reason).unwrap_or((ErrorKind::Unavailable, Next::Elsewhere));
    Failure::new(operation, kind, next, format!("the watch was ended: {reason}"))
}

fn from_status(operation: &'static str, status: &Status) -> Failure {
    // What never left this machine has a source; what etcd said has none.
    let Some(cause) = status.source() else {
        let (kind, next) = said(status.message()).unwrap_or_else(|| by_code(status.code()));
        return Failure::new(operation, kind, next, told(status));
    };
    let (kind, next) = if causes(cause).any(is_about_certificates) {
        // Certificates do not change while a call is made, but another member has another.
        (ErrorKind::Denied, Next::Elsewhere)
    } else if finds::<ConnectError>(cause) {
        (ErrorKind::Unavailable, Next::Elsewhere)
    } else if finds::<TimeoutExpired>(cause) {
        (ErrorKind::Timeout, Next::InDoubt)
    } else if let Some(meant) = said(status.message()) {
        meant
    } else {
        (ErrorKind::Unavailable, Next::InDoubt)
    };
    Failure::new(operation, kind, next, chain(cause))
}

fn told(status: &Status) -> String {
    if status.message().is_empty() {
        status.code().description().to_owned()
    } else {
        status.message().to_owned()
    }
}

/// An error and all behind it.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // An I/O error made from another one would skip it.
        match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}

fn finds<E: StdError + 'static>(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|error| error.is::<E>())
}

fn is_about_certificates(error: &(dyn StdError + 'static)) -> bool {
    use rustls::Error as Tls;
    matches!(
        error.downcast_ref::<Tls>(),
        Some(Tls::InvalidCertificate(_) | Tls::NoCertificatesPresented | Tls::AlertReceived(_))
    )
}

/// An error and all behind it, in one line, nothing said twice.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut said: Vec<String> = Vec::new();
    for cause in causes(error) {
        let words = cause.to_string();
        if said.last().is_none_or(|last| !last.ends_with(&words)) {
            said.push(words);
        }
    }
    said.join(": ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(code: Code, message: &str) -> (ErrorKind, Next) {
        let failure = from_client("write", &Status::new(code, message).into());
        (failure.error.kind(), failure.next)
    }

    /// As etcd 3.5 says it, word for word.
    #[test]
    fn what_etcd_says_means_what_it_should() {
        use {Code as C, ErrorKind as K, Next as N};
        let table = [
            (C::NotFound, "etcdserver: requested lease not found", K::Lost, N::Stop),
            (
                C::OutOfRange,
                "etcdserver: mvcc: required revision has been compacted",
                K::Compacted,
                N::Stop,
            ),
            (C::InvalidArgument, "etcdserver: request is too large", K::TooLarge, N::Stop),
            (
                C::ResourceExhausted,
                "grpc: received message larger than max (9 vs. 8)",
                K::TooLarge,
                N::Stop,
            ),
            (
                C::OutOfRange,
                "Error, decoded message length too large: found 9 bytes, the limit is: 8 bytes",
                K::TooLarge,
                N::Stop,
            ),
            (C::OutOfRange, "etcdserver: too large lease TTL", K::Invalid, N::Stop),
            (C::ResourceExhausted, "etcdserver: mvcc: database space exceeded", K::Busy, N::Stop),
            (C::ResourceExhausted, "etcdserver: too many requests", K::Busy, N::Elsewhere),
            (C::Unavailable, "etcdserver: no leader", K::Unavailable, N::Elsewhere),
            (C::Unavailable, "etcdserver: leader changed", K::Unavailable, N::InDoubt),
            (C::Unavailable, "etcdserver: request timed out", K::Timeout, N::InDoubt),
            (
                C::Unavailable,
                "etcdserver: request timed out, possibly due to connection lost",
                K::Timeout,
                N::InDoubt,
            ),
            (C::Unavailable, "etcdserver: server stopped", K::Unavailable, N::InDoubt),
            (C::DataLoss, "etcdserver: corrupt cluster", K::Corrupt, N::Stop),
            (
                C::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
                K::Denied,
                N::Stop,
            ),
            (C::InvalidArgument, "etcdserver: user name is empty", K::Denied, N::Stop),
            (C::FailedPrecondition, "etcdserver: user name not found", K::Denied, N::Stop),
            (
                C::FailedPrecondition,
                "etcdserver: authentication is not enabled",
                K::Denied,
                N::Stop,
            ),
            (C::PermissionDenied, "etcdserver: permission denied", K::Denied, N::Stop),
            (C::Unauthenticated, "etcdserver: invalid auth token", K::Denied, N::SignIn),
            (
                C::InvalidArgument,
                "etcdserver: revision of auth store is old",
                K::Unavailable,
                N::SignIn,
            ),
        ];
        for (code, message, kind, next) in table {
            assert_eq!(meant(code, message), (kind, next), "{message}");
        }
        let tried = |words: &str| table.iter().any(|(_, message, ..)| message.contains(words));
        for (words, ..) in SAID {
            assert!(tried(words), "{words:?} is not tried");
        }
    }

    #[test]
    fn other_words_go_by_their_code() {
        use {Code as C, ErrorKind as K, Next as N};
        let table = [
            (C::Unavailable, K::Unavailable, N::InDoubt),
            (C::Cancelled, K::Unavailable, N::InDoubt),
            (C::Aborted, K::Unavailable, N::InDoubt),
            (C::DeadlineExceeded, K::Timeout, N::InDoubt),
            (C::ResourceExhausted, K::Busy, N::InDoubt),
            (C::PermissionDenied, K::Denied, N::Stop),
            (C::Unauthenticated, K::Denied, N::SignIn),
            (C::InvalidArgument, K::Invalid, N::Stop),
            (C::OutOfRange, K::Invalid, N::Stop),
            (C::NotFound, K::NotFound, N::Stop),
            (C::AlreadyExists, K::Conflict, N::Stop),
            (C::FailedPrecondition, K::Conflict, N::Stop),
            (C::Unimplemented, K::Unsupported, N::Stop),
            (C::DataLoss, K::Corrupt, N::Stop),
            (C::Unknown, K::Internal, N::Stop),
            (C::Internal, K::Internal, N::Stop),
        ];
        for (code, kind, next) in table {
            assert_eq!(meant(code, "something new"), (kind, next), "{code:?}");
        }
    }

    #[test]
    fn a_connection_never_made_did_nothing_and_one_that_broke_may_have() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = Status::from_error(Box::new(ConnectError(Box::new(refused))));
        let failure = from_status("write", &status);
        assert_eq!((failure.error.kind(), failure.next), (ErrorKind::Unavailable, Next::Elsewhere));
        assert_eq!(failure.error.to_string(), "write (etcd): unavailable: connection refused");

        let broke = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let failure = from_status("write", &Status::from_error(Box::new(broke)));
        assert_eq!((failure.error.kind(), failure.next), (ErrorKind::Unavailable, Next::InDoubt));

        let late = Status::from_error(Box::new(TimeoutExpired(())));
        let failure = from_status("write", &late);
        assert_eq!((failure.error.kind(), failure.next), (ErrorKind::Timeout, Next::InDoubt));
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_told() {
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let failed = std::io::Error::other(unknown);
        let status = Status::from_error(Box::new(ConnectError(Box::new(failed))));
        let failure = from_status("connect", &status);
        assert_eq!((failure.error.kind(), failure.next), (ErrorKind::Denied, Next::Elsewhere));
        assert!(failure.error.detail().contains("UnknownIssuer"), "{}", failure.error);
    }

    #[test]
    fn an_ended_watch_says_why() {
        let ended = |reason: &str| {
            let failure = from_reason("watch", reason);
            (failure.error.kind(), failure.next)
        };
        let denied = "rpc error: code = PermissionDenied desc = etcdserver: permission denied";
        assert_eq!(ended(denied), (ErrorKind::Denied, Next::Stop));
        let token = "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token";
        assert_eq!(ended(token), (ErrorKind::Denied, Next::SignIn));
        assert_eq!(ended(""), (ErrorKind::Unavailable, Next::Elsewhere));
    }

    #[test]
    fn settings_the_client_refuses_are_the_caller_s() {
        let error = etcd_client::Error::InvalidArgs("odd".to_owned());
        let failure = from_client("connect", &error);
        assert_eq!((failure.error.kind(), failure.next), (ErrorKind::Invalid, Next::Stop));
        let lost = etcd_client::Error::LeaseKeepAliveError("lease not found".to_owned());
        assert_eq!(from_client("keep_alive", &lost).error.kind(), ErrorKind::Lost);
    }
}
