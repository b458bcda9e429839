//! Takes the zone elements of a layout and a text; gives the seconds east of UTC.

use super::element::{Offset, Pad};
use super::parse::lossy;
use super::scan::{Miss, number, take, value};

/// The zone in the three ways of naming it, in the order in which they count.
#[derive(Default)]
pub(super) struct Zone {
    utc: bool,
    offset: Option<i32>,
    gmt: i32,
}

impl Zone {
    /// Seconds east of UTC.
    pub(super) fn seconds(&self) -> i32 {
        match self.offset {
            _ if self.utc => 0,
            // Go marks "no offset seen" by -1, so that one second west of UTC is not honoured.
            Some(seconds) if seconds != -1 => seconds,
            _ => self.gmt,
        }
    }

    pub(super) fn offset(
        &mut self,
        utc_as_z: bool,
        form: Offset,
        rest: &mut &[u8],
    ) -> Result<(), Miss> {
        // Go writes Z for UTC also where the layout has seconds, but does not read it there.
        let z = utc_as_z && !matches!(form, Offset::Seconds | Offset::SecondsColon);
        if let ([b'Z', after @ ..], true) = (*rest, z) {
            self.utc = true;
            *rest = after;
            return Ok(());
        }
        let sign = match take(rest, 1)? {
            b"+" => 1,
            b"-" => -1,
            _ => return Err(Miss::Form),
        };
        let mut seconds = i32::from(number(rest, 2, Pad::Zero)?) * 3600;
        let (units, colon): (&[i32], bool) = match form {
            Offset::Hours => (&[], false),
            Offset::Minutes => (&[60], false),
            Offset::MinutesColon => (&[60], true),
            Offset::Seconds => (&[60, 1], false),
            Offset::SecondsColon => (&[60, 1], true),
        };
        for unit in units {
            if colon && take(rest, 1)? != b":" {
                return Err(Miss::Form);
            }
            seconds += i32::from(number(rest, 2, Pad::Zero)?) * unit;
        }
        self.offset = Some(sign * seconds);
        Ok(())
    }

    /// `UTC`, or `GMT` with or without up to 23 hours; any other name has no offset to honour.
    pub(super) fn name(&mut self, rest: &mut &[u8]) -> Result<(), Miss> {
        if let Some(after) = rest.strip_prefix(b"UTC") {
            self.utc = true;
            *rest = after;
            return Ok(());
        }
        if let Some(after) = rest.strip_prefix(b"GMT") {
            let (hours, after) = gmt_hours(after).unwrap_or((0, after));
            self.gmt = hours * 3600;
            *rest = after;
            return Ok(());
        }
        let name = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        match rest.get(..name) {
            Some(name @ [_, ..]) => Err(Miss::ZoneName(lossy(name))),
            _ => Err(Miss::Form),
        }
    }
}

/// A sign and any number of digits that say at most 23; anything else belongs to the next literal.
fn gmt_hours(text: &[u8]) -> Option<(i32, &[u8])> {
    let (sign, text) = match text {
        [b'+', text @ ..] => (1, text),
        [b'-', text @ ..] => (-1, text),
        _ => return None,
    };
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits @ [_, ..], after) = text.split_at_checked(count)? else { return None };
    let hours = digits
        .iter()
        .fold(0_i32, |hours, digit| hours.saturating_mul(10).saturating_add(value(*digit)));
    (hours <= 23).then_some((sign * hours, after))
}
