//! A place in a shard: where a consumer begins, and up to where everything is done, as it is kept in checkpoints.

use std::fmt;
use std::str::FromStr;

use flare_core::model::{Invalid, SourceSettings, Timestamp};

/// The word for everything that is there.
const OLDEST: &str = "oldest";
/// The word for what comes from now on.
const LATEST: &str = "latest";
/// The word for a shard that was read to its end.
const END: &str = "end";

/// A place in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Position {
    /// Before all that Kinesis still has.
    Oldest,
    /// Before what came at this time, in milliseconds since 1970, or later.
    At(i64),
    /// Behind the record of this sequence number.
    After(String),
    /// Behind all: the shard was split or merged, and is done.
    End,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oldest => f.write_str(OLDEST),
            Self::At(milliseconds) => write!(f, "@{milliseconds}"),
            Self::After(number) => f.write_str(number),
            Self::End => f.write_str(END),
        }
    }
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        match text {
            OLDEST => Ok(Self::Oldest),
            END => Ok(Self::End),
            _ => match text.strip_prefix('@').map(str::parse) {
                Some(Ok(milliseconds)) => Ok(Self::At(milliseconds)),
                None if is_number(text) => Ok(Self::After(text.to_owned())),
                _ => Err(format!("{text:?} is no place in a shard")),
            },
        }
    }
}

/// Where a consumer begins in a stream that it has never read. What is latest is what comes from the time on at which
/// it was opened first: the next node to open it begins at the same.
pub(crate) fn first(settings: &SourceSettings, now: Timestamp) -> Result<Position, Invalid> {
    match settings.optional("from")? {
        None | Some(LATEST) => Ok(Position::At(now.unix_millis())),
        Some(OLDEST) => Ok(Position::Oldest),
        Some(time) => match time.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Position::At(time.as_millisecond())),
            Err(_) => {
                let reason = "must be latest, oldest or a time such as 2026-01-31T12:00:00Z";
                Err(settings.refuse("from", reason))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for place in [
            Position::Oldest,
            Position::At(1_700_000_000_123),
            Position::At(-1),
            Position::After("49590338271490256608559692538361571095921575989136588898".to_owned()),
            Position::End,
        ] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for wrong in ["", "@", "@x", "-7", "7x", "latest"] {
            assert!(wrong.parse::<Position>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_consumer_begins_where_it_says() {
        let now = Timestamp::from_unix_seconds(1_700_000_000);
        let begin = |from| {
            let settings = SourceSettings::new("kinesis", json!({"from": from})).unwrap();
            first(&settings, now).map_err(|invalid| invalid.to_string())
        };
        assert_eq!(begin(json!(null)), Ok(Position::At(1_700_000_000_000)));
        assert_eq!(begin(json!("latest")), Ok(Position::At(1_700_000_000_000)));
        assert_eq!(begin(json!("oldest")), Ok(Position::Oldest));
        assert_eq!(begin(json!("1970-01-01T00:00:01.5Z")), Ok(Position::At(1_500)));
        let reason = "must be latest, oldest or a time such as 2026-01-31T12:00:00Z";
        assert_eq!(begin(json!("now")), Err(format!("kinesis.from: {reason}")));
    }
}
