//! Takes the arguments of `ground`; gives them checked.

use crate::Result;
use crate::number::number;

/// How `ground` measures.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// Documents and rows in the large stores.
    pub(super) documents: usize,
    /// Rounds of each comparison.
    pub(super) rounds: usize,
    /// Whether a JSON object comes last.
    pub(super) json: bool,
}

impl Options {
    pub(super) fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { documents: 1_000_000, rounds: 21, json: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--json" => options.json = true,
                "--documents" => options.documents = number(arg, args.next(), 10_000)?,
                "--rounds" => options.rounds = number(arg, args.next(), 9)?,
                _ => return Err(format!("ground does not know {arg}\n\n{}", crate::USAGE).into()),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_documented_and_refuses_the_rest() {
        let read = Options::parse(&["--documents", "50_000", "--json", "--rounds", "9"]).unwrap();
        assert_eq!(read, Options { documents: 50_000, rounds: 9, json: true });
        for wrong in [&["--rounds", "3"][..], &["--documents"], &["--document", "1"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
