//! Takes sizes as people write them (`65536`, `64KiB`, `1MiB`); gives bytes and back.
//! Never allocates what it is told.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

use super::Invalid;
use super::duration::split_unit;

const FORM: &str = "must be a number of bytes, or a size like \"64KiB\", \"1MiB\" or \"2GiB\"";
const TOO_LARGE: &str = "must be below 2^63 bytes";

/// Largest first, so that the first unit that divides a size writes it shortest.
const UNITS: [(&str, u64); 5] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1), ("", 1)];

/// Reads a whole number of bytes, or one followed by `B`, `KiB`, `MiB` or `GiB`.
///
/// ```
/// use flare_core::model::size::parse_size;
/// assert_eq!(parse_size("1MiB"), Ok(1_048_576));
/// assert_eq!(parse_size("512"), Ok(512));
/// assert!(parse_size("1MB").is_err());
/// ```
pub fn parse_size(text: &str) -> Result<u64, Invalid> {
    let refuse = |reason| Invalid::new("", reason);
    let (digits, unit) = split_unit(text);
    let bytes = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| *bytes);
    let (Some(bytes), false) = (bytes, digits.is_empty()) else { return Err(refuse(FORM)) };
    // Only digits are left, so a number that does not parse is too large.
    let number = digits.parse::<u64>().map_err(|_| refuse(TOO_LARGE))?;
    let total = number.checked_mul(bytes).filter(|total| i64::try_from(*total).is_ok());
    total.ok_or_else(|| refuse(TOO_LARGE))
}

/// Writes a size with the largest unit that needs no fraction: 65536 is `64KiB`, 1000 is `1000B`.
pub fn format_size(bytes: u64) -> String {
    if bytes == 0 {
        return "0B".to_owned();
    }
    let unit = UNITS.iter().find(|(_, size)| bytes.is_multiple_of(*size));
    let (name, size) = unit.copied().unwrap_or(("B", 1));
    format!("{}{name}", bytes / size)
}

/// For `#[serde(with = "flare_core::model::size")]`, on a `u64` or a `usize`.
pub fn serialize<S: Serializer>(
    bytes: &(impl Copy + TryInto<u64>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_size((*bytes).try_into().unwrap_or(u64::MAX)))
}

/// For `#[serde(with = "flare_core::model::size")]`: an integer, or a string with a unit.
pub fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<u64>>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct Size;
    impl Visitor<'_> for Size {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of bytes, or a size like \"64KiB\", \"1MiB\" or \"2GiB\"")
        }

        fn visit_u64<E: Error>(self, bytes: u64) -> Result<u64, E> {
            i64::try_from(bytes).map(|_| bytes).map_err(|_| E::custom(TOO_LARGE))
        }

        fn visit_i64<E: Error>(self, bytes: i64) -> Result<u64, E> {
            u64::try_from(bytes).map_err(|_| E::custom(FORM))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            parse_size(text).map_err(|invalid| E::custom(invalid.reason()))
        }
    }
    let bytes = deserializer.deserialize_any(Size)?;
    T::try_from(bytes).map_err(|_| D::Error::custom(TOO_LARGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_unit() {
        for (text, bytes) in
            [("0", 0), ("512", 512), ("512B", 512), ("64KiB", 65_536), ("2GiB", 2_147_483_648)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn refuses_other_units_and_forms() {
        for text in ["", "MiB", "1MB", "1 MiB", "1.5MiB", "-1", "1mib", "1TiB"] {
            assert_eq!(parse_size(text), Err(Invalid::new("", FORM)), "{text:?}");
        }
        for text in ["9223372036854775808", "17179869184GiB", "99999999999999999999"] {
            assert_eq!(parse_size(text), Err(Invalid::new("", TOO_LARGE)), "{text}");
        }
    }

    #[test]
    fn writes_the_largest_exact_unit() {
        for text in ["0B", "1000B", "64KiB", "1MiB", "1025MiB", "3GiB"] {
            assert_eq!(format_size(parse_size(text).unwrap()), text);
        }
    }

    #[test]
    fn serde_takes_integers_and_strings() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Config {
            #[serde(with = "super")]
            limit: u64,
        }
        for text in [r#"{"limit":1048576}"#, r#"{"limit":"1MiB"}"#] {
            let config: Config = serde_json::from_str(text).unwrap();
            assert_eq!(config.limit, 1 << 20);
            assert_eq!(serde_json::to_string(&config).unwrap(), r#"{"limit":"1MiB"}"#);
        }
        for text in [r#"{"limit":-1}"#, r#"{"limit":1.5}"#, r#"{"limit":18446744073709551615}"#] {
            assert!(serde_json::from_str::<Config>(text).is_err(), "{text}");
        }
    }
}
