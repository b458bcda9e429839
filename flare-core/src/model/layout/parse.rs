//! Takes a compiled layout and a text; gives Unix nanoseconds, as Go's `time.Parse` reads it.
//!
//! Works on bytes as Go does: a text may be cut inside a character before it is found not to match.

use std::fmt;

use jiff::civil::{Date, Time};
use jiff::tz;

use super::Excerpt;
use super::element::{Chunk, Element, Pad};
use super::format::{MONTHS, WEEKDAYS};
use super::scan::{self, Miss, number, within};
use super::zone::Zone;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Why a text is not an instant in a layout.
#[derive(Debug)]
pub(super) enum Fault {
    /// The text between two elements is not there.
    Literal { expected: Box<str>, found: String },
    /// The text at an element is not of its form.
    Element { noun: &'static str, text: Box<str>, found: String },
    /// A part is a number, but not a possible one.
    Range(&'static str),
    /// A zone that has a name only: its offset is not known.
    ZoneName(String),
    /// The day of the year is another day than the month or the day says.
    YearDay(&'static str),
    /// The layout ends before the text does.
    Extra(String),
    /// A date so far away that its nanoseconds need more than 64 bits.
    Unrepresentable,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal { expected, found } => {
                write!(f, "expected {expected:?} at {}", Excerpt(found))
            }
            Self::Element { noun, text, found } => {
                write!(f, "no {noun} ({text}) at {}", Excerpt(found))
            }
            Self::Range(noun) => write!(f, "{noun} out of range"),
            Self::ZoneName(name) => {
                write!(f, "zone name {} is neither UTC nor GMT", Excerpt(name))
            }
            Self::YearDay(noun) => write!(f, "day of the year does not match the {noun}"),
            Self::Extra(text) => write!(f, "extra text {}", Excerpt(text)),
            Self::Unrepresentable => {
                f.write_str("out of range: 64-bit nanoseconds hold the years 1678 to 2261")
            }
        }
    }
}

pub(super) fn nanos(chunks: &[Chunk], tail: &str, text: &str) -> Result<i64, Fault> {
    let mut rest = text.as_bytes();
    let mut parts = Parts::default();
    for (at, chunk) in chunks.iter().enumerate() {
        rest = skip(rest, &chunk.literal)?;
        let next = chunks.get(at + 1).map(|chunk| chunk.element);
        let held = rest;
        parts.read(chunk.element, next, &mut rest).map_err(|miss| match miss {
            Miss::Form => Fault::Element {
                noun: chunk.element.noun(),
                text: chunk.text.clone(),
                found: lossy(held),
            },
            Miss::Range(noun) => Fault::Range(noun),
            Miss::ZoneName(name) => Fault::ZoneName(name),
        })?;
    }
    rest = skip(rest, tail)?;
    if rest.is_empty() { parts.nanos() } else { Err(Fault::Extra(lossy(rest))) }
}

/// Removes a literal from the front of the text; a run of spaces in it stands for any number of
/// them, but for none only where the text has ended.
fn skip<'t>(text: &'t [u8], literal: &str) -> Result<&'t [u8], Fault> {
    let mut rest = text;
    let mut spaces = false;
    for byte in literal.bytes() {
        if byte == b' ' && spaces {
            continue;
        }
        spaces = byte == b' ';
        rest = match rest {
            [] if spaces => rest,
            [first, after @ ..] if *first == byte => {
                if spaces {
                    after_spaces(after)
                } else {
                    after
                }
            }
            _ => return Err(Fault::Literal { expected: literal.into(), found: lossy(rest) }),
        };
    }
    Ok(rest)
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    // An excerpt is all that is shown, so that a long text is not copied.
    String::from_utf8_lossy(bytes.get(..512).unwrap_or(bytes)).into_owned()
}

fn after_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    text.get(spaces..).unwrap_or_default()
}

/// What the elements read so far have said. A part named twice holds what was said last.
#[derive(Default)]
struct Parts {
    year: i16,
    month: Option<i8>,
    day: Option<i8>,
    year_day: Option<i16>,
    hour: i8,
    minute: i8,
    second: i8,
    nanos: i32,
    am: bool,
    pm: bool,
    zone: Zone,
}

impl Parts {
    fn read(
        &mut self,
        element: Element,
        next: Option<Element>,
        rest: &mut &[u8],
    ) -> Result<(), Miss> {
        match element {
            Element::Year => self.year = number(rest, 4, Pad::Zero)?,
            Element::ShortYear => self.year = scan::short_year(rest)?,
            Element::MonthName(form) => {
                self.month =
                    Some(scan::name(rest, MONTHS.iter().map(|month| scan::cut(month, form)))?);
            }
            Element::Month(pad) => {
                self.month = Some(within(number(rest, 2, pad)?, 1, 12, "month")?);
            }
            Element::Weekday(form) => {
                scan::name(rest, WEEKDAYS.iter().map(|day| scan::cut(day, form)))?;
            }
            // Which days there are is known once the month and the year are.
            Element::Day(pad) => self.day = Some(within(number(rest, 2, pad)?, 0, 99, "day")?),
            Element::YearDay(pad) => self.year_day = Some(number(rest, 3, pad)?),
            Element::Hour24 => self.hour = within(number(rest, 2, Pad::Bare)?, 0, 23, "hour")?,
            Element::Hour12(pad) => self.hour = within(number(rest, 2, pad)?, 0, 12, "hour")?,
            Element::Minute(pad) => self.minute = within(number(rest, 2, pad)?, 0, 59, "minute")?,
            Element::Second(pad) => {
                self.second = within(number(rest, 2, pad)?, 0, 59, "second")?;
                if !matches!(next, Some(Element::Fraction { .. })) {
                    self.optional_fraction(rest);
                }
            }
            Element::Half { upper } => self.half(upper, rest)?,
            Element::ZoneName => self.zone.name(rest)?,
            Element::ZoneOffset { utc_as_z, form } => self.zone.offset(utc_as_z, form, rest)?,
            Element::Fraction { digits, exact: true, .. } => {
                self.nanos = scan::exact_fraction(digits, rest)?;
            }
            Element::Fraction { exact: false, .. } => self.optional_fraction(rest),
        }
        Ok(())
    }

    /// Reads a separator and all digits after it, if both are there.
    fn optional_fraction(&mut self, rest: &mut &[u8]) {
        let [b'.' | b',', digits @ ..] = *rest else { return };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if let Some((digits @ [_, ..], after)) = digits.split_at_checked(count) {
            self.nanos = scan::scale(digits);
            *rest = after;
        }
    }

    fn half(&mut self, upper: bool, rest: &mut &[u8]) -> Result<(), Miss> {
        match (scan::take(rest, 2)?, upper) {
            (b"PM", true) | (b"pm", false) => self.pm = true,
            (b"AM", true) | (b"am", false) => self.am = true,
            _ => return Err(Miss::Form),
        }
        Ok(())
    }

    fn nanos(&self) -> Result<i64, Fault> {
        let hour = match self.hour {
            hour if self.pm && hour < 12 => hour + 12,
            12 if self.am => 0,
            hour => hour,
        };
        let time = Time::new(hour, self.minute, self.second, self.nanos)
            .map_err(|_| Fault::Range("time"))?;
        let utc = tz::Offset::UTC
            .to_timestamp(self.date()?.to_datetime(time))
            .map_err(|_| Fault::Unrepresentable)?;
        let nanos = utc.as_nanosecond() - i128::from(self.zone.seconds()) * NANOS_PER_SECOND;
        i64::try_from(nanos).map_err(|_| Fault::Unrepresentable)
    }

    fn date(&self) -> Result<Date, Fault> {
        let Some(year_day) = self.year_day else {
            return Date::new(self.year, self.month.unwrap_or(1), self.day.unwrap_or(1))
                .map_err(|_| Fault::Range("day"));
        };
        let date = Date::new(self.year, 1, 1)
            .and_then(|first| first.with().day_of_year(year_day).build())
            .map_err(|_| Fault::Range("day of the year"))?;
        if self.month.is_some_and(|month| month != date.month()) {
            return Err(Fault::YearDay("month"));
        }
        if self.day.is_some_and(|day| day != date.day()) {
            return Err(Fault::YearDay("day"));
        }
        Ok(date)
    }
}
