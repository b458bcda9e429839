//! Takes a layout's text; gives the elements of Go's layout language in it. Never looks at a value.

/// How a number shorter than its field is filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pad {
    Bare,
    Space,
    Zero,
}

/// Whether a month or weekday is spelt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Long,
    Short,
}

/// The parts of a numeric zone offset, and whether colons part them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offset {
    Hours,
    Minutes,
    MinutesColon,
    Seconds,
    SecondsColon,
}

/// One element of a layout: what it reads and writes, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Year,
    ShortYear,
    MonthName(Name),
    Month(Pad),
    Weekday(Name),
    Day(Pad),
    YearDay(Pad),
    Hour24,
    Hour12(Pad),
    Minute(Pad),
    Second(Pad),
    /// `PM` or `pm`: which half of the day.
    Half {
        upper: bool,
    },
    ZoneName,
    /// `utc_as_z`: the forms that start with `Z` and stand for UTC as that letter.
    ZoneOffset {
        utc_as_z: bool,
        form: Offset,
    },
    /// `exact`: `.000`, as many digits as written; else `.999`, as many as there are.
    Fraction {
        separator: char,
        digits: usize,
        exact: bool,
    },
}

impl Element {
    /// Whether the element says a part of the instant by itself.
    ///
    /// A weekday is only checked for its spelling, `PM` and a fraction only qualify an hour and a
    /// second, and a zone alone is no date or time.
    pub(super) fn is_date_or_time(self) -> bool {
        !matches!(
            self,
            Self::Weekday(_)
                | Self::Half { .. }
                | Self::ZoneName
                | Self::ZoneOffset { .. }
                | Self::Fraction { .. }
        )
    }

    pub(super) fn is_year(self) -> bool {
        matches!(self, Self::Year | Self::ShortYear)
    }

    pub(super) fn is_month(self) -> bool {
        matches!(self, Self::Month(_) | Self::MonthName(_))
    }

    pub(super) fn is_day(self) -> bool {
        matches!(self, Self::Day(_))
    }

    pub(super) fn is_year_day(self) -> bool {
        matches!(self, Self::YearDay(_))
    }

    /// What the element is called in a refusal.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Year | Self::ShortYear => "year",
            Self::MonthName(_) | Self::Month(_) => "month",
            Self::Weekday(_) => "weekday",
            Self::Day(_) => "day",
            Self::YearDay(_) => "day of the year",
            Self::Hour24 | Self::Hour12(_) => "hour",
            Self::Minute(_) => "minute",
            Self::Second(_) => "second",
            Self::Half { .. } => "half of the day",
            Self::ZoneName => "zone name",
            Self::ZoneOffset { .. } => "zone offset",
            Self::Fraction { .. } => "fractional second",
        }
    }
}

/// An element, and the text between the previous one and it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) literal: Box<str>,
    pub(super) element: Element,
    /// The element as the layout writes it.
    pub(super) text: Box<str>,
}

/// Splits a layout into its chunks and the text after the last one.
pub(super) fn chunks(layout: &str) -> (Vec<Chunk>, Box<str>) {
    let mut chunks = Vec::new();
    let mut rest = layout;
    while let Some((at, element, length)) = find(rest) {
        // Elements are ASCII, so that both cuts fall between characters.
        let (literal, tail) = rest.split_at(at);
        let (text, tail) = tail.split_at(length);
        chunks.push(Chunk { literal: literal.into(), element, text: text.into() });
        rest = tail;
    }
    (chunks, rest.into())
}

fn find(text: &str) -> Option<(usize, Element, usize)> {
    text.char_indices().find_map(|(at, _)| {
        let (element, length) = element_at(text.get(at..)?)?;
        Some((at, element, length))
    })
}

/// The element that `text` starts with, and its length.
fn element_at(text: &str) -> Option<(Element, usize)> {
    // A literal underscore before a year, not a padded day before "006".
    if text.starts_with("_2006") {
        return None;
    }
    if let Some(fraction) = fraction_at(text) {
        return Some(fraction);
    }
    let (name, element) = ELEMENTS.iter().find(|(name, _)| text.starts_with(name))?;
    // "Month" and "Janus" are words, not names of the reference time.
    let word = text.as_bytes().get(name.len()).is_some_and(u8::is_ascii_lowercase);
    let short = matches!(element, Element::MonthName(Name::Short) | Element::Weekday(Name::Short));
    if short && word { None } else { Some((*element, name.len())) }
}

/// A separator and a run of one digit, `0` or `9`, that no other digit follows.
fn fraction_at(text: &str) -> Option<(Element, usize)> {
    let separator = text.chars().next().filter(|c| matches!(c, '.' | ','))?;
    let run = text.get(1..)?;
    let digit = run.chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let after = run.trim_start_matches(digit);
    if after.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let digits = run.len() - after.len();
    Some((Element::Fraction { separator, digits, exact: digit == '0' }, 1 + digits))
}

const fn offset(utc_as_z: bool, form: Offset) -> Element {
    Element::ZoneOffset { utc_as_z, form }
}

/// Every element of fixed text; of two that start alike the longer comes first.
const ELEMENTS: [(&str, Element); 33] = [
    ("January", Element::MonthName(Name::Long)),
    ("Jan", Element::MonthName(Name::Short)),
    ("Monday", Element::Weekday(Name::Long)),
    ("Mon", Element::Weekday(Name::Short)),
    ("MST", Element::ZoneName),
    ("01", Element::Month(Pad::Zero)),
    ("02", Element::Day(Pad::Zero)),
    ("03", Element::Hour12(Pad::Zero)),
    ("04", Element::Minute(Pad::Zero)),
    ("05", Element::Second(Pad::Zero)),
    ("06", Element::ShortYear),
    ("002", Element::YearDay(Pad::Zero)),
    ("15", Element::Hour24),
    ("1", Element::Month(Pad::Bare)),
    ("2006", Element::Year),
    ("2", Element::Day(Pad::Bare)),
    ("_2", Element::Day(Pad::Space)),
    ("__2", Element::YearDay(Pad::Space)),
    ("3", Element::Hour12(Pad::Bare)),
    ("4", Element::Minute(Pad::Bare)),
    ("5", Element::Second(Pad::Bare)),
    ("PM", Element::Half { upper: true }),
    ("pm", Element::Half { upper: false }),
    ("-07:00:00", offset(false, Offset::SecondsColon)),
    ("-070000", offset(false, Offset::Seconds)),
    ("-07:00", offset(false, Offset::MinutesColon)),
    ("-0700", offset(false, Offset::Minutes)),
    ("-07", offset(false, Offset::Hours)),
    ("Z07:00:00", offset(true, Offset::SecondsColon)),
    ("Z070000", offset(true, Offset::Seconds)),
    ("Z07:00", offset(true, Offset::MinutesColon)),
    ("Z0700", offset(true, Offset::Minutes)),
    ("Z07", offset(true, Offset::Hours)),
];
