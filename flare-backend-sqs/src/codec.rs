//! Takes payloads, which are bytes; gives the text that SQS carries, and back. A body is `b` and the
//! payload in base64 without padding: SQS refuses empty bodies and many characters.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;

/// What a body of ours begins with.
const MARK: char = 'b';

/// The body that carries a payload.
pub(crate) fn encode(payload: &[u8]) -> String {
    let mut body = String::with_capacity(encoded_len(payload.len()));
    body.push(MARK);
    STANDARD_NO_PAD.encode_string(payload, &mut body);
    body
}

/// The payload in a body. What somebody else put there is given as it is: whoever receives it sees
/// that it says nothing, and settles it; refused here, it would come back for ever.
pub(crate) fn decode(body: &str) -> Bytes {
    let ours = body.strip_prefix(MARK).and_then(|text| STANDARD_NO_PAD.decode(text).ok());
    ours.map_or_else(|| Bytes::copy_from_slice(body.as_bytes()), Bytes::from)
}

/// The bytes of a body, for a payload of `len` bytes.
pub(crate) const fn encoded_len(len: usize) -> usize {
    MARK.len_utf8() + (len * 4).div_ceil(3)
}

/// The longest payload whose body is not longer than `limit`.
pub(crate) const fn max_payload(limit: usize) -> usize {
    limit.saturating_sub(MARK.len_utf8()) * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for len in 0..=600_usize {
            let payload: Vec<u8> = (0..len).map(|index| (index * 31 % 251) as u8).collect();
            let body = encode(&payload);
            assert_eq!(body.len(), encoded_len(len));
            assert_eq!(decode(&body), payload);
        }
    }

    #[test]
    fn the_longest_payload_fits_and_the_next_does_not() {
        for limit in (1..2_000).chain([256 << 10, 1 << 20]) {
            let longest = max_payload(limit);
            assert!(encoded_len(longest) <= limit, "{longest} in {limit}");
            assert!(encoded_len(longest + 1) > limit, "{} in {limit}", longest + 1);
        }
    }

    #[test]
    fn what_is_not_ours_is_given_as_it_is() {
        for body in ["", "b", "hello", "b not base64", "b=", "{}"] {
            let expected = if body == "b" { "" } else { body };
            assert_eq!(decode(body), expected, "{body:?}");
        }
    }
}
