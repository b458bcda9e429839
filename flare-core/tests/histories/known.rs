//! Takes what a client was sent and how it took it; gives what it holds, and what its sender can know
//! of that.

use std::collections::{BTreeMap, BTreeSet};

use flare_core::model::{
    Action, DocumentUrl, Epoch, Revision, Round, SubscriptionId, Target, Timestamp, Version,
    webhook_id,
};
use flare_core::port::DeliveryRequest;

/// More rounds than any history draws: their numbers are those of epochs.
const ROUNDS: u64 = 20_000;

/// What a client is told, sent or handed out.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) subscription: SubscriptionId,
    pub(crate) document: DocumentUrl,
    pub(crate) version: Version,
    pub(crate) action: Action,
    /// Its `webhook-id`.
    pub(crate) id: String,
}

/// Which documents a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    All,
    Even,
    Odd,
    /// By a filter that fails on every document.
    None,
}

impl Wanted {
    /// All there are.
    pub(crate) const EACH: [Self; 4] = [Self::All, Self::Even, Self::Odd, Self::None];

    pub(crate) fn wants(self, revision: i64) -> bool {
        match self {
            Self::All => true,
            Self::Even => revision % 2 == 0,
            Self::Odd => revision % 2 != 0,
            Self::None => false,
        }
    }

    /// The filter that says so.
    pub(crate) fn filter(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Even => Some("document.rev % 2 == 0"),
            Self::Odd => Some("document.rev % 2 != 0"),
            Self::None => Some("document.missing > 0"),
        }
    }

    /// What a filter says.
    pub(crate) fn by(filter: Option<&str>) -> Self {
        let says = |wanted: &Self| wanted.filter() == filter;
        Self::EACH.into_iter().find(says).unwrap()
    }
}

impl Told {
    /// What a request tells: one document, or those in its body.
    pub(crate) fn by(request: &DeliveryRequest) -> Vec<Self> {
        let header = |name: &str| {
            let found = request.headers.iter().find(|(it, _)| it == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        if header("flare-action") == "batch" {
            let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
            let all = body["notifications"].as_array().unwrap();
            return all.iter().map(|one| Self::said(request.subscription, one)).collect();
        }
        vec![Self {
            subscription: request.subscription,
            document: request.document.clone(),
            version: request.version,
            action: request.action,
            id: header("webhook-id"),
        }]
    }

    /// What an envelope says. Whether a document is gone, or a filter refuses it, shows in the id alone.
    pub(crate) fn said(subscription: SubscriptionId, envelope: &serde_json::Value) -> Self {
        let text = |name: &str| envelope[name].as_str().unwrap().to_owned();
        let action: Action = serde_json::from_value(envelope["action"].clone()).unwrap();
        let revision = Revision::new(envelope["revision"].as_i64().unwrap());
        let document = DocumentUrl::parse(&text("id")).unwrap();
        let (live, gone) = (Version::live(revision), Version::gone(revision));
        let (versions, target) = match action {
            Action::Delete => (vec![gone, live], Target::Absent),
            Action::Create | Action::Update => (vec![live], Target::Present),
        };
        let given = text("webhookId");
        let each = (0..ROUNDS).flat_map(|round| versions.iter().map(move |it| (*it, round)));
        let is_its_own = |(version, round): &(Version, u64)| {
            let round = Round::new(*round);
            given == webhook_id(subscription, &document, *version, target, round)
        };
        // One that is of no version is as bad as none.
        let (version, id) = match each.into_iter().find(is_its_own) {
            Some((version, _)) => (version, given),
            None => (versions[0], String::new()),
        };
        Self { subscription, document, version, action, id }
    }

    /// Whom it tells of which document.
    pub(crate) fn key(&self) -> (SubscriptionId, String) {
        (self.subscription, self.document.as_str().to_owned())
    }
}

/// What one client knows of one document, and what it was told.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The revision it holds.
    pub(crate) holds: Option<i64>,
    /// The sender cannot know what it holds.
    pub(crate) doubt: bool,
    pub(crate) in_flight: u32,
    pub(crate) newest_sent: Option<Version>,
    /// The newest version it accepted or refused, and how many crashes there had been.
    pub(crate) settled: Option<(Version, u64)>,
    pub(crate) ids: BTreeMap<(Version, bool), BTreeSet<String>>,
    /// When it last settled something, and how many crashes there had been.
    pub(crate) settled_at: Option<(Timestamp, u64)>,
    /// How often it was told anew because somebody asked for that.
    pub(crate) retold: u32,
    /// When it was last told anything, in requests of all.
    pub(crate) told: u64,
    /// What it refused, if that was heard.
    pub(crate) may_have_refused: Option<Version>,
    /// It refused a delete since it was last given something, if that was heard.
    pub(crate) may_be_absent: bool,
    /// Until when a puller has it.
    pub(crate) in_hand: Option<Timestamp>,
    /// Under which epoch it was last told something.
    pub(crate) epoch: Option<Epoch>,
    /// Somebody else took over since it last settled something.
    pub(crate) moved: bool,
}

/// How a client takes a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Behaviour {
    Accept,
    Refuse,
    Fail,
    AcceptAndLoseAnswer,
    LoseRequest,
    Hang {
        accept: bool,
    },
    Unreachable,
    /// Asks to be left alone for some seconds.
    Wait(u64),
    Gone,
}

impl Known {
    pub(crate) fn take(&mut self, told: &Told) {
        let revision = told.version.revision().get();
        self.holds = (told.action != Action::Delete).then_some(revision);
        self.may_be_absent = false;
    }

    /// What an answer means for the client, and for what the sender can know.
    pub(crate) fn answer(
        &mut self,
        behaviour: Behaviour,
        told: &Told,
        crashes: u64,
        now: Timestamp,
    ) {
        match behaviour {
            Behaviour::Accept => {
                self.take(told);
                (self.doubt, self.moved) = (false, false);
                self.settle(told.version, crashes, now);
            }
            Behaviour::Refuse => {
                self.moved = false;
                self.settle(told.version, crashes, now);
                // A refused delete counts as absent.
                if told.action == Action::Delete {
                    self.holds = None;
                    self.doubt = false;
                }
            }
            Behaviour::AcceptAndLoseAnswer | Behaviour::Hang { accept: true } => {
                self.take(told);
                self.doubt = true;
            }
            Behaviour::LoseRequest | Behaviour::Hang { accept: false } => self.doubt = true,
            Behaviour::Fail | Behaviour::Gone | Behaviour::Wait(_) | Behaviour::Unreachable => {}
        }
    }

    fn settle(&mut self, version: Version, crashes: u64, now: Timestamp) {
        self.settled = Some((version, crashes));
        self.settled_at = Some((now, crashes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tellings of one notification, by pull and by request, were once taken for two versions.
    #[test]
    fn a_delete_that_a_filter_causes_is_told_from_one_of_what_is_gone() {
        let subscription = SubscriptionId::from_bytes([1; 16]);
        let url = DocumentUrl::parse("http://api.example/docs/1").unwrap();
        let revision = Revision::new(21);
        for version in [Version::live(revision), Version::gone(revision)] {
            for round in [0, 7] {
                let id = webhook_id(subscription, &url, version, Target::Absent, Round::new(round));
                let envelope = serde_json::json!({
                    "id": url.as_str(), "action": "delete", "revision": 21, "webhookId": id,
                });
                let told = Told::said(subscription, &envelope);
                assert_eq!((told.version, told.id), (version, id), "round {round}");
            }
        }
    }
}
