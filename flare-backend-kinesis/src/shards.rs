//! Where a consumer is in each shard of a stream: what was read, what of it is done, which shards may be read next.
//! Decides; asks Kinesis nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use flare_core::model::{Checkpoint, Timestamp};
use flare_core::port::{Receipt, SourceMessage, SourceSettlement};
use flare_core::{Error, ErrorKind, Result};

use crate::BACKEND;
use crate::position::Position;

/// A shard as Kinesis lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedShard {
    pub(crate) id: String,
    /// What it was split off, or the two it was merged of.
    pub(crate) parents: Vec<String>,
}

/// A record as it was read.
#[derive(Debug, Clone)]
pub(crate) struct ReadRecord {
    pub(crate) number: String,
    pub(crate) body: Vec<u8>,
    pub(crate) arrived: Option<Timestamp>,
}

/// What came of reading a shard.
#[derive(Debug, Default)]
pub(crate) struct ReadBatch {
    pub(crate) records: Vec<ReadRecord>,
    /// Where to go on; nothing at the end of a shard that is closed.
    pub(crate) next: Option<String>,
    pub(crate) behind: Duration,
}

/// A shard that is to be read now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadPlan {
    pub(crate) shard: String,
    /// Changes whenever the shard is gone back in: what was read meanwhile is worth nothing.
    pub(crate) turn: u64,
    pub(crate) iterator: Option<String>,
    /// Where to begin, without an iterator.
    pub(crate) from: Position,
}

/// All shards of a stream that count.
#[derive(Debug)]
pub(crate) struct Shards {
    places: BTreeMap<String, ShardPlace>,
    /// Numbers receipts: each is used once.
    last: u64,
    closed: bool,
}

#[derive(Debug)]
struct ShardPlace {
    parents: Vec<String>,
    /// Up to where everything is settled.
    settled: Position,
    /// Records behind that, in the order of the shard.
    given: VecDeque<GivenRecord>,
    iterator: Option<String>,
    turn: u64,
    /// There is nothing behind what was given: the shard is closed.
    read_out: bool,
    /// How far what comes next is behind what came last, as Kinesis said.
    behind: Duration,
}

#[derive(Debug)]
struct GivenRecord {
    number: String,
    arrived: Option<Timestamp>,
    receipt: u64,
    done: bool,
}

impl ShardPlace {
    fn new(parents: Vec<String>, settled: Position) -> Self {
        let read_out = settled == Position::End;
        let (given, iterator, turn, behind) = (VecDeque::new(), None, 0, Duration::ZERO);
        Self { parents, settled, given, iterator, turn, read_out, behind }
    }

    fn is_done(&self) -> bool {
        self.settled == Position::End
    }

    /// Where to read on.
    fn next(&self) -> Position {
        self.given
            .back()
            .map_or_else(|| self.settled.clone(), |it| Position::After(it.number.clone()))
    }

    /// Forgets this record and those behind it, to read them again.
    fn go_back(&mut self, at: usize) {
        self.given.truncate(at);
        self.iterator = None;
        self.turn += 1;
        self.read_out = false;
    }

    fn done(&mut self, at: usize) {
        if let Some(record) = self.given.get_mut(at) {
            record.done = true;
        }
        while self.given.front().is_some_and(|record| record.done) {
            if let Some(record) = self.given.pop_front() {
                self.settled = Position::After(record.number);
            }
        }
        self.end_if_read_out();
    }

    fn end_if_read_out(&mut self) {
        if self.read_out && self.given.is_empty() {
            self.settled = Position::End;
        }
    }
}

impl Shards {
    /// Goes on from checkpoints; without any, all that is listed begins at `first`.
    pub(crate) fn new(
        listed: &[ListedShard],
        checkpoints: &[Checkpoint],
        first: &Position,
    ) -> Result<Self> {
        let mut shards = Self { places: BTreeMap::new(), last: 0, closed: false };
        for checkpoint in checkpoints {
            let position = checkpoint.position().parse().map_err(|error: String| {
                Error::new(ErrorKind::Corrupt, "open").with_backend(BACKEND).with_detail(error)
            })?;
            let place = ShardPlace::new(Vec::new(), position);
            shards.places.insert(checkpoint.shard().to_owned(), place);
        }
        let first = if checkpoints.is_empty() { first } else { &Position::Oldest };
        shards.list(listed, first);
        Ok(shards)
    }

    /// Takes what is listed now. A shard that is new was split off, or merged of, ones that are known: it begins at
    /// its beginning.
    pub(crate) fn relist(&mut self, listed: &[ListedShard]) {
        self.list(listed, &Position::Oldest);
    }

    fn list(&mut self, listed: &[ListedShard], first: &Position) {
        for shard in listed {
            let new = || ShardPlace::new(Vec::new(), first.clone());
            let place = self.places.entry(shard.id.clone()).or_insert_with(new);
            place.parents.clone_from(&shard.parents);
        }
        // Nobody reads a shard again that is done and no longer kept.
        let kept: BTreeSet<&str> = listed.iter().map(|shard| shard.id.as_str()).collect();
        self.places.retain(|id, place| !place.is_done() || kept.contains(id.as_str()));
    }

    /// The shards that may be read: not before all that came before them is settled.
    pub(crate) fn readable(&self) -> Vec<ReadPlan> {
        let ready = |place: &ShardPlace| {
            let mut parents = place.parents.iter().filter_map(|id| self.places.get(id));
            !place.read_out && parents.all(ShardPlace::is_done)
        };
        let plan = |(shard, place): (&String, &ShardPlace)| ReadPlan {
            shard: shard.clone(),
            turn: place.turn,
            iterator: place.iterator.clone(),
            from: place.next(),
        };
        self.places.iter().filter(|(_, place)| ready(place)).map(plan).collect()
    }

    /// Takes what was read by a plan; gives the messages, none if the plan is no longer what is wanted.
    pub(crate) fn took(&mut self, plan: &ReadPlan, batch: ReadBatch) -> Vec<SourceMessage> {
        let Some(place) = self.places.get_mut(&plan.shard) else { return Vec::new() };
        if self.closed || place.turn != plan.turn {
            return Vec::new();
        }
        // An answer counts once: the next plan is another one.
        place.turn += 1;
        place.behind = batch.behind;
        place.read_out = batch.next.is_none();
        place.iterator = batch.next;
        let mut messages = Vec::with_capacity(batch.records.len());
        for record in batch.records {
            self.last += 1;
            let receipt = Receipt::new(format!("{}:{}", plan.shard, self.last));
            let id = format!("{}:{}", plan.shard, record.number);
            let message = SourceMessage::new(id, record.body, receipt);
            messages.push(match record.arrived {
                Some(at) => message.sent_at(at),
                None => message,
            });
            let (number, arrived, receipt) = (record.number, record.arrived, self.last);
            place.given.push_back(GivenRecord { number, arrived, receipt, done: false });
        }
        place.end_if_read_out();
        messages
    }

    /// The plan's iterator is worth nothing any more.
    pub(crate) fn expired(&mut self, plan: &ReadPlan) {
        let place = self.places.get_mut(&plan.shard).filter(|place| place.turn == plan.turn);
        if let Some(place) = place {
            place.iterator = None;
        }
    }

    /// Kinesis has the shard no longer, and so nothing that was in it.
    pub(crate) fn vanished(&mut self, plan: &ReadPlan) {
        if let Some(place) = self.places.get_mut(&plan.shard) {
            place.read_out = true;
            place.end_if_read_out();
        }
    }

    /// Which record a receipt is good for.
    pub(crate) fn held(
        &self,
        operation: &'static str,
        receipt: &Receipt,
    ) -> Result<(String, usize)> {
        let find = || {
            let (shard, number) = receipt.token().split_once(':')?;
            let number: u64 = number.parse().ok()?;
            let given = &self.places.get(shard).filter(|_| !self.closed)?.given;
            let at = given.iter().position(|record| record.receipt == number && !record.done)?;
            Some((shard.to_owned(), at))
        };
        find().ok_or_else(|| {
            Error::new(ErrorKind::Lost, operation)
                .with_backend(BACKEND)
                .with_detail("the message is settled or given back, or the source is closed")
        })
    }

    pub(crate) fn settle(&mut self, receipt: &Receipt, to: SourceSettlement) -> Result<()> {
        let (shard, at) = self.held("settle", receipt)?;
        let Some(place) = self.places.get_mut(&shard) else { return Ok(()) };
        match to {
            SourceSettlement::Done => place.done(at),
            SourceSettlement::Return => place.go_back(at),
            SourceSettlement::Leave => {
                return Err(Error::new(ErrorKind::Unsupported, "settle")
                    .with_backend(BACKEND)
                    .with_detail("nothing can be left in a stream"));
            }
        }
        Ok(())
    }

    pub(crate) fn checkpoints(&self) -> Vec<Checkpoint> {
        let told = |(shard, place): (&String, &ShardPlace)| {
            Checkpoint::new(shard.as_str(), place.settled.to_string())
        };
        self.places.iter().map(told).collect()
    }

    /// How old the oldest record is that is not settled, as far as is known.
    pub(crate) fn lag(&self, now: Timestamp) -> Duration {
        let lag = |place: &ShardPlace| {
            let given = place.given.iter().filter(|record| !record.done);
            let oldest = given.filter_map(|record| record.arrived).min();
            oldest.map_or(place.behind, |arrived| now.since(arrived).max(place.behind))
        };
        self.places.values().map(lag).max().unwrap_or_default()
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(id: &str, parents: &[&str]) -> ListedShard {
        let parents = parents.iter().map(|it| (*it).to_owned()).collect();
        ListedShard { id: id.to_owned(), parents }
    }

    fn batch(numbers: std::ops::Range<u32>, next: Option<&str>) -> ReadBatch {
        let record = |number: u32| ReadRecord {
            number: number.to_string(),
            body: number.to_string().into_bytes(),
            arrived: None,
        };
        let (records, next) = (numbers.map(record).collect(), next.map(str::to_owned));
        ReadBatch { records, next, behind: Duration::ZERO }
    }

    fn ready(shards: &Shards) -> Vec<String> {
        shards.readable().into_iter().map(|plan| plan.shard).collect()
    }

    fn plan(shards: &Shards, id: &str) -> ReadPlan {
        shards.readable().into_iter().find(|plan| plan.shard == id).unwrap()
    }

    fn take(shards: &mut Shards, id: &str, batch: ReadBatch) -> Vec<Receipt> {
        let plan = plan(shards, id);
        shards.took(&plan, batch).into_iter().map(|message| message.receipt).collect()
    }

    fn told(shards: &Shards) -> Vec<(String, String)> {
        let told = |it: &Checkpoint| (it.shard().to_owned(), it.position().to_owned());
        shards.checkpoints().iter().map(told).collect()
    }

    fn pair(shard: &str, position: &str) -> (String, String) {
        (shard.to_owned(), position.to_owned())
    }

    #[test]
    fn children_wait_until_all_their_parents_are_settled() {
        let listed =
            [shard("a", &[]), shard("b", &[]), shard("c", &["a", "b"]), shard("d", &["c"])];
        let mut shards = Shards::new(&listed, &[], &Position::Oldest).unwrap();
        assert_eq!(ready(&shards), ["a", "b"]);
        let receipts = take(&mut shards, "a", batch(1..3, None));
        take(&mut shards, "b", batch(0..0, None));
        assert_eq!(ready(&shards), [""; 0], "what was read of a parent is not settled yet");
        for receipt in &receipts {
            shards.settle(receipt, SourceSettlement::Done).unwrap();
        }
        assert_eq!(ready(&shards), ["c"]);
        take(&mut shards, "c", batch(0..0, None));
        assert_eq!(ready(&shards), ["d"]);
        let ends = [pair("a", "end"), pair("b", "end"), pair("c", "end"), pair("d", "oldest")];
        assert_eq!(told(&shards), ends);
    }

    #[test]
    fn a_parent_that_is_gone_back_in_is_read_out_once_more() {
        let listed = [shard("a", &[]), shard("b", &["a"])];
        let mut shards = Shards::new(&listed, &[], &Position::Oldest).unwrap();
        let receipts = take(&mut shards, "a", batch(1..4, None));
        shards.settle(&receipts[0], SourceSettlement::Done).unwrap();
        shards.settle(&receipts[1], SourceSettlement::Return).unwrap();
        assert_eq!(plan(&shards, "a").from, Position::After("1".to_owned()));
        assert!(shards.settle(&receipts[2], SourceSettlement::Done).is_err());
        assert_eq!(ready(&shards), ["a"]);
    }

    #[test]
    fn what_is_done_counts_only_behind_what_is_done() {
        let mut shards = Shards::new(&[shard("a", &[])], &[], &Position::At(7)).unwrap();
        assert_eq!(told(&shards), [pair("a", "@7")]);
        let receipts = take(&mut shards, "a", batch(1..4, Some("next")));
        shards.settle(&receipts[1], SourceSettlement::Done).unwrap();
        assert_eq!(told(&shards), [pair("a", "@7")]);
        shards.settle(&receipts[0], SourceSettlement::Done).unwrap();
        assert_eq!(told(&shards), [pair("a", "2")]);
        assert!(shards.settle(&receipts[0], SourceSettlement::Done).is_err());
        let unsupported = shards.settle(&receipts[2], SourceSettlement::Leave).unwrap_err();
        assert_eq!(unsupported.kind(), ErrorKind::Unsupported);
        shards.settle(&receipts[2], SourceSettlement::Done).unwrap();
        assert_eq!(told(&shards), [pair("a", "3")]);
    }

    #[test]
    fn an_answer_that_comes_after_going_back_is_none() {
        let mut shards = Shards::new(&[shard("a", &[])], &[], &Position::Oldest).unwrap();
        let receipts = take(&mut shards, "a", batch(1..3, Some("i")));
        let asked = plan(&shards, "a");
        assert_eq!(asked.iterator.as_deref(), Some("i"));
        shards.settle(&receipts[0], SourceSettlement::Return).unwrap();
        assert!(shards.took(&asked, batch(3..5, Some("j"))).is_empty());
        let again = plan(&shards, "a");
        assert_eq!((again.iterator, again.from), (None, Position::Oldest));
    }

    #[test]
    fn an_iterator_that_expired_is_made_again_behind_what_was_read() {
        let mut shards = Shards::new(&[shard("a", &[])], &[], &Position::Oldest).unwrap();
        take(&mut shards, "a", batch(1..3, Some("i")));
        let asked = plan(&shards, "a");
        shards.expired(&asked);
        let again = plan(&shards, "a");
        assert_eq!((again.iterator, again.from), (None, Position::After("2".to_owned())));
    }

    #[test]
    fn checkpoints_are_gone_on_from_and_new_shards_begin_at_their_beginning() {
        let checkpoints = [Checkpoint::new("a", "end"), Checkpoint::new("b", "41")];
        let listed = [shard("a", &[]), shard("b", &[]), shard("c", &["a"])];
        let mut shards = Shards::new(&listed, &checkpoints, &Position::At(7)).unwrap();
        assert_eq!(ready(&shards), ["b", "c"]);
        assert_eq!(plan(&shards, "b").from, Position::After("41".to_owned()));
        assert_eq!(plan(&shards, "c").from, Position::Oldest);
        // Kinesis forgets a closed shard with its last record.
        shards.relist(&[shard("b", &[]), shard("c", &["a"])]);
        assert_eq!(told(&shards), [pair("b", "41"), pair("c", "oldest")]);
        let wrong = Shards::new(&listed, &[Checkpoint::new("a", "x")], &Position::Oldest);
        assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn a_shard_that_is_no_longer_kept_holds_its_children_up_no_longer() {
        let checkpoints = [Checkpoint::new("a", "41")];
        let mut shards =
            Shards::new(&[shard("b", &["a"])], &checkpoints, &Position::Oldest).unwrap();
        assert_eq!(ready(&shards), ["a"], "it may be there, and merely not listed");
        let asked = plan(&shards, "a");
        shards.vanished(&asked);
        assert_eq!(ready(&shards), ["b"]);
    }

    #[test]
    fn the_oldest_record_that_is_not_settled_is_the_lag() {
        let now = Timestamp::from_unix_seconds(100);
        let mut shards = Shards::new(&[shard("a", &[])], &[], &Position::Oldest).unwrap();
        let mut read = batch(1..2, Some("i"));
        read.behind = Duration::from_secs(3);
        read.records[0].arrived = Some(Timestamp::from_unix_seconds(90));
        let receipts = take(&mut shards, "a", read);
        assert_eq!(shards.lag(now), Duration::from_secs(10));
        shards.settle(&receipts[0], SourceSettlement::Done).unwrap();
        assert_eq!(shards.lag(now), Duration::from_secs(3));
        take(&mut shards, "a", batch(0..0, Some("j")));
        assert_eq!(shards.lag(now), Duration::ZERO);
    }
}
