//! Takes what a client was sent and how it took it; gives what it holds, and what its sender can know
//! of that.

use std::collections::BTreeMap;

use flare_core::model::{Action, Epoch, SubscriptionId, Version};
use flare_core::port::DeliveryRequest;

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
    pub(crate) ids: BTreeMap<(Version, bool), String>,
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
    fn take(&mut self, request: &DeliveryRequest) {
        let revision = request.version.revision().get();
        self.holds = (request.action != Action::Delete).then_some(revision);
    }

    /// What an answer means for the client, and for what the sender can know.
    pub(crate) fn answer(&mut self, behaviour: Behaviour, request: &DeliveryRequest, crashes: u64) {
        match behaviour {
            Behaviour::Accept => {
                self.take(request);
                (self.doubt, self.moved) = (false, false);
                self.settled = Some((request.version, crashes));
            }
            Behaviour::Refuse => {
                self.moved = false;
                self.settled = Some((request.version, crashes));
                // A refused delete counts as absent.
                if request.action == Action::Delete {
                    self.holds = None;
                    self.doubt = false;
                }
            }
            Behaviour::AcceptAndLoseAnswer | Behaviour::Hang { accept: true } => {
                self.take(request);
                self.doubt = true;
            }
            Behaviour::LoseRequest | Behaviour::Hang { accept: false } => self.doubt = true,
            Behaviour::Fail | Behaviour::Gone | Behaviour::Wait(_) | Behaviour::Unreachable => {}
        }
    }
}

/// Whom a request tells of which document.
pub(crate) fn key_of(request: &DeliveryRequest) -> (SubscriptionId, String) {
    (request.subscription, request.document.as_str().to_owned())
}
