//! Takes what follows an option on the command line; gives the number it is, or says what is
//! wanted.

use std::fmt::Display;
use std::str::FromStr;

use crate::Result;

/// A number that is at least `least`; underscores are for the reader.
pub(crate) fn number<N>(name: &str, text: Option<&&str>, least: N) -> Result<N>
where
    N: FromStr + PartialOrd + Display,
{
    let given: Option<N> = text.and_then(|text| text.replace('_', "").parse().ok());
    let enough = given.filter(|number| *number >= least);
    enough.ok_or_else(|| format!("{name} needs a number, at least {least}").into())
}
