//! Takes what a store should be like; gives the steps that are missing, and takes them one by one.
//! Never decides whether to: a plan is shown to an operator first.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use async_trait::async_trait;
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::model::Invalid;

/// Keeps what a backend needs in its store (collections, indexes, queues, migrations) in order.
///
/// A [plan](Self::plan) is a list of [steps](Step) in the order they are to be taken. The operator who
/// [applies](Self::apply) them has looked at them, so time has passed: every step is taken
/// only if the store is still as it was planned from.
///
/// # Contract
/// - **U1** A plan changes nothing, and of an unchanged store the next one is the same: the same
///   ids in the same order, none of them twice.
/// - **U2** A step takes place only if what it is about is still as planned, which is looked at in
///   the same conditional write where the store can do that, else right before. Else it is
///   [`StepOutcome::NotNeeded`] and changes nothing.
/// - **U3** Applying a step again is [`StepOutcome::NotNeeded`] and changes nothing; several
///   callers that apply the same steps at once do no harm, and none of them fails for it.
/// - **U4** Once all steps of a plan are applied in their order a new plan of the same purpose is
///   empty.
/// - **U5** A cleanup lists nothing that is in use, nothing that a setup or fixup would bring back,
///   and nothing that is not Flare's.
/// - **U6** A step is known by its id. One that this backend could not have planned for that
///   purpose (another store's, another purpose's, made up) is [`ErrorKind::Invalid`], as
///   [`Step::refused`] makes it, and changes nothing.
/// - **U7** A step with an amount says how far it is, at least once before it is
///   [`StepOutcome::Done`]. What it says never falls, and never exceeds the total.
/// - **U8** A [backup](Self::backup) is all of the store as of one moment after the call, in a new file,
///   while others go on using the store; progress is said as in U7. Where there is something at that path
///   it is [`ErrorKind::Conflict`], and that stays as it is; one that fails leaves nothing there. A store
///   without such a thing answers [`ErrorKind::Unsupported`] as [`no_backup`] makes it.
///
/// Every call may fail at any point, a crash included: what was done until then stays done, and a
/// new plan has what is left.
#[async_trait]
pub trait Upkeep: fmt::Debug + Send + Sync + 'static {
    /// Which part of the backend this keeps in order. Several may keep the same part.
    fn part(&self) -> Part;

    /// The backend's name, as its errors have it (`"mongodb"`).
    fn backend(&self) -> &'static str;

    /// What is left to do for `purpose`.
    async fn plan(&self, purpose: Purpose) -> Result<Vec<Step>>;

    /// Takes one planned step.
    async fn apply(
        &self,
        purpose: Purpose,
        step: &Step,
        progress: &dyn StepProgress,
    ) -> Result<StepOutcome>;

    /// Copies all of the store into a new file.
    async fn backup(&self, to: &Path, progress: &dyn StepProgress) -> Result<()>;
}

/// What a store answers that cannot copy itself into a file, with what to use instead (U8).
pub fn no_backup(backend: &'static str, instead: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, "backup").with_backend(backend).with_detail(instead)
}

/// Hears how far a step is.
pub trait StepProgress: Send + Sync {
    /// So much of it is done, out of `total` if that is known.
    fn advanced(&self, done: u64, total: Option<u64>);
}

/// For a caller that does not want to hear it.
impl StepProgress for () {
    fn advanced(&self, _done: u64, _total: Option<u64>) {}
}

/// What a backend may bring, and keeps in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Part {
    /// Where documents, rows and subscriptions are kept.
    Repository,
    /// What wakes stages and lanes.
    Queue,
    /// Who works which lanes.
    Lease,
}

impl Part {
    /// All parts, in the order they are kept: later ones may build on earlier ones.
    pub const ALL: [Self; 3] = [Self::Repository, Self::Queue, Self::Lease];

    /// Its name, as it stands in configuration and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::Queue => "queue",
            Self::Lease => "lease",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Part {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let named = Self::ALL.into_iter().find(|part| part.as_str() == text);
        named.ok_or_else(|| Invalid::new("part", "must be repository, queue or lease"))
    }
}

/// What steps are planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// All that is needed to run, numbered migrations included.
    Setup,
    /// What is missing is created again, and what is wrong is put right.
    Fixup,
    /// What belongs to nothing is removed.
    Cleanup,
}

impl Purpose {
    /// All purposes, in the order they make sense.
    pub const ALL: [Self; 3] = [Self::Setup, Self::Fixup, Self::Cleanup];

    /// Its name, as it stands on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Fixup => "fixup",
            Self::Cleanup => "cleanup",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a step does to its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// It makes something that is not there.
    Create,
    /// It changes something that is there.
    Update,
    /// It removes something that is there.
    Delete,
}

impl StepKind {
    /// The verb.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One change of one thing in a store.
///
/// ```
/// use flare_core::port::Step;
///
/// let step = Step::update("index flare.rows pending", "it is not unique").planned_from("{bucket: 1}");
/// assert_eq!(step.id, "update index flare.rows pending, from {bucket: 1}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Step {
    /// Names the change *and* the state it was planned from: equal ids of one backend mean the
    /// same change of the same thing.
    pub id: String,
    /// What is done.
    pub kind: StepKind,
    /// To what, for people.
    pub subject: String,
    /// Why, for people.
    pub reason: String,
    /// How many entries it is about, where that is what makes it long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<u64>,
}

impl Step {
    /// Makes `subject`, which is not there. Its id says so.
    pub fn create(subject: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(StepKind::Create, subject.into(), reason.into())
    }

    /// Changes `subject`. Unless there is only one state it can be in, say which by
    /// [`planned_from`](Self::planned_from).
    pub fn update(subject: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(StepKind::Update, subject.into(), reason.into())
    }

    /// Removes `subject`. Unless there is only one state it can be in, say which by
    /// [`planned_from`](Self::planned_from).
    pub fn delete(subject: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(StepKind::Delete, subject.into(), reason.into())
    }

    fn new(kind: StepKind, subject: String, reason: String) -> Self {
        Self { id: format!("{kind} {subject}"), kind, subject, reason, amount: None }
    }

    /// The same step, of a subject that was seen in this state.
    #[must_use]
    pub fn planned_from(mut self, state: impl fmt::Display) -> Self {
        self.id = format!("{} {}, from {state}", self.kind, self.subject);
        self
    }

    /// The same step, about so many entries.
    #[must_use]
    pub fn amount(mut self, amount: u64) -> Self {
        self.amount = Some(amount);
        self
    }

    /// What a backend answers that could not have planned this step (U6).
    pub fn refused(&self, backend: &'static str) -> Error {
        let detail = format!("{:?} is no step that could have been planned", self.id);
        Error::new(ErrorKind::Invalid, "apply")
            .with_backend(backend)
            .with_field("step")
            .with_detail(detail)
    }
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepOutcome {
    /// It took place.
    Done,
    /// It was found done already, or its subject is not as planned any more (in use again).
    NotNeeded,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_the_change_and_what_it_was_planned_from() {
        let step = Step::delete("queue lane-1", "no lane");
        assert_eq!(step.id, "delete queue lane-1");
        let (one, other) = (step.clone().planned_from("2 lanes"), step.planned_from("3 lanes"));
        assert_ne!(one.id, other.id);
        assert_eq!(one.clone().planned_from("3 lanes").id, other.id, "the last state counts");
        assert_eq!(one.clone().amount(7).id, one.id, "an amount is no state");
    }

    #[test]
    fn parts_are_named_as_in_the_configuration() {
        for part in Part::ALL {
            assert_eq!(part.to_string().parse::<Part>().unwrap(), part);
            assert_eq!(serde_json::to_value(part).unwrap(), part.as_str());
        }
        for wrong in ["", "Queue", "queues", " queue"] {
            let refused = wrong.parse::<Part>().unwrap_err();
            assert_eq!(refused.reason(), "must be repository, queue or lease");
        }
    }

    #[test]
    fn a_step_is_an_object_in_json() {
        let step = Step::create("collection rows", "rows are kept there");
        let json = serde_json::to_value(&step).unwrap();
        let expected = serde_json::json!({
            "id": "create collection rows",
            "kind": "create",
            "subject": "collection rows",
            "reason": "rows are kept there",
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::to_value(step.amount(3)).unwrap()["amount"], 3);
    }
}
