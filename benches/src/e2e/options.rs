//! Takes the arguments of `e2e`; gives them checked.

use flare_core::model::subscription::MAX_BATCH;

use crate::Result;
use crate::number::number;

/// Deliveries in a round unless told otherwise: a second or so on two cores. Many short rounds
/// tell more than few long ones, for whatever else the machine does touches both of a pair.
const DELIVERIES: usize = 20_000;
/// Rounds of each side unless told otherwise.
const PAIRS: usize = 11;
/// The same with clients that hang or fail: what they cost the others is less than two neighbouring
/// rounds differ by chance.
const PAIRS_DISTURBED: usize = 31;

/// How `e2e` measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// Subscriptions, those that hang or fail included.
    pub(super) subscriptions: usize,
    /// Documents that change in a round.
    pub(super) documents: usize,
    /// Subscriptions that never answer.
    pub(super) hang: usize,
    /// Subscriptions that answer 500.
    pub(super) fail: usize,
    /// Whether requests are signed.
    pub(super) signing: bool,
    /// Requests a second that each subscription allows, if it says.
    pub(super) rate: Option<u32>,
    /// Notifications in a request, of the side that is told of many at once, if there is one.
    pub(super) batch: Option<u32>,
    /// Whether documents are put through the REST interface instead of the handle.
    pub(super) rest: bool,
    /// Rounds that count, of each side.
    pub(super) pairs: usize,
    /// Whether a JSON object comes last.
    pub(super) json: bool,
}

impl Options {
    pub(super) fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--json" => options.json = true,
                "--subscriptions" => options.subscriptions = number(arg, args.next(), 1)?,
                "--documents" => options.documents = number(arg, args.next(), 1)?,
                "--hang" => options.hang = number(arg, args.next(), 0)?,
                "--fail" => options.fail = number(arg, args.next(), 0)?,
                "--signing" => options.signing = true,
                "--rest" => options.rest = true,
                "--batch" => options.batch = Some(number(arg, args.next(), 2)?),
                "--rate" => options.rate = Some(number(arg, args.next(), 1)?),
                "--pairs" => options.pairs = number(arg, args.next(), 1)?,
                _ => return Err(format!("e2e does not know {arg}\n\n{}", crate::USAGE).into()),
            }
        }
        if options.hang.saturating_add(options.fail) >= options.subscriptions {
            return Err(
                "--hang and --fail must leave at least one subscription that is well".into()
            );
        }
        if options.batch.is_some_and(|most| most > MAX_BATCH) {
            return Err(format!("--batch must be at most {MAX_BATCH}").into());
        }
        if options.pairs == 0 {
            options.pairs = if options.is_disturbed() { PAIRS_DISTURBED } else { PAIRS };
        }
        if options.documents == 0 {
            options.documents = (DELIVERIES / options.subscriptions).max(1);
        }
        Ok(options)
    }

    /// Subscriptions that take what they are told. They are numbered first; those that fail follow,
    /// those that hang come last.
    pub(super) fn healthy(&self) -> usize {
        self.subscriptions - self.hang - self.fail
    }

    /// Whether there are subscriptions that are not well.
    pub(super) fn is_disturbed(&self) -> bool {
        self.hang + self.fail > 0
    }

    /// The same without the subscriptions that are not well.
    pub(super) fn undisturbed(&self) -> Self {
        Self { subscriptions: self.healthy(), hang: 0, fail: 0, ..self.clone() }
    }

    /// The same with a request for each notification.
    pub(super) fn single(&self) -> Self {
        Self { batch: None, ..self.clone() }
    }

    /// Deliveries that count in a round.
    pub(super) fn deliveries(&self) -> usize {
        self.healthy() * self.documents
    }
}

impl Default for Options {
    /// Documents and pairs are not decided yet: they follow from the rest.
    fn default() -> Self {
        Self {
            subscriptions: 10,
            documents: 0,
            hang: 0,
            fail: 0,
            signing: false,
            rate: None,
            batch: None,
            rest: false,
            pairs: 0,
            json: false,
        }
    }
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
        for wrong in [
            &["--hang", "10"][..],
            &["--fail", "10"],
            &["--hang", "5", "--fail", "5"],
            &["--subscriptions", "0"],
            &["--rate", "0"],
            &["--rate"],
            &["--batch", "1"],
            &["--batch", "1001"],
            &["--rate", "4294967296"],
            &["--document", "1"],
        ] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn clients_that_hang_or_fail_are_not_counted() {
        let read = Options::parse(&["--hang", "1", "--fail", "2"]).unwrap();
        assert_eq!((read.healthy(), read.deliveries(), read.pairs), (7, 14_000, 31));
        assert!(read.is_disturbed() && !read.undisturbed().is_disturbed());
        assert_eq!(read.undisturbed().deliveries(), read.deliveries());
        assert_eq!(Options::parse(&["--fail", "1"]).unwrap().pairs, 31);
    }

    #[test]
    fn signatures_and_rates_are_of_every_subscription() {
        let plain = Options::parse(&[]).unwrap();
        assert_eq!((plain.signing, plain.rate, plain.rest), (false, None, false));
        assert!(Options::parse(&["--rest"]).unwrap().rest);
        let batched = Options::parse(&["--batch", "100"]).unwrap();
        assert_eq!((batched.batch, batched.single()), (Some(100), plain.clone()));
        let read = Options::parse(&["--signing", "--rate", "1_000_000"]).unwrap();
        assert_eq!((read.signing, read.rate, read.pairs), (true, Some(1_000_000), 11));
        assert_eq!(
            (read.undisturbed().signing, read.undisturbed().rate),
            (read.signing, read.rate)
        );
    }
}
