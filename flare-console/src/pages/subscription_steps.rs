//! What can be done with a subscription: each a step that is asked before and then done.

use flare_core::model::subscription::Mode;
use flare_core::model::{
    DeadLetterId, Subscription, SubscriptionId, SubscriptionReport, SubscriptionStatus,
};
use flare_core::{Error, Flare};

use super::confirm::{Confirm, Input};
use crate::ask::{Ask, NamedStep, page, see};
use crate::behind::name;
use crate::fields::Fields;
use crate::refusal::{Answer, Refusal};
use crate::show::{count, many};

/// Something that can be done with a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Pause,
    Resume,
    Retry,
    Demand,
    Backfill,
    CancelBackfill,
    Resync,
    CancelResync,
    Replay,
    Pin,
    Unpin,
    Delete,
}

impl Step {
    const ALL: [Self; 12] = [
        Self::Pause,
        Self::Resume,
        Self::Retry,
        Self::Demand,
        Self::Backfill,
        Self::CancelBackfill,
        Self::Resync,
        Self::CancelResync,
        Self::Replay,
        Self::Pin,
        Self::Unpin,
        Self::Delete,
    ];

    /// Where it is asked for, below the subscription.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Demand => "demand",
            Self::Backfill => "backfill",
            Self::CancelBackfill => "cancel-backfill",
            Self::Resync => "resync",
            Self::CancelResync => "cancel-resync",
            Self::Replay => "replay",
            Self::Pin => "pin",
            Self::Unpin => "unpin",
            Self::Delete => "delete",
        }
    }

    /// What its button says.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pause => "Pause",
            Self::Resume => "Resume",
            Self::Retry => "Retry now",
            Self::Demand => "Send what waits",
            Self::Backfill => "Backfill",
            Self::CancelBackfill => "Cancel the backfill",
            Self::Resync => "Resync",
            Self::CancelResync => "Cancel the resync",
            Self::Replay => "Replay",
            Self::Pin => "Pin",
            Self::Unpin => "Unpin",
            Self::Delete => "Delete",
        }
    }

    pub(crate) fn destroys(&self) -> bool {
        *self == Self::Delete
    }

    /// The word that the page after it is told by.
    const fn done(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Retry => "retried",
            Self::Demand => "demanded",
            Self::Backfill => "backfill",
            Self::Resync => "resync",
            Self::CancelBackfill | Self::CancelResync => "cancelled",
            Self::Replay => "replayed",
            Self::Pin => "pinned",
            Self::Unpin => "unpinned",
            Self::Delete => "deleted",
        }
    }

    /// Those that make sense now.
    pub(crate) fn offered(
        flare: &Flare,
        subscription: &Subscription,
        report: &SubscriptionReport,
    ) -> Vec<Self> {
        let makes_sense = |step: &Self| {
            let waits = report.lag > 0 && (report.probing || report.consecutive_failures > 0);
            let cancels = matches!(step, Self::CancelBackfill | Self::CancelResync | Self::Replay);
            let retries = *step == Self::Retry;
            let possible = step.impossible(subscription, report).is_none();
            possible && !cancels && (!retries || waits) && step.unfit(flare).is_none()
        };
        Self::ALL.into_iter().filter(makes_sense).collect()
    }

    /// Why it cannot be done with this one in this cluster.
    fn unfit(self, flare: &Flare) -> Option<String> {
        let cluster = flare.member().view();
        let planned = cluster.plan.as_ref().map_or(0, |plan| plan.slots.len() as u64);
        let reserved = planned > u64::from(flare.node().slots);
        (self == Self::Pin && !reserved).then(|| {
            "No slots are reserved for single subscriptions: the setting pinned-slots says how many.".to_owned()
        })
    }

    /// Why it cannot be done with this one now.
    fn impossible(
        self,
        subscription: &Subscription,
        report: &SubscriptionReport,
    ) -> Option<String> {
        let status = subscription.status;
        let held = matches!(status, SubscriptionStatus::Paused | SubscriptionStatus::Suspended);
        let runs = |progress: Option<flare_core::model::BackfillProgress>| {
            progress.is_some_and(|progress| !progress.done)
        };
        let passive = subscription.spec.mode() == Mode::Passive;
        let refused = match self {
            Self::Pause if status == SubscriptionStatus::Paused => "It is paused already.",
            Self::Resume if !held => return Some(format!("It is {status}: nothing is held.")),
            Self::Retry | Self::Demand if held => {
                return Some(format!("It is {status}: resume it instead."));
            }
            Self::Retry if passive => "Its client asks for what waits by itself.",
            Self::Demand if !passive => {
                "Its changes are sent by themselves: nothing waits for demand."
            }
            Self::Demand if !subscription.spec.endpoint().is_reachable() => {
                "It has no URL to send to: its client pulls what waits."
            }
            Self::Backfill if runs(report.backfill) => "A backfill is under way.",
            Self::CancelBackfill if !runs(report.backfill) => "No backfill is under way.",
            Self::Resync if runs(report.resync) => "A resync is under way.",
            Self::CancelResync if !runs(report.resync) => "No resync is under way.",
            Self::Replay if report.dead_letters == 0 => "It has no dead letters.",
            Self::Pin if subscription.slot.is_some() => "It has a slot of its own.",
            Self::Unpin if subscription.slot.is_none() => "It has no slot of its own.",
            _ => return None,
        };
        Some(refused.to_owned())
    }

    /// What will happen, in sentences.
    fn effects(self, report: &SubscriptionReport, letters: usize) -> Vec<String> {
        let waiting = count(report.lag);
        let effects: &[&str] = match self {
            Self::Pause => &[
                "Nothing is sent from then on; what is in flight finishes. Changes are held, the newest \
                 version of each document only, and nothing is lost.",
            ],
            Self::Resume => {
                return vec![format!(
                    "What was held is due at once: {waiting} documents, the newest version of each."
                )];
            }
            Self::Retry => &[
                "What waits for a later attempt is due at once, and a client that was taken for down is tried.",
                "What the client asked for itself by Retry-After is kept to.",
            ],
            Self::Demand => {
                return vec![format!(
                    "Up to that many of the {waiting} changes that wait are sent to its URL."
                )];
            }
            Self::Backfill => &[
                "Every document that is there and that the client does not hold is delivered, as create.",
                "A bounded number waits at a time, so that live changes pass in between. Dead letters stay for replay.",
            ],
            Self::CancelBackfill | Self::CancelResync => {
                &["It ends where it is. What it has made pending is delivered all the same."]
            }
            Self::Resync => &[
                "Every document that is there is told again as create, whatever the client was told before: \
                 for one that lost its data.",
                "With a prefix only documents whose URL begins so.",
            ],
            Self::Replay if letters > 0 => {
                return vec![format!(
                    "{} tried again now, with the newest version of the document, and no longer listed.",
                    if letters == 1 {
                        "1 notification is".to_owned()
                    } else {
                        format!("{letters} notifications are")
                    }
                )];
            }
            Self::Replay => {
                return vec![format!(
                    "All that are listed, {}, are tried again now with the newest versions of their documents.",
                    many(report.dead_letters, "notification")
                )];
            }
            Self::Pin => &[
                "Its lanes move to a slot that no other subscription shares: they finish what is in flight, then \
                 start there. Nothing is lost or sent twice by that.",
            ],
            Self::Unpin => {
                &["Its lanes move back to the slot they are hashed onto, and share it with others."]
            }
            Self::Delete => {
                return vec![
                    "Nothing new is sent to the client, and its URL is free for another subscription.".to_owned(),
                    format!("{waiting} changes that wait for it, and its dead letters, are removed. There is no way back."),
                ];
            }
        };
        effects.iter().map(ToString::to_string).collect()
    }

    fn input(self, form: &Fields) -> Option<Input> {
        let (name, label, hint, value) = match self {
            Self::Resync => {
                let hint = "Empty for all documents.";
                ("prefix", "Only URLs that begin with", hint, form.text("prefix"))
            }
            Self::Demand => ("quantity", "How many at most", "Of what waits now.", "100"),
            _ => return None,
        };
        Some(Input { name, label, hint, value: value.to_owned(), choices: Vec::new() })
    }

    async fn take(self, flare: &Flare, id: SubscriptionId, form: &Fields) -> Result<(), Refusal> {
        match self {
            Self::Pause => flare.pause(id).await.map(drop)?,
            Self::Resume => flare.resume(id).await.map(drop)?,
            Self::Retry => flare.retry_now(id).await.map(drop)?,
            Self::Backfill => flare.backfill(id).await?,
            Self::CancelBackfill => flare.cancel_backfill(id).await.map(drop)?,
            Self::Resync => flare.resync(id, form.given("prefix")).await?,
            Self::CancelResync => flare.cancel_resync(id).await.map(drop)?,
            Self::Pin => flare.pin(id).await.map(drop)?,
            Self::Unpin => flare.unpin(id).await?,
            Self::Delete => flare.delete_subscription(id).await?,
            Self::Demand => {
                let quantity = form.text("quantity").parse();
                let wrong =
                    |_| flare_core::model::Invalid::new("quantity", "must be a whole number");
                flare.demand(id, quantity.map_err(wrong)?).await.map(drop)?;
            }
            Self::Replay => match letters(form)? {
                letters if letters.is_empty() => flare.replay_all(id).await.map(drop)?,
                letters => flare.replay(id, letters).await.map(drop)?,
            },
        }
        Ok(())
    }
}

/// The dead letters that were chosen.
fn letters(fields: &Fields) -> Result<Vec<DeadLetterId>, Refusal> {
    let id = |text: &str| text.parse().map_err(|_| Refusal::not_found("dead letter", text));
    fields.all("letter").map(id).collect()
}

fn step(named: &NamedStep) -> Result<(SubscriptionId, Step), Refusal> {
    let step = Step::ALL.into_iter().find(|step| step.path() == named.step);
    let step = step.ok_or_else(|| Refusal::not_found("page", &named.step))?;
    Ok((named.id("subscription")?, step))
}

/// Asks before something is done.
pub(crate) async fn confirm(named: NamedStep, ask: Ask) -> Answer {
    let (id, step) = step(&named)?;
    let flare = ask.flare();
    let letters = letters(&ask.query)?;
    let report = flare.subscription_status(id).await?;
    let none_chosen = letters.is_empty() && ask.query.ticked("chosen");
    let (name, impossible) = match flare.subscription(id).await {
        Ok(subscription) if none_chosen => {
            (name(&subscription), Some("None is chosen: go back and tick some.".to_owned()))
        }
        Ok(subscription) => {
            let impossible = step.impossible(&subscription, &report);
            (name(&subscription), impossible.or_else(|| step.unfit(flare)))
        }
        Err(error) => unreadable(id, step, error)?,
    };
    let title = match step {
        Step::Replay if letters.is_empty() => "Replay all dead letters?".to_owned(),
        Step::Replay => "Replay these dead letters?".to_owned(),
        Step::Delete => "Delete this subscription?".to_owned(),
        Step::Demand => "Send what waits?".to_owned(),
        Step::Retry => "Retry this client now?".to_owned(),
        Step::CancelBackfill => "Cancel the backfill?".to_owned(),
        Step::CancelResync => "Cancel the resync?".to_owned(),
        step => format!("{} this subscription?", step.name()),
    };
    let button = if step.destroys() { "Delete the subscription" } else { step.name() };
    let mut asked =
        Confirm::new(ask.frame, title, name, button, format!("../{id}")).unless(impossible);
    asked.effects = step.effects(&report, letters.len());
    asked.destroys = step.destroys();
    asked.hidden = letters.into_iter().map(|letter| ("letter", letter.to_string())).collect();
    asked.input = step.input(&ask.query);
    page(&asked)
}

/// One that cannot be read can only be deleted.
fn unreadable(
    id: SubscriptionId,
    step: Step,
    error: Error,
) -> Result<(String, Option<String>), Refusal> {
    match error.unreadable() {
        Some(_) if step == Step::Delete => Ok((id.to_string(), None)),
        Some(why) => Ok((id.to_string(), Some(format!("{why}.")))),
        None => Err(error.into()),
    }
}

/// Does it.
pub(crate) async fn take(named: NamedStep, ask: Ask) -> Answer {
    let (id, step) = step(&named)?;
    step.take(ask.flare(), id, &ask.form).await?;
    let done = step.done();
    Ok(see(match step {
        Step::Delete => format!("../../subscriptions?done={done}"),
        Step::Replay => format!("../{id}/dead-letters?done={done}"),
        _ => format!("../{id}?done={done}"),
    }))
}
