//! Takes a compiled layout and Unix nanoseconds; gives the text in UTC, as Go's `Format` writes it.

use std::fmt::{self, Write};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz;

use super::element::{Chunk, Element, Name, Offset, Pad};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) fn nanos(chunks: &[Chunk], nanos: i64, text: &mut String) {
    // Every 64-bit number of nanoseconds lies well within jiff's years.
    let instant = Timestamp::from_nanosecond(nanos.into()).unwrap_or_default();
    let civil = tz::Offset::UTC.to_datetime(instant);
    for chunk in chunks {
        text.push_str(&chunk.literal);
        // Writing to a String does not fail.
        let _ = element(chunk.element, civil, text);
    }
}

fn element(element: Element, civil: DateTime, text: &mut String) -> fmt::Result {
    match element {
        Element::Year => write!(text, "{:04}", civil.year()),
        Element::ShortYear => write!(text, "{:02}", civil.year() % 100),
        Element::MonthName(form) => name(&MONTHS, civil.month() - 1, form, text),
        Element::Month(pad) => number(civil.month(), 2, pad, text),
        Element::Weekday(form) => {
            name(&WEEKDAYS, civil.weekday().to_sunday_zero_offset(), form, text)
        }
        Element::Day(pad) => number(civil.day(), 2, pad, text),
        Element::YearDay(pad) => number(civil.day_of_year(), 3, pad, text),
        Element::Hour24 => number(civil.hour(), 2, Pad::Zero, text),
        Element::Hour12(pad) => number((civil.hour() + 11) % 12 + 1, 2, pad, text),
        Element::Minute(pad) => number(civil.minute(), 2, pad, text),
        Element::Second(pad) => number(civil.second(), 2, pad, text),
        Element::Half { upper } => text.write_str(match (civil.hour() >= 12, upper) {
            (true, true) => "PM",
            (true, false) => "pm",
            (false, true) => "AM",
            (false, false) => "am",
        }),
        Element::ZoneName => text.write_str("UTC"),
        Element::ZoneOffset { utc_as_z: true, .. } => text.write_str("Z"),
        Element::ZoneOffset { utc_as_z: false, form } => text.write_str(match form {
            Offset::Hours => "+00",
            Offset::Minutes => "+0000",
            Offset::MinutesColon => "+00:00",
            Offset::Seconds => "+000000",
            Offset::SecondsColon => "+00:00:00",
        }),
        Element::Fraction { separator, digits, exact } => {
            fraction(civil.subsec_nanosecond(), separator, digits, exact, text)
        }
    }
}

fn number(number: impl fmt::Display, width: usize, pad: Pad, text: &mut String) -> fmt::Result {
    match pad {
        Pad::Bare => write!(text, "{number}"),
        Pad::Space => write!(text, "{number:>width$}"),
        Pad::Zero => write!(text, "{number:0>width$}"),
    }
}

fn name(names: &[&'static str], place: i8, form: Name, text: &mut String) -> fmt::Result {
    let name = usize::try_from(place).ok().and_then(|place| names.get(place)).unwrap_or(&"");
    match form {
        Name::Long => text.write_str(name),
        Name::Short => text.write_str(name.get(..3).unwrap_or(name)),
    }
}

/// Cut, not rounded, to the digits asked for, of which nanoseconds have nine at most.
fn fraction(
    nanos: i32,
    separator: char,
    digits: usize,
    exact: bool,
    text: &mut String,
) -> fmt::Result {
    let all = format!("{nanos:09}");
    let cut = all.get(..digits).unwrap_or(&all);
    let shown = if exact { cut } else { cut.trim_end_matches('0') };
    if shown.is_empty() { Ok(()) } else { write!(text, "{separator}{shown}") }
}
