//! Takes what a job of expiry noted; gives how far it has come. Pure.

use std::fmt;

use crate::model::{DocumentUrl, RowKey, Timestamp};

/// What stands for a time that is none.
const NONE: &str = "-";

/// How far expiry has come with the tombstones of a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) pass: Pass,
    /// Tombstones stored by then are looked at.
    pub(super) until: Timestamp,
    /// Those stored by then are done with.
    pub(super) after: Option<Timestamp>,
    /// Rows of the next ones are removed up to this one.
    pub(super) row: Option<RowKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    First,
    Second,
}

impl Cursor {
    pub(super) const fn first(until: Timestamp) -> Self {
        Self { pass: Pass::First, until, after: None, row: None }
    }

    pub(super) const fn second(until: Timestamp) -> Self {
        Self { pass: Pass::Second, until, after: None, row: None }
    }

    /// What was noted; nothing before a first pass, or where another version noted what this one
    /// does not understand: then it begins anew, which does no harm.
    pub(super) fn read(noted: Option<&str>) -> Option<Self> {
        let mut words = noted?.split(' ');
        let time = |word: &str| word.parse().ok().map(Timestamp::from_unix_nanos);
        let first = words.next()?;
        if let Some(until) = time(first) {
            // What versions before this one noted of a second pass.
            return words.next().is_none().then_some(Self::second(until));
        }
        let pass = match first {
            "first" => Pass::First,
            "second" => Pass::Second,
            _ => return None,
        };
        let until = time(words.next()?)?;
        let after = match words.next()? {
            NONE => None,
            word => Some(time(word)?),
        };
        let row = match words.next() {
            None => None,
            Some(subscription) => {
                let url = DocumentUrl::parse(words.next()?).ok()?;
                Some(RowKey::new(subscription.parse().ok()?, url))
            }
        };
        words.next().is_none().then_some(Self { pass, until, after, row })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pass = match self.pass {
            Pass::First => "first",
            Pass::Second => "second",
        };
        write!(f, "{pass} {} ", self.until.unix_nanos())?;
        match self.after {
            Some(after) => write!(f, "{}", after.unix_nanos())?,
            None => write!(f, "{NONE}")?,
        }
        match &self.row {
            // A URL in its normal form has no space.
            Some(row) => write!(f, " {} {}", row.subscription, row.url),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::SubscriptionId;

    fn cursors() -> impl Strategy<Value = Cursor> {
        let row = (any::<[u8; 16]>(), "[a-z%A-Z ]{0,8}").prop_filter_map("a url", |(id, path)| {
            let url = DocumentUrl::parse(&format!("http://api.example/{path}x")).ok()?;
            Some(RowKey::new(SubscriptionId::from_bytes(id), url))
        });
        let pass = prop_oneof![Just(Pass::First), Just(Pass::Second)];
        let after = proptest::option::of(any::<i64>().prop_map(Timestamp::from_unix_nanos));
        (pass, any::<i64>(), after, proptest::option::of(row)).prop_map(
            |(pass, until, after, row)| Cursor {
                pass,
                until: Timestamp::from_unix_nanos(until),
                after,
                row,
            },
        )
    }

    proptest! {
        #[test]
        fn what_was_noted_is_read_back(cursor in cursors()) {
            prop_assert_eq!(Cursor::read(Some(&cursor.to_string())), Some(cursor));
        }
    }

    #[test]
    fn what_is_not_understood_begins_anew_and_an_old_note_is_of_a_second_pass() {
        for noted in
            ["", "of another version", "first", "first 1", "second x -", "first 1 - a", "1 2"]
        {
            assert_eq!(Cursor::read(Some(noted)), None, "{noted}");
        }
        assert_eq!(Cursor::read(None), None);
        let until = Timestamp::from_unix_millis(-5);
        let old = until.unix_nanos().to_string();
        assert_eq!(Cursor::read(Some(&old)), Some(Cursor::second(until)));
    }
}
