//! Takes the arguments of `e2e`; gives them checked.

use flare_core::model::subscription::MAX_BATCH;

use super::stores::StoreKind;
use crate::Result;
use crate::number::number;

/// Deliveries in a round unless told otherwise: a second or so on two cores, or a few. Many short rounds
/// tell more than few long ones, for whatever else the machine does touches both of a pair.
fn deliveries(store: StoreKind) -> usize {
    match store {
        StoreKind::Memory | StoreKind::Sqlite => 20_000,
        StoreKind::Mongodb | StoreKind::Postgresql => 5_000,
    }
}

/// Puts under way at a time unless told otherwise. Where each waits for a disk or a network it takes more of
/// them to keep a store busy.
fn putters(store: StoreKind) -> usize {
    match store {
        StoreKind::Memory => 4,
        StoreKind::Sqlite | StoreKind::Mongodb | StoreKind::Postgresql => 32,
    }
}

/// Rounds of each side unless told otherwise.
const PAIRS: usize = 11;
/// The same with clients that hang or fail: what they cost the others is less than two neighbouring
/// rounds differ by chance.
const PAIRS_DISTURBED: usize = 31;

/// Documents of which so many can be pending that a status tells something.
const LEAST_WHEN_LARGE: usize = 10_000;

/// How `e2e` measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// Where Flare keeps everything.
    pub(super) store: StoreKind,
    /// Subscriptions, those that hang or fail included.
    pub(super) subscriptions: usize,
    /// Documents in the store.
    pub(super) documents: usize,
    /// Documents of these that change in a round.
    pub(super) changes: usize,
    /// Puts under way at a time.
    pub(super) putters: usize,
    /// Subscriptions that never answer.
    pub(super) hang: usize,
    /// Subscriptions that answer 500.
    pub(super) fail: usize,
    /// Whether each subscription wants the documents by a filter, and beside each there are others whose
    /// filters, each another, want none of them.
    pub(super) filter: bool,
    /// Whether these compare numbers and look in lists, instead of comparing texts.
    pub(super) filter_values: bool,
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
                "--store" => options.store = StoreKind::parse(args.next())?,
                "--changes" => options.changes = number(arg, args.next(), 1)?,
                "--putters" => options.putters = number(arg, args.next(), 1)?,
                "--subscriptions" => options.subscriptions = number(arg, args.next(), 1)?,
                "--documents" => options.documents = number(arg, args.next(), 1)?,
                "--hang" => options.hang = number(arg, args.next(), 0)?,
                "--fail" => options.fail = number(arg, args.next(), 0)?,
                "--filter" => options.filter = true,
                "--filter-values" => (options.filter, options.filter_values) = (true, true),
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
        if options.filter && (options.is_disturbed() || options.batch.is_some()) {
            return Err("--filter does not go with --hang, --fail or --batch".into());
        }
        if options.pairs == 0 {
            options.pairs = if options.is_disturbed() { PAIRS_DISTURBED } else { PAIRS };
        }
        options.decide_documents()?;
        if options.putters == 0 {
            options.putters = putters(options.store);
        }
        Ok(options)
    }

    /// Documents and changes follow from each other, and from the store.
    fn decide_documents(&mut self) -> Result<()> {
        if self.changes == 0 {
            let changes = (deliveries(self.store) / self.subscriptions).max(1);
            self.changes = if self.documents == 0 { changes } else { changes.min(self.documents) };
        }
        if self.documents == 0 {
            self.documents = self.changes;
        }
        if self.changes > self.documents {
            return Err("--changes must not be more than --documents".into());
        }
        if self.is_large() && self.documents < LEAST_WHEN_LARGE {
            let least =
                format!("--documents must be as many as change, or at least {LEAST_WHEN_LARGE}");
            return Err(least.into());
        }
        if self.is_large() && (self.is_disturbed() || self.filter) {
            let alone =
                "--documents beyond what changes goes with none of --hang, --fail, --filter";
            return Err(alone.into());
        }
        Ok(())
    }

    /// Whether there are documents that do not change in every round.
    pub(super) fn is_large(&self) -> bool {
        self.documents > self.changes
    }

    /// The same without what is to be compared: clients that are not well or not concerned, or very many
    /// documents.
    pub(super) fn plain(&self) -> Option<Self> {
        match (self.is_disturbed(), self.is_large()) {
            (true, _) => Some(self.undisturbed()),
            (_, true) => Some(self.small()),
            _ if self.filter => Some(Self { filter: false, filter_values: false, ..self.clone() }),
            _ => None,
        }
    }

    /// Whether deliveries can be timed while there is little to do: puts come through the handle, one by one,
    /// and everybody answers at once.
    pub(super) fn is_paced(&self) -> bool {
        !self.is_disturbed() && !self.rest && self.rate.is_none()
    }

    /// The same with the documents alone that change in every round.
    fn small(&self) -> Self {
        Self { documents: self.changes, ..self.clone() }
    }

    /// The same in memory, with the documents alone that change.
    pub(super) fn recorded(&self) -> Self {
        Self { store: StoreKind::Memory, rest: false, ..self.small() }
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
    fn undisturbed(&self) -> Self {
        Self { subscriptions: self.healthy(), hang: 0, fail: 0, ..self.clone() }
    }

    /// The same with a request for each notification.
    pub(super) fn single(&self) -> Self {
        Self { batch: None, ..self.clone() }
    }

    /// Deliveries that count in a round.
    pub(super) fn deliveries(&self) -> usize {
        self.healthy() * self.changes
    }
}

impl Default for Options {
    /// Documents, changes, putters and pairs are not decided yet: they follow from the rest.
    fn default() -> Self {
        Self {
            store: StoreKind::Memory,
            subscriptions: 10,
            documents: 0,
            changes: 0,
            putters: 0,
            hang: 0,
            fail: 0,
            filter: false,
            filter_values: false,
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
            &["--store", "paper"],
            &["--documents", "10", "--changes", "11"],
            &["--documents", "1000000", "--hang", "1"],
            &["--documents", "1000000", "--filter"],
            &["--filter", "--hang", "1"],
            &["--filter", "--batch", "10"],
            &["--documents", "9_999"],
        ] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_round_is_as_large_as_the_store_is_fast() {
        let read = |args: &[&str]| Options::parse(args).unwrap();
        let sizes = |read: &Options| (read.documents, read.changes, read.putters);
        assert_eq!(sizes(&read(&[])), (2_000, 2_000, 4));
        assert_eq!(sizes(&read(&["--store", "sqlite"])), (2_000, 2_000, 32));
        assert_eq!(sizes(&read(&["--store", "mongodb", "--putters", "8"])), (500, 500, 8));
        assert_eq!(sizes(&read(&["--documents", "100"])), (100, 100, 4));
        let large = read(&["--documents", "1_000_000"]);
        assert_eq!((large.deliveries(), large.is_large()), (20_000, true));
        assert!(!large.small().is_large());
    }

    #[test]
    fn filters_are_compared_with_those_who_are_told() {
        let read = Options::parse(&["--filter"]).unwrap();
        assert_eq!((read.filter, read.deliveries()), (true, 20_000));
        let plain = read.plain().unwrap();
        assert_eq!((plain.filter, plain.subscriptions, plain.plain()), (false, 10, None));
        let values = Options::parse(&["--filter-values"]).unwrap();
        assert!(values.filter && values.filter_values && !read.filter_values);
        assert_eq!(values.plain(), Some(plain));
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
