//! Takes payloads, which are bytes; gives the text that SQS carries, and back. A body is `b` and the
//! payload in base64 without padding: SQS refuses empty bodies and many characters. Where SQS knows no
//! delay of a message, it is `d`, the delay in seconds as three digits, and the payload.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;

/// What a body of ours begins with.
const MARK: char = 'b';

/// What a body of ours begins with that carries a delay.
const DELAYED: char = 'd';

/// The digits of a delay.
pub(crate) const DELAY_DIGITS: usize = 3;

/// What a body says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) payload: Bytes,
    pub(crate) delay: Duration,
}

/// The body that carries a payload.
pub(crate) fn encode(payload: &[u8]) -> String {
    let mut body = String::with_capacity(encoded_len(payload.len()));
    body.push(MARK);
    STANDARD_NO_PAD.encode_string(payload, &mut body);
    body
}

/// The body that carries a payload and its delay, of less than a thousand seconds.
pub(crate) fn encode_delayed(payload: &[u8], seconds: i32) -> String {
    let mut body = format!("{DELAYED}{seconds:0DELAY_DIGITS$}");
    STANDARD_NO_PAD.encode_string(payload, &mut body);
    body
}

/// What a body says. What somebody else put there is given as it is: whoever receives it sees that it
/// says nothing, and settles it; refused here, it would come back for ever.
pub(crate) fn decode(body: &str) -> Body {
    let now = |text: &str| Some((Duration::ZERO, STANDARD_NO_PAD.decode(text).ok()?));
    let later = |text: &str| {
        let (digits, text) = text.split_at_checked(DELAY_DIGITS)?;
        let delay = digits.bytes().all(|it| it.is_ascii_digit()).then(|| digits.parse().ok())??;
        Some((Duration::from_secs(delay), STANDARD_NO_PAD.decode(text).ok()?))
    };
    let ours = body.strip_prefix(MARK).and_then(now);
    let ours = ours.or_else(|| body.strip_prefix(DELAYED).and_then(later));
    let foreign = || (Duration::ZERO, body.as_bytes().to_vec());
    let (delay, payload) = ours.unwrap_or_else(foreign);
    Body { payload: payload.into(), delay }
}

/// The bytes of a body, for a payload of `len` bytes.
const fn encoded_len(len: usize) -> usize {
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
            assert_eq!(decode(&body), Body { payload: payload.into(), delay: Duration::ZERO });
        }
    }

    #[test]
    fn delays_come_back() {
        for seconds in [0, 1, 59, 900] {
            let body = encode_delayed(b"later", seconds);
            assert_eq!(body.len(), encoded_len(5) + DELAY_DIGITS);
            let delay = Duration::from_secs(seconds.unsigned_abs().into());
            assert_eq!(decode(&body), Body { payload: "later".into(), delay });
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
        for body in
            ["", "b", "hello", "b not base64", "b=", "{}", "d", "d12", "d+12", "d007=", "dü"]
        {
            let expected = if body == "b" { "" } else { body };
            assert_eq!(decode(body), Body { payload: expected.into(), delay: Duration::ZERO });
        }
    }
}
