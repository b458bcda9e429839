//! Takes what the client should hold and what it holds; decides what it is told (the table of
//! SPEC §4). Pure: no await, no clock, no log.

use serde::{Deserialize, Serialize};

use super::{Action, Document, Epoch, Round, Row, Timestamp, Version};

/// Whether the client should hold the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// The version is live and the filter wants it.
    Present,
    /// The version is gone, or the filter says no.
    Absent,
}

/// What a subscription's filter says of a document. Without a filter it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FilterVerdict {
    /// The client should have it.
    Wants,
    /// The client should not have it, nor see what is in it.
    Refuses,
}

impl FilterVerdict {
    /// The verdict of a filter that matches, or does not.
    pub const fn of(matches: bool) -> Self {
        if matches { Self::Wants } else { Self::Refuses }
    }
}

/// Whether the client holds the document, as far as we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Present {
    /// It was never told, or told of the deletion.
    #[default]
    No,
    /// A create left us and it is unknown whether it arrived.
    Maybe,
    /// It acknowledged a create or an update.
    Yes,
}

impl Present {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::No, Self::Maybe, Self::Yes];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Maybe => "maybe",
            Self::Yes => "yes",
        }
    }
}

/// What to do about one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Tell the client.
    Send(Action),
    /// Nothing to tell: the version is settled in silence.
    SettleSilently,
}

/// Decides what a client that holds the document as `present` says is told to reach `target`.
///
/// | target \ client holds it | no | maybe | yes |
/// |---|---|---|---|
/// | present | create | create | update |
/// | absent | settle silently | delete | delete |
///
/// ```
/// use flare_core::model::{decide, Action, Decision, Present, Target};
///
/// assert_eq!(decide(Target::Present, Present::No), Decision::Send(Action::Create));
/// assert_eq!(decide(Target::Absent, Present::No), Decision::SettleSilently);
/// ```
pub const fn decide(target: Target, present: Present) -> Decision {
    match (target, present) {
        (Target::Present, Present::No | Present::Maybe) => Decision::Send(Action::Create),
        (Target::Present, Present::Yes) => Decision::Send(Action::Update),
        (Target::Absent, Present::No) => Decision::SettleSilently,
        (Target::Absent, Present::Maybe | Present::Yes) => Decision::Send(Action::Delete),
    }
}

/// When this worker took the slot over, and under which epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takeover {
    /// The epoch drawn at take-over.
    pub epoch: Epoch,
    /// The store's time at take-over.
    pub at: Timestamp,
}

impl Takeover {
    /// What the client holds as far as *this* worker can know.
    ///
    /// A row that an earlier epoch wrote last, and that was already waiting when this worker took
    /// over, may have been sent by the worker before, which died before it could say so: its `No`
    /// is worth only a `Maybe`. The result is what has to be stored again if the next attempt
    /// fails, because storing it makes the row this epoch's own. A later epoch is this worker's too:
    /// it draws one when lanes begin anew, and no other worker writes before the next take-over.
    pub fn holding(&self, present: Present, row_epoch: Epoch, row_since: Timestamp) -> Present {
        match present {
            Present::No if row_epoch < self.epoch && row_since <= self.at => Present::Maybe,
            known => known,
        }
    }
}

/// What a client is to be told of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Telling {
    /// The version it has then.
    pub version: Version,
    /// What it is told.
    pub action: Action,
    /// What it holds before, as far as this worker can know.
    pub holding: Present,
    /// In which round it is told.
    pub round: Round,
    /// Whether it is told nothing of the content: the filter refuses that.
    pub withholds: bool,
}

impl Telling {
    /// What the row's client is to be told, so that it has what the document and its filter say;
    /// nothing, if it has that already. Lanes and pulls decide it here.
    pub fn of(
        row: &Row,
        document: &Document,
        takeover: &Takeover,
        verdict: FilterVerdict,
    ) -> Option<Self> {
        let holding = takeover.holding(row.present, row.epoch, row.since);
        Self::to(holding, row, document, verdict)
    }

    /// The same for a puller that has claimed the row, which took over when the last lanes were left:
    /// it is told by what the client held before the claim.
    pub fn of_claimed(
        row: &Row,
        document: &Document,
        left: &Takeover,
        verdict: FilterVerdict,
    ) -> Option<Self> {
        let held = row.claim.map_or(row.present, |claim| claim.held);
        Self::to(left.holding(held, row.epoch, row.since), row, document, verdict)
    }

    fn to(
        holding: Present,
        row: &Row,
        document: &Document,
        verdict: FilterVerdict,
    ) -> Option<Self> {
        let version = document.version;
        match decide(target(version, verdict), holding) {
            Decision::Send(action) => {
                // Also of a deleted document: what the filter refused last is not shown on that occasion.
                let withholds = verdict == FilterVerdict::Refuses;
                Some(Self { version, action, holding, round: row.round, withholds })
            }
            Decision::SettleSilently => None,
        }
    }
}

/// Whether a client should hold a document at a version. Deletions are not filtered.
const fn target(version: Version, verdict: FilterVerdict) -> Target {
    match verdict {
        FilterVerdict::Wants if !version.is_gone() => Target::Present,
        _ => Target::Absent,
    }
}

/// How an attempt ended, as far as the client's holding is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The client accepted it.
    Success,
    /// The client refuses this version for good.
    Discard,
    /// The client answered that it failed, or the request never left.
    Failure,
    /// The request left and no answer came.
    Unknown,
}

/// What the client holds after an attempt to tell it `action`, when it held `before`.
pub const fn present_after(before: Present, action: Action, verdict: Verdict) -> Present {
    match (verdict, action) {
        (Verdict::Success, Action::Create | Action::Update) => Present::Yes,
        (Verdict::Success | Verdict::Discard, Action::Delete) => Present::No,
        (Verdict::Unknown, Action::Create) => match before {
            Present::No => Present::Maybe,
            known => known,
        },
        // A refused create stays a create next time; whatever else failed changed nothing.
        (Verdict::Discard | Verdict::Failure | Verdict::Unknown, _) => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        DocumentKey, DocumentUrl, Generation, ResourceId, Revision, Spread, SubscriptionId,
    };

    const HOLDINGS: [Present; 3] = [Present::No, Present::Maybe, Present::Yes];

    #[test]
    fn the_table() {
        use Decision::{Send, SettleSilently};
        let table = [
            (Target::Present, Present::No, Send(Action::Create)),
            (Target::Present, Present::Maybe, Send(Action::Create)),
            (Target::Present, Present::Yes, Send(Action::Update)),
            (Target::Absent, Present::No, SettleSilently),
            (Target::Absent, Present::Maybe, Send(Action::Delete)),
            (Target::Absent, Present::Yes, Send(Action::Delete)),
        ];
        for (target, present, expected) in table {
            assert_eq!(decide(target, present), expected, "{target:?}, client holds {present:?}");
        }
    }

    #[test]
    fn success_makes_the_client_hold_the_target() {
        for before in HOLDINGS {
            assert_eq!(present_after(before, Action::Create, Verdict::Success), Present::Yes);
            assert_eq!(present_after(before, Action::Update, Verdict::Success), Present::Yes);
            assert_eq!(present_after(before, Action::Delete, Verdict::Success), Present::No);
        }
    }

    #[test]
    fn a_refused_create_stays_a_create_and_a_discarded_delete_counts_as_absent() {
        for before in HOLDINGS {
            assert_eq!(present_after(before, Action::Create, Verdict::Discard), before);
            assert_eq!(present_after(before, Action::Update, Verdict::Discard), before);
            assert_eq!(present_after(before, Action::Delete, Verdict::Discard), Present::No);
        }
    }

    #[test]
    fn only_a_create_with_unknown_outcome_brings_doubt() {
        assert_eq!(present_after(Present::No, Action::Create, Verdict::Unknown), Present::Maybe);
        for action in [Action::Update, Action::Delete] {
            for before in HOLDINGS {
                assert_eq!(present_after(before, action, Verdict::Unknown), before);
            }
        }
        for action in [Action::Create, Action::Update, Action::Delete] {
            for before in HOLDINGS {
                assert_eq!(present_after(before, action, Verdict::Failure), before);
            }
        }
    }

    #[test]
    fn what_a_filter_refuses_is_absent_and_what_is_in_it_is_withheld() {
        use FilterVerdict::{Refuses, Wants};
        let url = DocumentUrl::parse("http://a.example/u/1").unwrap();
        let key = DocumentKey::new(ResourceId::from_bytes([2; 16]), url);
        let (live, gone) = (Version::live(Revision::new(1)), Version::gone(Revision::new(1)));
        let id = SubscriptionId::from_bytes([1; 16]);
        let spread = Spread::new(id, Generation::new(1), key.clone(), live);
        let takeover = Takeover { epoch: Epoch::new(1), at: Timestamp::EPOCH };
        let cases = [
            (live, Present::No, Wants, Some((Action::Create, false))),
            (live, Present::Yes, Wants, Some((Action::Update, false))),
            (live, Present::No, Refuses, None),
            (live, Present::Maybe, Refuses, Some((Action::Delete, true))),
            (live, Present::Yes, Refuses, Some((Action::Delete, true))),
            (gone, Present::No, Wants, None),
            (gone, Present::Yes, Wants, Some((Action::Delete, false))),
            (gone, Present::No, Refuses, None),
            (gone, Present::Yes, Refuses, Some((Action::Delete, true))),
        ];
        for (version, present, verdict, expected) in cases {
            let mut row = Row::new(&spread, Timestamp::from_unix_seconds(1));
            row.present = present;
            let document = Document::new(key.clone(), version, Timestamp::EPOCH);
            let pushed = Telling::of(&row, &document, &takeover, verdict);
            let pulled = Telling::of_claimed(&row, &document, &takeover, verdict);
            assert_eq!(pushed, pulled);
            let told = pushed.map(|telling| (telling.action, telling.withholds));
            assert_eq!(told, expected, "{version}, holds {present:?}, filter {verdict:?}");
        }
    }

    #[test]
    fn a_predecessors_row_is_in_doubt_unless_it_became_pending_after_the_take_over() {
        let at = Timestamp::from_unix_seconds;
        let mine = Takeover { epoch: Epoch::new(7), at: at(100) };
        let (other, own, anew) = (Epoch::new(6), Epoch::new(7), Epoch::new(9));
        let cases = [
            (Present::No, other, 99, Present::Maybe),
            (Present::No, other, 100, Present::Maybe),
            (Present::No, other, 101, Present::No),
            (Present::No, own, 99, Present::No),
            (Present::No, anew, 100, Present::No),
            (Present::Yes, other, 99, Present::Yes),
            (Present::Maybe, own, 101, Present::Maybe),
        ];
        for (present, epoch, since, expected) in cases {
            assert_eq!(
                mine.holding(present, epoch, at(since)),
                expected,
                "{present:?} since {since}"
            );
        }
    }
}
