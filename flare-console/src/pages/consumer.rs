//! One consumer: how it stands, what it counted, the messages that became no document; and what can be done with it.

use askama::Template;
use axum::http::Method;
use flare_core::model::{
    Consumer, ConsumerId, ConsumerState, ConsumerStatus, Reject, RejectId, Resource, Timestamp,
};
use flare_http::consumer_to_json;

use super::confirm::Confirm;
use super::consumers::{behind, state};
use crate::access::needs;
use crate::ask::{Ask, Named, NamedStep, page, see};
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::{Answer, Refusal};
use crate::show::{Now, State};

#[derive(Template)]
#[template(path = "pages/consumer.html")]
struct ConsumerPage {
    frame: Frame,
    now: Now,
    consumer: Consumer,
    state: State,
    its: ConsumerState,
    behind: Option<String>,
    last_message_at: Option<Timestamp>,
    last_error_at: Option<Timestamp>,
    node: Option<String>,
    resource: Option<Resource>,
    settings: String,
    rejects: Vec<Reject>,
    part: Part,
}

/// The page of one.
pub(crate) async fn show(id: Named, ask: Ask) -> Answer {
    let id: ConsumerId = id.id("consumer")?;
    let flare = ask.flare();
    let consumer = flare.consumer(id).await?;
    let report = flare.consumer_status(id).await?;
    let part = Part::asked(&ask.query, &[]);
    let rejects = flare.rejects(id, part.page()).await?;
    let its = report.state;
    page(&ConsumerPage {
        now: ask.now(),
        state: state(&consumer),
        behind: behind(&its),
        last_message_at: its.last_message_at.map(Timestamp::from_unix_nanos),
        last_error_at: its.last_error_at.map(Timestamp::from_unix_nanos),
        node: report.node.map(|node| node.to_string()),
        // What cannot be read of it is said where it is.
        resource: flare.resource(consumer.resource).await.ok(),
        settings: consumer_to_json(consumer.clone())?,
        rejects: rejects.items,
        part: part.of(rejects.total),
        frame: ask.frame,
        consumer,
        its,
    })
}

/// Something that can be done with a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Pause,
    Resume,
    Retry,
    Delete,
}

impl Step {
    /// Deleting may need more than the rest.
    fn insist(self, ask: &Ask) -> Result<(), Refusal> {
        match self {
            Self::Delete => ask.insist(needs(&Method::DELETE, "/consumers/c")),
            _ => Ok(()),
        }
    }
}

fn step(named: &NamedStep) -> Result<(ConsumerId, Step), Refusal> {
    let step = match named.step.as_str() {
        "pause" => Step::Pause,
        "resume" => Step::Resume,
        "retry-rejects" => Step::Retry,
        "delete" => Step::Delete,
        other => return Err(Refusal::not_found("page", other)),
    };
    Ok((named.id("consumer")?, step))
}

fn rejects(ids: impl Iterator<Item = impl AsRef<str>>) -> Result<Vec<RejectId>, Refusal> {
    let id = |text: &str| text.parse().map_err(|_| Refusal::not_found("reject", text));
    ids.map(|text| id(text.as_ref())).collect()
}

/// Asks before something is done.
pub(crate) async fn confirm(named: NamedStep, ask: Ask) -> Answer {
    let (id, step) = step(&named)?;
    step.insist(&ask)?;
    let (subject, status) = match ask.flare().consumer(id).await {
        Ok(consumer) => {
            let source = format!("{} {}", consumer.source.kind(), consumer.source.values());
            (source, Some(consumer.status))
        }
        // One that cannot be read can only be deleted.
        Err(error) if error.unreadable().is_some() && step == Step::Delete => {
            (id.to_string(), None)
        }
        Err(error) => return Err(error.into()),
    };
    let chosen = rejects(ask.query.all("reject"))?;
    let none_chosen = chosen.is_empty() && ask.query.ticked("chosen");
    let back = format!("../{id}");
    let asked = |title, button| Confirm::new(ask.frame.clone(), title, subject, button, back);
    let mut asked = match step {
        Step::Pause => asked("Pause this consumer?", "Pause")
            .effect("Within a second nothing more is received; the broker keeps what it has. What was received is stored.")
            .unless((status == Some(ConsumerStatus::Paused)).then(|| "It is paused already.".to_owned())),
        Step::Resume => asked("Resume this consumer?", "Resume")
            .effect("It goes on pulling where it was paused.")
            .unless((status == Some(ConsumerStatus::Active)).then(|| "It is active.".to_owned())),
        Step::Retry => {
            let asked = asked("Try rejects again?", "Try again");
            let words = match chosen.len() {
                0 => "All messages that are listed are tried by the mapping as it is now.".to_owned(),
                chosen => format!("{} tried by the mapping as it is now.", if chosen == 1 { "1 message is".to_owned() } else { format!("{chosen} messages are") }),
            };
            asked
                .effect(words)
                .effect("What becomes a document is listed no more.")
                .unless(none_chosen.then(|| "None is chosen: go back and tick some.".to_owned()))
        }
        Step::Delete => asked("Delete this consumer?", "Delete the consumer")
            .effect("Nothing is pulled any more; the broker keeps what it has.")
            .effect("Its rejects, and how far it has come, are forgotten. There is no way back.")
            .destroying(),
    };
    asked.hidden = chosen.into_iter().map(|reject| ("reject", reject.to_string())).collect();
    page(&asked)
}

/// Does it.
pub(crate) async fn take(named: NamedStep, ask: Ask) -> Answer {
    let (id, step) = step(&named)?;
    step.insist(&ask)?;
    let flare = ask.flare();
    let done = match step {
        Step::Pause => flare.pause_consumer(id).await.map(|_| "paused")?,
        Step::Resume => flare.resume_consumer(id).await.map(|_| "resumed")?,
        Step::Retry => {
            let chosen = rejects(ask.form.all("reject"))?;
            match chosen.is_empty() {
                true => flare.retry_all_rejects(id).await.map(|_| "rejects")?,
                false => flare.retry_rejects(id, chosen).await.map(|_| "rejects")?,
            }
        }
        Step::Delete => {
            flare.delete_consumer(id).await?;
            return Ok(see("../../consumers?done=deleted"));
        }
    };
    Ok(see(format!("../{id}?done={done}")))
}
