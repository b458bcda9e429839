//! Takes durations as people write them (`500ms`, `1s`, `5m`, `72h`); gives [`Duration`] and back.
//! Never reads a clock.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

use super::Invalid;

/// The longest duration that is accepted: 100 years, so that adding one to a time cannot overflow.
pub const MAX_DURATION: Duration = Duration::from_secs(876_000 * 3600);

const FORM: &str = "must be a duration like \"500ms\", \"1s\", \"5m\" or \"72h\"";
/// How a longer one is refused.
pub(crate) const TOO_LONG: &str = "must be at most \"876000h\"";

/// Largest first, so that the first unit that divides a duration writes it shortest.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a whole number followed by `ms`, `s`, `m` or `h`.
///
/// One number and one unit: fractions and sums (`1h30m`) are refused. The refusal has an empty
/// field, for the caller to put [`within`](Invalid::within) its own.
///
/// ```
/// use flare_core::model::duration::parse_duration;
/// use std::time::Duration;
/// assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
/// assert_eq!(parse_duration("72h"), Ok(Duration::from_secs(72 * 3600)));
/// assert!(parse_duration("1h30m").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, Invalid> {
    let refuse = |reason| Invalid::new("", reason);
    let (digits, unit) = split_unit(text);
    let millis = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, millis)| *millis);
    let (Some(millis), false) = (millis, digits.is_empty()) else { return Err(refuse(FORM)) };
    // Only digits are left, so a number that does not parse is too large.
    let number = digits.parse::<u64>().map_err(|_| refuse(TOO_LONG))?;
    let total = number.checked_mul(millis).ok_or_else(|| refuse(TOO_LONG))?;
    checked(Duration::from_millis(total))
}

/// Writes a duration with the largest unit that needs no fraction: 90 s is `90s`, 120 s is `2m`.
///
/// What is below a millisecond is cut off; every constructor of the model refuses such durations.
pub fn format_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 {
        return "0s".to_owned();
    }
    let unit = UNITS.iter().find(|(_, size)| millis.is_multiple_of(u128::from(*size)));
    let (name, size) = unit.copied().unwrap_or(("ms", 1));
    format!("{}{name}", millis / u128::from(size))
}

/// Refuses what [`format_duration`] could not write or [`parse_duration`] not read back.
pub(crate) fn checked(duration: Duration) -> Result<Duration, Invalid> {
    if duration > MAX_DURATION {
        return Err(Invalid::new("", TOO_LONG));
    }
    if !duration.subsec_nanos().is_multiple_of(1_000_000) {
        return Err(Invalid::new("", "must be a whole number of milliseconds"));
    }
    Ok(duration)
}

/// As [`checked`], and refuses zero.
pub(crate) fn checked_positive(duration: Duration) -> Result<Duration, Invalid> {
    if duration.is_zero() {
        return Err(Invalid::new("", "must be longer than zero"));
    }
    checked(duration)
}

/// Splits a leading run of ASCII digits from the rest.
pub(crate) fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// For `#[serde(with = "flare_core::model::duration")]`.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_duration(*duration))
}

/// For `#[serde(with = "flare_core::model::duration")]`; numbers are refused, they have no unit.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration like \"500ms\", \"1s\", \"5m\" or \"72h\"")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            parse_duration(text).map_err(|invalid| E::custom(invalid.reason()))
        }
    }
    deserializer.deserialize_str(Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_unit() {
        for (text, millis) in
            [("500ms", 500), ("1s", 1_000), ("5m", 300_000), ("72h", 259_200_000), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse_duration("876000h"), Ok(MAX_DURATION));
    }

    #[test]
    fn refuses_what_has_no_single_number_and_unit() {
        for text in
            ["", "1", "s", "1.5s", "-1s", "+1s", " 1s", "1s ", "1 s", "1h30m", "1d", "1S", "1µs"]
        {
            assert_eq!(parse_duration(text), Err(Invalid::new("", FORM)), "{text:?}");
        }
    }

    #[test]
    fn refuses_what_is_too_long_without_overflow() {
        for text in ["876001h", "18446744073709551615h", "99999999999999999999999ms"] {
            assert_eq!(parse_duration(text), Err(Invalid::new("", TOO_LONG)), "{text}");
        }
        assert!(checked(Duration::MAX).is_err());
        assert!(checked(Duration::from_micros(1)).is_err());
        assert!(checked_positive(Duration::ZERO).is_err());
    }

    #[test]
    fn writes_the_largest_exact_unit() {
        for text in ["0s", "500ms", "1s", "90s", "2m", "1h", "72h", "1001ms"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
        assert_eq!(format_duration(Duration::from_secs(3600)), "1h");
    }

    #[test]
    fn serde_refuses_numbers_and_shows_the_form() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Config {
            #[serde(with = "super")]
            timeout: Duration,
        }
        let config: Config = serde_json::from_str(r#"{"timeout":"10s"}"#).unwrap();
        assert_eq!(config.timeout, Duration::from_secs(10));
        assert_eq!(serde_json::to_string(&config).unwrap(), r#"{"timeout":"10s"}"#);
        let error = serde_json::from_str::<Config>(r#"{"timeout":10}"#).err().unwrap();
        assert!(error.to_string().contains("\"500ms\""), "{error}");
    }
}
