//! Takes the text of a URL or of one path segment; gives its RFC 3986 normal form, its parts and
//! its decoded value. Never removes dot segments: `/a/../b` stays what it is, so that it is seen.

use std::borrow::Cow;
use std::fmt::Write as _;

use fluent_uri::component::Authority;
use fluent_uri::pct_enc::{DecodedChunk, EStr, encoder};
use fluent_uri::{ParseError, ParseErrorKind, Uri, UriRef};

use super::Invalid;

/// The longest URL or endpoint, in bytes, as given and in normal form.
pub(super) const MAX_BYTES: usize = 2_048;

/// The segments of a path: what its slashes stand between.
pub(super) type RawSegments<'a> = std::str::Split<'a, char>;

/// The normal form of an absolute http(s) URL that has a host and a path, and nothing else.
///
/// Scheme and host are lower-cased, the default port goes, other ports lose leading zeros, escaped
/// unreserved characters are decoded and the hex digits of the other escapes upper-cased.
pub(super) fn url(field: &'static str, text: &str) -> Result<String, Invalid> {
    let refuse = |reason: &'static str| Err(Invalid::new(field, reason));
    within_limit(field, text)?;
    if let Some(foreign) = text.chars().find(|c| !c.is_ascii()) {
        let reason = format!("holds {foreign:?}: non-ASCII characters must be percent-encoded");
        return Err(Invalid::new(field, reason));
    }
    let parsed =
        UriRef::parse(text).map_err(|error| Invalid::new(field, syntax_reason(text, error)))?;
    let Some(scheme) = parsed.scheme() else {
        return refuse(NOT_ABSOLUTE);
    };
    let scheme = scheme.as_str().to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => {
            return Err(Invalid::new(field, format!("must be http or https, not {scheme:?}")));
        }
    };
    let authority = match parsed.authority() {
        Some(authority) if !authority.host().is_empty() => authority,
        _ => return refuse("must have a host"),
    };
    if authority.has_userinfo() {
        return refuse("must not hold a user or password");
    }
    if parsed.has_query() {
        return refuse(HAS_QUERY);
    }
    if parsed.has_fragment() {
        return refuse(HAS_FRAGMENT);
    }
    if matches!(parsed.path().as_str(), "" | "/") {
        return refuse("must have a path after the host");
    }
    let Ok(port) = authority.port_to_u16() else {
        return refuse("must have a port of at most 65535");
    };

    let mut normal = normal_host(field, &scheme, &authority)?;
    if let Some(port) = port.filter(|port| *port != default_port) {
        // Writing to a string cannot fail.
        let _ = write!(normal, ":{port}");
    }
    for chunk in parsed.path().decode() {
        match chunk {
            DecodedChunk::Unencoded(plain) => normal.push_str(plain),
            DecodedChunk::PctDecoded(byte) if is_unreserved(byte) => normal.push(byte.into()),
            DecodedChunk::PctDecoded(byte) => {
                let _ = write!(normal, "%{byte:02X}");
            }
        }
    }
    // An IPv6 address may grow: `[::ffff:7f00:1]` is `[::ffff:127.0.0.1]`.
    within_limit(field, &normal)?;
    Ok(normal)
}

pub(super) const NOT_ABSOLUTE: &str = "must be an absolute URL (http://… or https://…)";
pub(super) const HAS_QUERY: &str = "must not have a query (?…)";
pub(super) const HAS_FRAGMENT: &str = "must not have a fragment (#…)";

/// Refuses what is empty or longer than [`MAX_BYTES`].
pub(super) fn within_limit(field: &'static str, text: &str) -> Result<(), Invalid> {
    match text.len() {
        0 => Err(Invalid::new(field, "must not be empty")),
        1..=MAX_BYTES => Ok(()),
        _ => Err(Invalid::new(field, "must be at most 2,048 bytes long")),
    }
}

/// `scheme://host[:port]` and the path of a URL in normal form.
pub(super) fn split(normal: &str) -> (&str, &str) {
    let host = normal.find("://").map_or(0, |at| at + "://".len());
    let path = normal.bytes().skip(host).position(|byte| byte == b'/');
    normal.split_at(path.map_or(normal.len(), |at| host + at))
}

/// The segments of a URL in normal form, still percent-encoded.
pub(super) fn segments(normal: &str) -> RawSegments<'_> {
    let (_, path) = split(normal);
    path.strip_prefix('/').unwrap_or(path).split('/')
}

/// Neither empty nor a dot segment, so it may be matched.
pub(super) fn is_plain(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..")
}

/// Whether a segment may stand for a wildcard: it is plain and decodes to UTF-8. Does not allocate.
pub(super) fn fits_wildcard(segment: &str) -> bool {
    is_plain(segment) && (!segment.contains('%') || decodes_to_utf8(segment))
}

/// The decoded value of a segment that [fits a wildcard](fits_wildcard).
pub(super) fn wildcard_value(segment: &str) -> Option<Cow<'_, str>> {
    if !is_plain(segment) {
        return None;
    }
    EStr::<encoder::Path>::new(segment)?.decode().to_string().ok()
}

fn decodes_to_utf8(segment: &str) -> bool {
    let Some(segment) = EStr::<encoder::Path>::new(segment) else { return false };
    // A character of UTF-8 has at most four bytes, and its bytes are all escaped or it is ASCII.
    let mut open = [0_u8; 4];
    let mut len = 0;
    for chunk in segment.decode() {
        match chunk {
            DecodedChunk::Unencoded(_) if len > 0 => return false,
            DecodedChunk::Unencoded(_) => {}
            DecodedChunk::PctDecoded(byte) => {
                let Some(place) = open.get_mut(len) else { return false };
                *place = byte;
                len += 1;
                match std::str::from_utf8(&open[..len]) {
                    Ok(_) => len = 0,
                    Err(error) if error.error_len().is_some() => return false,
                    Err(_) => {}
                }
            }
        }
    }
    len == 0
}

/// `scheme://host` with the host as fluent-uri normalises it (names, IPv4, IPv6, IPvFuture).
fn normal_host(
    field: &'static str,
    scheme: &str,
    authority: &Authority<'_>,
) -> Result<String, Invalid> {
    let host = authority.host();
    let alone = format!("{scheme}://{host}");
    match Uri::parse(alone) {
        Ok(uri) => Ok(uri.normalize().into_string()),
        Err(_) => Err(Invalid::new(field, format!("has a host that is not valid: {host:?}"))),
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn syntax_reason(text: &str, error: ParseError) -> String {
    match (error.kind(), text.get(error.index()..).and_then(|rest| rest.chars().next())) {
        (ParseErrorKind::InvalidPctEncodedOctet, _) => {
            "has a % that is not followed by two hex digits".to_owned()
        }
        (ParseErrorKind::InvalidIpv6Addr, _) => "has a host that is no IPv6 address".to_owned(),
        (ParseErrorKind::UnexpectedChar, Some(c)) => {
            format!("holds {c:?}, which a URL cannot have in that place")
        }
        (ParseErrorKind::UnexpectedChar, None) => "ends too early for a URL".to_owned(),
    }
}
