//! Long work that is stored, so that it goes on whatever crashes: what it is, how far it has come, when it goes on.

use askama::Template;
use flare_core::JobReport;
use flare_core::model::{JobKind, NodeId, Timestamp};

use crate::ask::{Ask, page};
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::Answer;
use crate::show::{Now, State};

#[derive(Template)]
#[template(path = "pages/jobs.html")]
struct Jobs {
    frame: Frame,
    now: Now,
    lines: Vec<JobLine>,
    unreadable: Vec<String>,
    part: Part,
    api: String,
}

struct JobLine {
    job: JobReport,
    what: &'static str,
    state: State,
    node: Option<NodeId>,
    /// The page of what it works on, if that has one.
    link: Option<String>,
}

impl JobLine {
    fn is_done(&self) -> bool {
        is_done(&self.job)
    }
}

/// The list, oldest first.
pub(crate) async fn list(ask: Ask) -> Answer {
    let part = Part::asked(&ask.query, &[]);
    let listing = ask.flare().jobs(part.page()).await?;
    let now = ask.now();
    page(&Jobs {
        now,
        api: ask.api(),
        frame: ask.frame,
        unreadable: listing.unreadable.iter().map(ToString::to_string).collect(),
        part: part.of(listing.total),
        lines: listing.items.into_iter().map(|job| line(job, now.0)).collect(),
    })
}

fn line(job: JobReport, now: Timestamp) -> JobLine {
    let state = if is_done(&job) {
        State::plain("done")
    } else if job.node.is_some() {
        State::good("at work")
    } else if job.due <= now {
        State::fair("due")
    } else {
        State::plain("later")
    };
    let of_subscription = matches!(job.kind, JobKind::Backfill | JobKind::Resync);
    let link = of_subscription.then(|| format!("subscriptions/{}", job.subject));
    JobLine { what: what(job.kind), state, node: job.node, link, job }
}

/// Whether it is kept only to say so.
fn is_done(job: &JobReport) -> bool {
    job.progress.is_some_and(|progress| progress.done)
}

/// What the work is for.
fn what(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Backfill => "Backfill: tells a client of the documents it does not have",
        JobKind::Resync => "Resync: tells a client of all documents again",
        JobKind::RemoveResource => "Removes the documents of a deleted resource",
        JobKind::RemoveSubscription => "Removes what a deleted subscription left",
        JobKind::Queue => "Makes and removes the queues of lanes",
        JobKind::Expire => "Removes what is past its retention; comes round for ever",
        JobKind::Reconcile => "Announces changes again whose tasks were lost; comes round for ever",
        JobKind::Migrate => "Brings stored data to a newer format",
        _ => "Something that a newer version does",
    }
}
