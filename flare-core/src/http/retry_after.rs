//! Takes a `Retry-After` header; gives what the client asked for. Reads no clock.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;

use crate::model::Timestamp;
use crate::model::duration::MAX_DURATION;
use crate::port::RetryAfter;

/// The three forms of an HTTP date (RFC 9110, 5.6.7): today's, RFC 850's and C's `asctime`.
const DATES: [&str; 3] =
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Seconds or a date; none if it is neither.
pub(super) fn parse(text: &str) -> Option<RetryAfter> {
    let text = text.trim_matches([' ', '\t']);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only digits: what does not fit is more than anybody waits.
        let delay = text.parse().map_or(MAX_DURATION, Duration::from_secs);
        return Some(RetryAfter::Delay(delay.min(MAX_DURATION)));
    }
    DATES.into_iter().find_map(|form| date(form, text)).map(RetryAfter::At)
}

fn date(form: &str, text: &str) -> Option<Timestamp> {
    let time = BrokenDownTime::parse(form, text).ok()?.to_datetime().ok()?;
    Some(Timestamp::from_unix_seconds(time.duration_since(EPOCH).as_secs()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOVEMBER_1994: Timestamp = Timestamp::from_unix_seconds(784_111_777);

    #[test]
    fn reads_seconds() {
        for (text, seconds) in [("0", 0), ("1", 1), ("120", 120), (" 7\t", 7), ("007", 7)] {
            let delay = RetryAfter::Delay(Duration::from_secs(seconds));
            assert_eq!(parse(text), Some(delay), "{text:?}");
        }
        for text in ["99999999999999", "18446744073709551616", "9".repeat(400).as_str()] {
            assert_eq!(parse(text), Some(RetryAfter::Delay(MAX_DURATION)), "{text:?}");
        }
    }

    #[test]
    fn reads_all_three_dates() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "  Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text), Some(RetryAfter::At(NOVEMBER_1994)), "{text:?}");
        }
        let far = parse("Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(far, Some(RetryAfter::At(Timestamp::MAX)));
        let leap = RetryAfter::At(Timestamp::from_unix_seconds(1_483_228_799));
        assert_eq!(parse("Sat, 31 Dec 2016 23:59:60 GMT"), Some(leap));
    }

    #[test]
    fn leaves_out_what_is_neither() {
        for text in [
            "",
            " ",
            "-1",
            "+1",
            "1.5",
            "1s",
            "soon",
            "1, 2",
            "0x10",
            "١",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT; later",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in ".*") {
            parse(&text);
        }

        #[test]
        fn never_panics_on_what_looks_like_a_date(
            text in "[A-Z][a-z]{2,8},? [0-9]{1,3}[ -][A-Z][a-z]{2}[ -][0-9]{1,6} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
        ) {
            parse(&text);
        }

        #[test]
        fn every_second_is_read_back(seconds in 0_i64..7_000_000_000) {
            let date = jiff::Timestamp::from_second(seconds).unwrap();
            let text = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            let at = RetryAfter::At(Timestamp::from_unix_seconds(seconds));
            prop_assert_eq!(parse(&text), Some(at));
        }
    }
}
