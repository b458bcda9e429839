//! One subscription: how its client is doing and why, what is wrong, its settings, and what can be done.

use std::time::Duration;

use askama::Template;
use flare_core::model::subscription::Mode;
use flare_core::model::{
    BackfillProgress, Resource, Subscription, SubscriptionId, SubscriptionReport,
    SubscriptionStatus, TimeFigures,
};
use flare_http::subscription_to_json;

use super::subscription_steps::Step;
use crate::ask::{Ask, Named, page};
use crate::behind::{name, state};
use crate::frame::Frame;
use crate::plot::Plot;
use crate::refusal::Answer;
use crate::show::{Now, State, took};

#[derive(Template)]
#[template(path = "pages/subscription.html")]
struct SubscriptionPage {
    frame: Frame,
    now: Now,
    name: String,
    subscription: Subscription,
    resource: Option<Resource>,
    report: SubscriptionReport,
    state: State,
    /// What the state means, in a sentence.
    meaning: String,
    settings: String,
    steps: Vec<Step>,
    /// The last error, if nothing went well since.
    error: Option<String>,
    times: Vec<TimesLine>,
    plot: Option<Plot>,
    progress: Vec<(&'static str, Step, BackfillProgress)>,
}

#[derive(Template)]
#[template(path = "pages/subscription_unreadable.html")]
struct Unreadable {
    frame: Frame,
    id: SubscriptionId,
    why: String,
    lag: u64,
}

/// The page of one.
pub(crate) async fn show(id: Named, ask: Ask) -> Answer {
    let id: SubscriptionId = id.id("subscription")?;
    let flare = ask.flare();
    let subscription = match flare.subscription(id).await {
        Ok(subscription) => subscription,
        Err(error) => {
            let Some(why) = error.unreadable().map(ToString::to_string) else {
                return Err(error.into());
            };
            let lag = flare.subscription_status(id).await?.lag;
            return page(&Unreadable { frame: ask.frame, id, why, lag });
        }
    };
    let report = flare.subscription_status(id).await?;
    // What cannot be read of it is said where it is.
    let resource = flare.resource(subscription.resource).await.ok();
    let error = report.last_error.clone().filter(|_| report.last_error_at > report.last_success_at);
    let backfill = report.backfill.map(|it| ("Backfill", Step::CancelBackfill, it));
    let resync = report.resync.map(|it| ("Resync", Step::CancelResync, it));
    page(&SubscriptionPage {
        now: ask.now(),
        name: name(&subscription),
        state: state(report.status, report.probing, report.consecutive_failures),
        meaning: meaning(&subscription, &report),
        settings: subscription_to_json(subscription.clone())?,
        steps: Step::offered(flare, &subscription, &report),
        times: times(&report),
        plot: Plot::of(&report.recent),
        progress: backfill.into_iter().chain(resync).collect(),
        frame: ask.frame,
        resource,
        error,
        subscription,
        report,
    })
}

/// How long something took, in short.
struct TimesLine {
    name: &'static str,
    median: String,
    tail: String,
}

/// What was measured lately.
fn times(report: &SubscriptionReport) -> Vec<TimesLine> {
    let times = &report.times;
    let parts = [
        ("From the store to the client", times.latency),
        ("Whole requests", times.attempts),
        ("Looking the name up", times.dns),
        ("Connecting", times.connect),
        ("Securing that by TLS", times.tls),
        ("To the first byte", times.first_byte),
    ];
    let measured = parts.into_iter().filter(|(_, figures)| figures.count > 0);
    let line = |(name, figures): (_, TimeFigures)| TimesLine {
        name,
        median: took(figures.p50),
        tail: took(figures.p99),
    };
    measured.map(line).collect()
}

/// What that means for its client.
fn meaning(subscription: &Subscription, report: &SubscriptionReport) -> String {
    let reason = report.reason.as_deref().unwrap_or("the client did not answer as it should");
    match report.status {
        SubscriptionStatus::Suspended => {
            format!("Nothing is sent: {reason}. Changes are held until somebody resumes it.")
        }
        SubscriptionStatus::Paused => "Nothing is sent until somebody resumes it. Changes are held.".to_owned(),
        SubscriptionStatus::Preparing => "It is on its way into its partition.".to_owned(),
        _ if subscription.spec.mode() == Mode::Passive => {
            "Changes wait until the client pulls them or asks for them.".to_owned()
        }
        _ if report.probing => {
            "The client is taken for down: it is sent one request now and then, until it answers one.".to_owned()
        }
        _ if report.lag == 0 && report.dead_letters > 0 => {
            "Nothing waits; what was given up is among the dead letters.".to_owned()
        }
        _ if report.lag == 0 => "The client has the newest version of every document.".to_owned(),
        _ if report.oldest_pending > Duration::from_secs(5) => {
            "The client is behind: what is pending is sent as fast as it takes it.".to_owned()
        }
        _ => "Changes are being sent.".to_owned(),
    }
}
