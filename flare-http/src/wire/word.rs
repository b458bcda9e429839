//! Words of the model's in JSON: written, read and described from one list of them.

use std::borrow::Cow;
use std::str::FromStr;

use flare_core::PullOutcome;
use flare_core::model::consumer::RejectReason;
use flare_core::model::subscription::{BackoffFunction, Mode};
use flare_core::model::{
    Action, ConsumerStatus, DeathReason, Invalid, Method, OnReject, Present, SubscriptionStatus,
    SummaryOrder, WaitsFor,
};
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// One of a set of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<T>(pub(crate) T);

/// How a subscription's delays grow.
pub(crate) type BackoffWord = Word<BackoffFunction>;
/// Who begins.
pub(crate) type ModeWord = Word<Mode>;
/// Where a subscription stands.
pub(crate) type StatusWord = Word<SubscriptionStatus>;
/// What a client is told.
pub(crate) type ActionWord = Word<Action>;
/// Why something was given up.
pub(crate) type ReasonWord = Word<DeathReason>;
/// Whether a client holds a document.
pub(crate) type PresentWord = Word<Present>;
/// What a puller made of a notification.
pub(crate) type OutcomeWord = Word<PullOutcome>;
/// What a change waits for.
pub(crate) type WaitsForWord = Word<WaitsFor>;
/// Whether a consumer pulls.
pub(crate) type ConsumerStatusWord = Word<ConsumerStatus>;
/// Which subscriptions come first.
pub(crate) type OrderWord = Word<SummaryOrder>;
/// What becomes of a message that becomes no document.
pub(crate) type OnRejectWord = Word<OnReject>;
/// Why a message became no document.
pub(crate) type RejectReasonWord = Word<RejectReason>;

/// A set of words, as JSON has them.
pub(crate) trait Vocabulary: Copy + 'static {
    /// What the description calls it.
    const NAME: &'static str;
    /// What it says of it.
    const ABOUT: &'static str;
    /// Every word a reader may see.
    const ALL: &'static [Self];

    /// The word.
    fn word(self) -> &'static str;
}

macro_rules! vocabularies {
    ($($of:ident as $name:literal, $all:ident: $about:literal;)+) => {$(
        impl Vocabulary for $of {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = $about;
            const ALL: &'static [Self] = &$of::$all;

            fn word(self) -> &'static str {
                self.as_str()
            }
        }
    )+};
}

vocabularies! {
    BackoffFunction as "Backoff", ALL: "How delays grow from the smallest to the largest.";
    Mode as "Mode", ALL: "Who begins a delivery: Flare, or the client.";
    SubscriptionStatus as "SubscriptionStatus", SHOWN: "Where a subscription stands; unreadable: this version cannot read it, so it sends nothing for it.";
    SummaryOrder as "SubscriptionOrder", ALL: "Which subscriptions come first.";
    Action as "Action", ALL: "What a client is told of a document.";
    Present as "Present", ALL: "Whether a client holds a document, as far as is known.";
    PullOutcome as "PullOutcome", ALL: "The client has it, refuses this version for good, or hands it back.";
    WaitsFor as "WaitsFor", ALL: "What a change waits for: its turn, the next attempt, the end of the client's interval, of a hold it asked for or of its being down; somebody to resume the subscription, or to mend the client as well; the client to ask for it, or to settle it; being read again, as the document could not be read or the filter not be asked.";
    DeathReason as "DeathReason", ALL: "Why a notification was given up: its attempts or its time are used up.";
    Method as "Method", ALL: "How a request is made.";
    RejectReason as "RejectReason", ALL: "Why a message became no document.";
}

impl Vocabulary for ConsumerStatus {
    const NAME: &'static str = "ConsumerStatus";
    const ABOUT: &'static str = "Whether a consumer pulls.";
    const ALL: &'static [Self] = &[Self::Active, Self::Paused];

    fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
        }
    }
}

impl Vocabulary for OnReject {
    const NAME: &'static str = "OnReject";
    const ABOUT: &'static str = "What becomes of a message that becomes no document: it is kept to be listed and retried, or left to the broker's own rule for what is refused.";
    const ALL: &'static [Self] = &[Self::Keep, Self::Leave];

    fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Leave => "leave",
        }
    }
}

impl<T: Vocabulary> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de, T: FromStr<Err = Invalid>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|invalid: Invalid| D::Error::custom(invalid.reason()))
    }
}

impl<T: Vocabulary> PartialSchema for Word<T> {
    fn schema() -> RefOr<Schema> {
        let words = T::ALL.iter().map(|word| word.word());
        let words = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words));
        words.description(Some(T::ABOUT)).into()
    }
}

impl<T: Vocabulary> ToSchema for Word<T> {
    fn name() -> Cow<'static, str> {
        T::NAME.into()
    }
}
