//! Takes what the broker and the client say went wrong; gives Flare's kind, and so whether to try again. Which of
//! AMQP's codes means what is one table here.

use std::io;

use flare_core::{Error, ErrorKind};
use lapin::ErrorKind as Fault;

use crate::BACKEND;

/// AMQP's reply codes. What the broker says of a virtual host is told apart by its words.
const TABLE: &[(u16, ErrorKind)] = &[
    (311, ErrorKind::TooLarge),
    (312, ErrorKind::Internal),
    (313, ErrorKind::Internal),
    (320, ErrorKind::Unavailable),
    (402, ErrorKind::NotFound),
    (403, ErrorKind::Denied),
    (404, ErrorKind::NotFound),
    (405, ErrorKind::Conflict),
    (406, ErrorKind::Conflict),
    (501, ErrorKind::Internal),
    (502, ErrorKind::Internal),
    (503, ErrorKind::Internal),
    (504, ErrorKind::Internal),
    (505, ErrorKind::Internal),
    (506, ErrorKind::Busy),
    (530, ErrorKind::Denied),
    (540, ErrorKind::Unsupported),
    (541, ErrorKind::Unavailable),
];

/// A failure of the broker or the client, met in `operation`.
pub(crate) fn from_client(operation: &'static str, error: &lapin::Error) -> Error {
    let (kind, detail) = match error.kind() {
        Fault::ProtocolError(told) => {
            let said = told.get_message().to_string();
            (kind_of(told.get_id(), &said), said)
        }
        Fault::IOError(error) => (kind_of_io(error), error.to_string()),
        Fault::InvalidProtocolVersion(_) => (ErrorKind::Unsupported, error.to_string()),
        Fault::ParsingError(_) => (ErrorKind::Corrupt, error.to_string()),
        Fault::SerialisationError(_) => (ErrorKind::Invalid, error.to_string()),
        Fault::AuthProviderError(_) => (ErrorKind::Denied, error.to_string()),
        Fault::ChannelsLimitReached => (ErrorKind::Busy, error.to_string()),
        Fault::NoDefaultRuntime | Fault::FutureCompleted => {
            (ErrorKind::Internal, error.to_string())
        }
        // Its connection or channel is not what it was, which another one may be.
        _ => (ErrorKind::Unavailable, error.to_string()),
    };
    Error::new(kind, operation).with_backend(BACKEND).with_detail(detail)
}

/// The end of a connection, whatever it ended of: the next one says whether it can be had.
pub(crate) fn ended(why: impl std::fmt::Display) -> Error {
    let detail = format!("the connection was lost: {why}");
    Error::new(ErrorKind::Unavailable, "receive").with_backend(BACKEND).with_detail(detail)
}

/// A receipt that is good for nothing.
pub(crate) fn lost(operation: &'static str) -> Error {
    Error::new(ErrorKind::Lost, operation)
        .with_backend(BACKEND)
        .with_detail("the message is settled, or its connection is lost, or the source is closed")
}

/// No answer within the time that the settings say.
pub(crate) fn late(operation: &'static str) -> Error {
    Error::new(ErrorKind::Timeout, operation)
        .with_backend(BACKEND)
        .with_detail("the broker did not answer in time")
}

fn kind_of(code: u16, said: &str) -> ErrorKind {
    // NOT_ALLOWED - vhost orders not found
    if code == 530 && said.ends_with("not found") {
        return ErrorKind::NotFound;
    }
    let found = TABLE.iter().find(|(listed, _)| *listed == code);
    found.map_or(ErrorKind::Internal, |(_, kind)| *kind)
}

fn kind_of_io(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        // What rustls makes of a certificate that it does not trust, or of a name that is another's.
        io::ErrorKind::InvalidData => ErrorKind::Denied,
        io::ErrorKind::InvalidInput => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use lapin::protocol::AMQPError;

    use super::*;

    fn told(code: u16, said: &str) -> Error {
        let error = AMQPError::from_id(code, said.into()).unwrap();
        from_client("open", &Fault::ProtocolError(error).into())
    }

    #[test]
    fn every_code_means_what_it_should() {
        for (code, kind, temporary) in [
            (311, ErrorKind::TooLarge, false),
            (313, ErrorKind::Internal, false),
            (320, ErrorKind::Unavailable, true),
            (402, ErrorKind::NotFound, false),
            (403, ErrorKind::Denied, false),
            (404, ErrorKind::NotFound, false),
            (405, ErrorKind::Conflict, false),
            (406, ErrorKind::Conflict, false),
            (501, ErrorKind::Internal, false),
            (502, ErrorKind::Internal, false),
            (503, ErrorKind::Internal, false),
            (504, ErrorKind::Internal, false),
            (505, ErrorKind::Internal, false),
            (506, ErrorKind::Busy, true),
            (530, ErrorKind::Denied, false),
            (540, ErrorKind::Unsupported, false),
            (541, ErrorKind::Unavailable, true),
        ] {
            let error = told(code, "said so");
            assert_eq!((error.kind(), error.is_temporary()), (kind, temporary), "{code}");
        }
    }

    #[test]
    fn a_virtual_host_that_is_not_there_is_not_found() {
        let error = told(530, "NOT_ALLOWED - vhost orders not found");
        let said = "open (rabbitmq): not found: NOT_ALLOWED - vhost orders not found";
        assert_eq!(error.to_string(), said);
        let other = told(530, "NOT_ALLOWED - access to vhost 'orders' refused for user 'flare'");
        assert_eq!(other.kind(), ErrorKind::Denied);
    }

    #[test]
    fn a_connection_that_fails_is_tried_again_unless_the_certificate_is_wrong() {
        for (io, kind) in [
            (io::ErrorKind::ConnectionRefused, ErrorKind::Unavailable),
            (io::ErrorKind::UnexpectedEof, ErrorKind::Unavailable),
            (io::ErrorKind::TimedOut, ErrorKind::Timeout),
            (io::ErrorKind::InvalidData, ErrorKind::Denied),
        ] {
            let error = lapin::Error::from(io::Error::new(io, "x"));
            assert_eq!(from_client("open", &error).kind(), kind, "{io}");
        }
        let error = lapin::Error::from(Fault::MissingHeartbeatError);
        assert!(from_client("receive", &error).is_temporary());
    }
}
