//! Takes the rest of a text; gives the number or name at its front, and moves the rest on.

use super::element::{Name, Pad};

/// What went wrong at one element; the chunk then says where.
pub(super) enum Miss {
    Form,
    Range(&'static str),
    ZoneName(String),
}

pub(super) fn take<'t>(rest: &mut &'t [u8], count: usize) -> Result<&'t [u8], Miss> {
    let (taken, after) = rest.split_at_checked(count).ok_or(Miss::Form)?;
    *rest = after;
    Ok(taken)
}

pub(super) fn value(digit: u8) -> i32 {
    i32::from(digit.wrapping_sub(b'0'))
}

/// Reads one to `width` digits, exactly `width` where the layout pads with zeros; where it pads
/// with spaces, up to `width - 1` of those may come first.
pub(super) fn number(rest: &mut &[u8], width: usize, pad: Pad) -> Result<i16, Miss> {
    if pad == Pad::Space {
        let spaces = rest.iter().take(width - 1).take_while(|byte| **byte == b' ').count();
        take(rest, spaces)?;
    }
    let count = rest.iter().take(width).take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 || (pad == Pad::Zero && count < width) {
        return Err(Miss::Form);
    }
    let digits = take(rest, count)?;
    let number = digits.iter().fold(0, |number, digit| number * 10 + value(*digit));
    i16::try_from(number).map_err(|_| Miss::Form)
}

pub(super) fn within(number: i16, min: i16, max: i16, noun: &'static str) -> Result<i8, Miss> {
    match i8::try_from(number) {
        Ok(small) if (min..=max).contains(&number) => Ok(small),
        _ => Err(Miss::Range(noun)),
    }
}

/// Two bytes, of which Go lets the first be a sign.
pub(super) fn short_year(rest: &mut &[u8]) -> Result<i16, Miss> {
    let year = signed(take(rest, 2)?).and_then(|year| i16::try_from(year).ok());
    let year = year.ok_or(Miss::Form)?;
    Ok(if year >= 69 { 1900 + year } else { 2000 + year })
}

/// At most nine digits after at most one sign; no digit at all is 0.
fn signed(text: &[u8]) -> Option<i32> {
    let (sign, digits) = match text {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    if digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(sign * digits.iter().fold(0, |number, digit| number * 10 + value(*digit)))
}

/// A separator and as many bytes as the layout has zeros; those beyond nanoseconds are not looked
/// at, and the first may be a sign, as in Go.
pub(super) fn exact_fraction(digits: usize, rest: &mut &[u8]) -> Result<i32, Miss> {
    let [b'.' | b',', text @ ..] = take(rest, 1 + digits)? else { return Err(Miss::Form) };
    let text = text.get(..9).unwrap_or(text);
    let fraction = signed(text).ok_or(Miss::Form)?;
    if fraction < 0 {
        return Err(Miss::Range("fractional second"));
    }
    Ok((text.len()..9).fold(fraction, |nanos, _| nanos * 10))
}

/// Nanoseconds of the digits after a decimal point.
pub(super) fn scale(digits: &[u8]) -> i32 {
    let digits = digits.get(..9).unwrap_or(digits);
    let fraction = digits.iter().fold(0, |number, digit| number * 10 + value(*digit));
    (digits.len()..9).fold(fraction, |nanos, _| nanos * 10)
}

pub(super) fn cut(name: &'static str, form: Name) -> &'static str {
    match form {
        Name::Long => name,
        Name::Short => name.get(..3).unwrap_or(name),
    }
}

/// Reads one of `names` in any case and gives its place, counted from 1.
pub(super) fn name(
    rest: &mut &[u8],
    names: impl Iterator<Item = &'static str>,
) -> Result<i8, Miss> {
    for (place, name) in (1..).zip(names) {
        if let Some((head, after)) = rest.split_at_checked(name.len())
            && head.eq_ignore_ascii_case(name.as_bytes())
        {
            *rest = after;
            return Ok(place);
        }
    }
    Err(Miss::Form)
}
