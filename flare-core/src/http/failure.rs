//! Takes an error of the HTTP client; gives what kind of failure it is, whether the request may
//! have left, and a sentence with its causes. Knows no URL, so it can leak none.

use std::error::Error as StdError;
use std::io;

use super::deadline::NotConnected;
use super::resolver::{Forbidden, NotFound};
use crate::port::{DeliveryOutcome, FailureKind};

/// Longest message, in bytes: causes come from outside, and the message is stored.
const MAX_MESSAGE: usize = 500;

/// How far the attempt had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureStage {
    /// The request could not be made.
    Building,
    /// There was no connection yet.
    Connecting,
    /// There was a connection: the request may have left.
    Exchanging,
}

/// The outcome of an attempt that ended in `error`.
pub(super) fn outcome(error: reqwest::Error, target: &str) -> DeliveryOutcome {
    let stage = match (error.is_builder(), error.is_connect()) {
        (true, _) => FailureStage::Building,
        (_, true) => FailureStage::Connecting,
        _ => FailureStage::Exchanging,
    };
    let error = error.without_url();
    let kind = kind(stage, &error);
    let message = match kind {
        // These name the host themselves.
        FailureKind::Refused | FailureKind::Dns => describe(&error),
        _ => format!("{target}: {}", describe(&error)),
    };
    let message = cut(message);
    DeliveryOutcome::failed(kind, message, stage == FailureStage::Exchanging)
}

/// What kind of failure `error` is at this stage.
fn kind(stage: FailureStage, error: &(dyn StdError + 'static)) -> FailureKind {
    let by_cause = chain(error).find_map(|cause| {
        if cause.is::<Forbidden>() {
            Some(FailureKind::Refused)
        } else if cause.is::<NotFound>() {
            Some(FailureKind::Dns)
        } else if cause.is::<NotConnected>() {
            Some(FailureKind::Timeout)
        } else if cause.is::<rustls::Error>() {
            Some(FailureKind::Tls)
        } else {
            None
        }
    });
    let by_stage = || match stage {
        FailureStage::Building => FailureKind::Unsendable,
        // Only a handshake can end early here; a TCP connection is there or not.
        FailureStage::Connecting if ends_early(error) => FailureKind::Tls,
        FailureStage::Connecting => FailureKind::Connect,
        FailureStage::Exchanging => FailureKind::Broken,
    };
    by_cause.unwrap_or_else(by_stage)
}

/// Whether the other side closed where more was to come.
fn ends_early(error: &(dyn StdError + 'static)) -> bool {
    let mut causes = chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == io::ErrorKind::UnexpectedEof)
}

/// The causes, from the most general to the most special.
fn describe(error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    for cause in chain(error) {
        if let Some(forbidden) = cause.downcast_ref::<Forbidden>() {
            return forbidden.to_string();
        }
        let cause = cause.to_string();
        if is_hollow(&cause) || text.contains(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    if text.is_empty() { error.to_string() } else { text }
}

/// What reqwest and hyper-util wrap around every error, and around ours.
fn is_hollow(text: &str) -> bool {
    text.starts_with("client error (")
        || matches!(text, "error sending request" | "dns error" | "error resolving DNS")
}

/// An error and its causes. `io::Error` hides what it wraps from `source`, so that is asked apart.
fn chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|inner| inner as &(dyn StdError + 'static)).or_else(|| error.source())
    })
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;
    use crate::http::Guard;

    /// An error around another, as hyper's are.
    #[derive(Debug)]
    struct Around(&'static str, Box<dyn StdError + Send + Sync>);

    impl fmt::Display for Around {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl StdError for Around {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&*self.1)
        }
    }

    fn around(inner: impl StdError + Send + Sync + 'static) -> Around {
        let inner = Around("tcp connect error", Box::new(inner));
        Around("error sending request", Box::new(Around("client error (Connect)", Box::new(inner))))
    }

    fn forbidden() -> Forbidden {
        let refusal = Guard::default().check([127, 0, 0, 1].into()).unwrap_err();
        Forbidden { host: "localhost".to_owned(), refusal }
    }

    fn not_found() -> NotFound {
        let source = Some(io::Error::other("Name or service not known"));
        NotFound { host: "unknown.example".to_owned(), source }
    }

    #[test]
    fn each_cause_has_its_kind() {
        use FailureKind::*;
        use FailureStage::*;
        use io::ErrorKind as Io;
        let tls = || rustls::Error::General("bad".to_owned());
        let not_connected = NotConnected { timeout: None };
        for (stage, error, expected) in [
            (Building, around(io::Error::other("no uri")), Unsendable),
            (Connecting, around(forbidden()), Refused),
            (Connecting, around(io::Error::other(forbidden())), Refused),
            (Connecting, around(not_found()), Dns),
            (Connecting, around(not_connected), Timeout),
            (Connecting, around(tls()), Tls),
            (Connecting, around(io::Error::other(tls())), Tls),
            (Connecting, around(io::Error::new(Io::InvalidData, tls())), Tls),
            (Connecting, around(io::Error::new(Io::UnexpectedEof, "tls handshake eof")), Tls),
            (Connecting, around(io::Error::from(Io::ConnectionRefused)), Connect),
            (Connecting, around(io::Error::from(Io::HostUnreachable)), Connect),
            (Connecting, around(io::Error::from(Io::TimedOut)), Connect),
            (Connecting, around(io::Error::other("tunnel unsuccessful")), Connect),
            (Exchanging, around(io::Error::from(Io::ConnectionReset)), Broken),
            (Exchanging, around(io::Error::from(Io::BrokenPipe)), Broken),
            (Exchanging, around(io::Error::from(Io::UnexpectedEof)), Broken),
            (Exchanging, around(io::Error::other("invalid HTTP version parsed")), Broken),
            (Exchanging, around(io::Error::other(tls())), Tls),
        ] {
            assert_eq!(kind(stage, &error), expected, "{stage:?} {error:?}");
        }
    }

    #[test]
    fn a_message_names_each_cause_once() {
        let error = around(io::Error::other("Connection refused"));
        assert_eq!(describe(&error), "tcp connect error: Connection refused");
        let message = describe(&around(not_found()));
        let expected = "unknown.example does not resolve: Name or service not known";
        assert!(message.ends_with(expected), "{message}");
        assert!(describe(&around(forbidden())).starts_with("localhost resolves to 127.0.0.1"));
    }

    #[test]
    fn a_message_is_bounded() {
        let message = cut("ä".repeat(1000));
        assert!(message.len() <= MAX_MESSAGE + '…'.len_utf8(), "{}", message.len());
        assert_eq!(cut("short".to_owned()), "short");
    }
}
