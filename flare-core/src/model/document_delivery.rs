//! Who has which version of a document, and what the rest waits for. Values, and one pure decision.

use super::subscription::Mode;
use super::{
    Present, ResourceId, Row, Subscription, SubscriptionId, SubscriptionStatus, Timestamp, Version,
};

/// What a subscription's client has of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentDelivery {
    /// Whose client.
    pub subscription: SubscriptionId,
    /// The resource the document is told of as.
    pub resource: ResourceId,
    /// The newest version it acknowledged or refused, or that needed no telling.
    pub settled: Option<Version>,
    /// The newest version it should have.
    pub wanted: Version,
    /// Whether it holds the document.
    pub present: Present,
    /// Whether something is left to tell.
    pub pending: bool,
    /// What that waits for.
    pub waits_for: Option<WaitsFor>,
    /// Attempts that failed so far.
    pub attempts: u32,
    /// When it is told next, if that is known; never past.
    pub next_attempt_at: Option<Timestamp>,
    /// Why it was given up, or why the client last failed.
    pub last_error: Option<String>,
    /// Whether the subscription's filter refuses the document as it is now: the client is not to hold it.
    pub filtered: bool,
}

/// What a change waits for before its client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitsFor {
    /// Its turn: it is due.
    Turn,
    /// The time of the next attempt, after one that failed.
    Retry,
    /// The end of the time in which the client wants to hear nothing more of the document.
    Interval,
    /// The time until which the client asked to be left alone.
    Hold,
    /// A client that is taken for down, and probed now and then.
    Probe,
    /// An operator to resume the subscription, which is paused.
    Resume,
    /// An operator to mend the client and resume the subscription, which is suspended.
    Mending,
    /// The client to pull it or ask for it.
    Demand,
    /// The puller it was handed to.
    Puller,
    /// Being read again: the document could not be read, or the filter not be asked about it.
    Reading,
}

impl WaitsFor {
    /// All there are.
    pub const ALL: [Self; 10] = [
        Self::Turn,
        Self::Retry,
        Self::Interval,
        Self::Hold,
        Self::Probe,
        Self::Resume,
        Self::Mending,
        Self::Demand,
        Self::Puller,
        Self::Reading,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Retry => "retry",
            Self::Interval => "interval",
            Self::Hold => "hold",
            Self::Probe => "probe",
            Self::Resume => "resume",
            Self::Mending => "mending",
            Self::Demand => "demand",
            Self::Puller => "puller",
            Self::Reading => "reading",
        }
    }
}

/// What holds a client as a whole, and why it last failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCondition {
    /// Until when it asked to be left alone.
    pub hold_until: Option<Timestamp>,
    /// When it is probed next, if it is taken for down.
    pub probe_at: Option<Timestamp>,
    /// Why it last failed.
    pub last_error: Option<String>,
}

impl DocumentDelivery {
    /// What is known at `now` of a row, its subscription (if that can be read) and its client.
    pub fn of(
        row: &Row,
        subscription: Option<&Subscription>,
        client: &ClientCondition,
        now: Timestamp,
    ) -> Self {
        let pending = row.is_pending();
        let waits = subscription.filter(|_| pending).map(|it| waits_for(row, it, client, now));
        let (waits_for, at) = waits.map_or((None, None), |(why, at)| (Some(why), at));
        let failed = row.attempts > 0 || row.dead.is_some();
        let of_client = client.last_error.clone().filter(|_| pending && failed);
        Self {
            subscription: row.key.subscription,
            resource: row.document.resource,
            settled: row.settled,
            wanted: row.wanted,
            present: row.present,
            pending,
            waits_for,
            attempts: row.attempts,
            next_attempt_at: at.map(|at| at.max(now)),
            last_error: row.dead.as_ref().and_then(|dead| dead.last_error.clone()).or(of_client),
            filtered: false,
        }
    }
}

/// What a pending row waits for, and until when if that is known. What holds the whole client comes first.
fn waits_for(
    row: &Row,
    subscription: &Subscription,
    client: &ClientCondition,
    now: Timestamp,
) -> (WaitsFor, Option<Timestamp>) {
    match subscription.status {
        SubscriptionStatus::Paused => return (WaitsFor::Resume, None),
        SubscriptionStatus::Suspended => return (WaitsFor::Mending, None),
        _ => {}
    }
    if row.is_claimed(now) {
        return (WaitsFor::Puller, Some(row.due));
    }
    if subscription.spec.mode() == Mode::Passive && !row.demanded {
        return (WaitsFor::Demand, None);
    }
    if let Some(until) = client.hold_until.filter(|until| *until > now) {
        return (WaitsFor::Hold, Some(until.max(row.due)));
    }
    if let Some(at) = client.probe_at.filter(|at| *at > now) {
        return (WaitsFor::Probe, Some(at.max(row.due)));
    }
    if row.due <= now {
        (WaitsFor::Turn, Some(row.due))
    } else if row.attempts > 0 {
        (WaitsFor::Retry, Some(row.due))
    } else if row.not_before.is_some_and(|until| until > now) {
        (WaitsFor::Interval, Some(row.due))
    } else {
        (WaitsFor::Reading, Some(row.due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        ClaimId, DocumentKey, DocumentUrl, Epoch, Generation, Revision, Round, RowEffect, Spread,
        SubscriptionSpec,
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn row() -> Row {
        let url = DocumentUrl::parse("http://a.example/u/1").unwrap();
        let document = DocumentKey::new(ResourceId::from_bytes([2; 16]), url);
        let id = SubscriptionId::from_bytes([1; 16]);
        let wanted = Version::live(Revision::new(1));
        Row::new(&Spread::new(id, Generation::new(1), document, wanted), at(100))
    }

    fn subscription(mode: Mode, status: SubscriptionStatus) -> Subscription {
        let spec = SubscriptionSpec::post("http://c.example/").mode(mode).build().unwrap();
        let (id, resource) = (SubscriptionId::from_bytes([1; 16]), ResourceId::from_bytes([2; 16]));
        let mut subscription = Subscription::new(id, resource, spec, at(0));
        subscription.status = status;
        subscription
    }

    fn client(hold_until: Option<i64>, probe_at: Option<i64>) -> ClientCondition {
        let last_error = Some("answered 503".to_owned());
        ClientCondition { hold_until: hold_until.map(at), probe_at: probe_at.map(at), last_error }
    }

    #[test]
    fn what_a_change_waits_for() {
        use SubscriptionStatus::{Active, Paused, Suspended};
        let well = client(None, Some(100));
        let [mut claimed, mut demanded, mut retried] = [row(), row(), row()];
        let [mut rests, mut put_off] = [row(), row()];
        claimed.claim(ClaimId::from_bytes([3; 16]), at(300));
        demanded.demand(at(100));
        let version = retried.wanted;
        retried.apply(
            Epoch::new(1),
            Round::ZERO,
            RowEffect::Retry {
                version,
                present: Present::No,
                attempts: 2,
                due: at(400),
                first_failure: None,
            },
        );
        (rests.due, rests.not_before) = (at(500), Some(at(500)));
        // Its interval is over.
        (put_off.due, put_off.not_before) = (at(500), Some(at(150)));
        let table = [
            (row(), Mode::Active, Active, &well, WaitsFor::Turn, Some(200)),
            (row(), Mode::Active, Paused, &well, WaitsFor::Resume, None),
            (row(), Mode::Active, Suspended, &well, WaitsFor::Mending, None),
            (row(), Mode::Active, Active, &client(Some(250), None), WaitsFor::Hold, Some(250)),
            (row(), Mode::Active, Active, &client(Some(150), None), WaitsFor::Turn, Some(200)),
            (row(), Mode::Active, Active, &client(None, Some(260)), WaitsFor::Probe, Some(260)),
            (retried, Mode::Active, Active, &well, WaitsFor::Retry, Some(400)),
            (rests, Mode::Active, Active, &well, WaitsFor::Interval, Some(500)),
            (put_off, Mode::Active, Active, &well, WaitsFor::Reading, Some(500)),
            (row(), Mode::Passive, Active, &well, WaitsFor::Demand, None),
            (demanded, Mode::Passive, Active, &well, WaitsFor::Turn, Some(200)),
            (claimed.clone(), Mode::Passive, Active, &well, WaitsFor::Puller, Some(300)),
            (claimed, Mode::Active, Active, &well, WaitsFor::Puller, Some(300)),
        ];
        for (row, mode, status, client, expected, next) in table {
            let told =
                DocumentDelivery::of(&row, Some(&subscription(mode, status)), client, at(200));
            assert_eq!(told.waits_for, Some(expected));
            assert_eq!(told.next_attempt_at, next.map(at), "{expected:?}");
            let failed = expected == WaitsFor::Retry;
            assert_eq!(told.last_error.is_some(), failed, "{expected:?}");
        }
    }

    #[test]
    fn what_is_settled_waits_for_nothing() {
        let mut row = row();
        row.settled = Some(row.wanted);
        let active = subscription(Mode::Active, SubscriptionStatus::Active);
        let told = DocumentDelivery::of(&row, Some(&active), &ClientCondition::default(), at(200));
        assert_eq!((told.pending, told.waits_for, told.next_attempt_at), (false, None, None));
    }
}
