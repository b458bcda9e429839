//! Takes the arguments of `e2e`; gives them checked.

use crate::Result;

/// Deliveries in a round unless told otherwise: a second or so on two cores. Many short rounds
/// tell more than few long ones, for whatever else the machine does touches both of a pair.
const DELIVERIES: usize = 20_000;
/// Rounds of each side unless told otherwise.
const PAIRS: usize = 11;
/// The same with clients that hang: what they cost the others is less than two neighbouring rounds
/// differ by chance.
const PAIRS_WITH_HANG: usize = 31;

/// How `e2e` measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// Subscriptions, those that hang included.
    pub(super) subscriptions: usize,
    /// Documents that change in a round.
    pub(super) documents: usize,
    /// Subscriptions that never answer.
    pub(super) hang: usize,
    /// Rounds that count, of each side.
    pub(super) pairs: usize,
    /// Whether a JSON object comes last.
    pub(super) json: bool,
}

impl Options {
    pub(super) fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { subscriptions: 10, documents: 0, hang: 0, pairs: 0, json: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--json" => options.json = true,
                "--subscriptions" => options.subscriptions = number(arg, args.next(), 1)?,
                "--documents" => options.documents = number(arg, args.next(), 1)?,
                "--hang" => options.hang = number(arg, args.next(), 0)?,
                "--pairs" => options.pairs = number(arg, args.next(), 1)?,
                _ => return Err(format!("e2e does not know {arg}\n\n{}", crate::USAGE).into()),
            }
        }
        if options.hang >= options.subscriptions {
            return Err("--hang must leave at least one subscription that answers".into());
        }
        if options.pairs == 0 {
            options.pairs = if options.hang > 0 { PAIRS_WITH_HANG } else { PAIRS };
        }
        if options.documents == 0 {
            options.documents = (DELIVERIES / options.subscriptions).max(1);
        }
        Ok(options)
    }

    /// Subscriptions that answer.
    pub(super) fn healthy(&self) -> usize {
        self.subscriptions - self.hang
    }

    /// Deliveries that count in a round.
    pub(super) fn deliveries(&self) -> usize {
        self.healthy() * self.documents
    }
}

fn number(name: &str, text: Option<&&str>, least: usize) -> Result<usize> {
    let given = text.and_then(|text| text.replace('_', "").parse().ok());
    let enough = given.filter(|number| *number >= least);
    enough.ok_or_else(|| format!("{name} needs a number, at least {least}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_documented_and_refuses_the_rest() {
        let read = Options::parse(&["--subscriptions", "100", "--hang", "1", "--json"]).unwrap();
        assert_eq!((read.subscriptions, read.documents, read.hang), (100, 200, 1));
        assert_eq!((read.healthy(), read.deliveries(), read.json), (99, 19_800, true));
        assert_eq!((read.pairs, Options::parse(&[]).unwrap().pairs), (31, 11));
        for wrong in [&["--hang", "10"][..], &["--subscriptions", "0"], &["--document", "1"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
