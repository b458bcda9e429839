//! What documents are pulled from: the list, and the form of a new one or of one that is changed.

use std::time::Duration;

use askama::Template;
use flare_core::ConsumerReport;
use flare_core::cluster::ClusterView;
use flare_core::model::{
    Consumer, ConsumerId, ConsumerState, ConsumerStatus, Generation, Invalid, Timestamp,
};
use flare_http::{Problem, consumer_from_json, consumer_to_json};

use crate::ask::{Ask, Named, page, page_with, see};
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::{Answer, Refusal};
use crate::show::{Now, State, count, many, rate, span};

#[derive(Template)]
#[template(path = "pages/consumers.html")]
struct Consumers {
    frame: Frame,
    now: Now,
    lines: Vec<Line>,
    unreadable: Vec<String>,
    part: Part,
    api: String,
}

/// How one of many consumers is doing.
struct Line {
    consumer: Consumer,
    state: State,
    /// How much waits for it, if its broker says so.
    behind: Option<String>,
    received: String,
    rejected: String,
    error: Option<String>,
    error_at: Option<Timestamp>,
    node: Option<String>,
}

impl Line {
    fn new(consumer: Consumer, report: ConsumerReport, cluster: &ClusterView) -> Self {
        let its = report.state;
        let is_active = consumer.status == ConsumerStatus::Active;
        let fails = is_active && its.last_error.is_some();
        // Nodes of other versions may not say what they are called.
        let name = |id| {
            let node = cluster.nodes.iter().find(|node| node.id == id);
            let record = node.and_then(|node| node.record.as_ref());
            record.map_or_else(|| id.to_string(), |record| record.name.clone())
        };
        Self {
            state: if fails { State::fair("failing") } else { state(&consumer) },
            behind: behind(&its),
            received: rate(its.rates.received.minute),
            rejected: count(its.rejected),
            error: its.last_error,
            error_at: its.last_error_at.map(Timestamp::from_unix_nanos),
            // One that is paused is worked by none.
            node: report.node.filter(|_| is_active).map(name),
            consumer,
        }
    }
}

/// How much waits for a consumer, if its broker says so: messages, or for how long.
pub(crate) fn behind(state: &ConsumerState) -> Option<String> {
    let millis = state.behind_millis.map(Duration::from_millis);
    state.depth.map(|depth| many(depth, "message")).or(millis.map(span))
}

/// The list, oldest first.
pub(crate) async fn list(ask: Ask) -> Answer {
    let part = Part::asked(&ask.query, &[]);
    let flare = ask.flare();
    let listing = flare.consumers(part.page()).await?;
    let reports = flare.consumer_statuses(&listing.items).await?;
    let cluster = flare.cluster_seen().await;
    let lines = listing.items.into_iter().zip(reports);
    let lines = lines.map(|(consumer, report)| Line::new(consumer, report, &cluster));
    page(&Consumers {
        now: ask.now(),
        api: ask.api(),
        frame: ask.frame,
        lines: lines.collect(),
        unreadable: listing.unreadable.iter().map(ToString::to_string).collect(),
        part: part.of(listing.total),
    })
}

/// Whether it is to pull.
pub(crate) fn state(consumer: &Consumer) -> State {
    match consumer.status {
        ConsumerStatus::Active => State::good("active"),
        _ => State::fair("paused"),
    }
}

#[derive(Template)]
#[template(path = "pages/consumer_form.html")]
struct ConsumerForm {
    frame: Frame,
    title: &'static str,
    json: String,
    generation: Option<u64>,
    problem: Option<Problem>,
    back: String,
}

/// Begins with what is asked most.
fn example(resource: &str) -> String {
    let resource = if resource.is_empty() { "the id of a resource" } else { resource };
    let resource = serde_json::Value::from(resource);
    format!(
        "{{\n  \"resource\": {resource},\n  \"sqs\": {{\"queue\": \"users\"}},\n  \"document\": {{\n    \
         \"url\": \"http://api.example.com/users/{{/id}}\"\n  }},\n  \"onReject\": \"keep\"\n}}"
    )
}

/// Asks for a new one.
pub(crate) async fn new(ask: Ask) -> Answer {
    let json = example(ask.query.text("resource"));
    page(&creation(ask.frame, json, None))
}

fn creation(frame: Frame, json: String, problem: Option<Problem>) -> ConsumerForm {
    let back = "../consumers".to_owned();
    ConsumerForm { frame, title: "New consumer", json, generation: None, problem, back }
}

/// Creates it.
pub(crate) async fn create(ask: Ask) -> Answer {
    let json = ask.form.text("json").to_owned();
    let created = async {
        let (resource, new) = consumer_from_json(json.as_bytes())?;
        let resource = resource.ok_or_else(|| Invalid::new("resource", "is required"))?;
        Ok::<_, Refusal>(ask.flare().create_consumer(resource, new).await?)
    };
    match created.await {
        Ok(created) => Ok(see(format!("../consumers/{}?done=created", created.id))),
        // An unknown resource is a mistake in the form, too.
        Err(refusal) if refusal.0.status().is_client_error() => {
            let status = refusal.0.status();
            page_with(status, &creation(ask.frame, json, Some(refusal.0)))
        }
        Err(refusal) => Err(refusal),
    }
}

/// Asks what one shall be from now on.
pub(crate) async fn edit(id: Named, ask: Ask) -> Answer {
    let current = ask.flare().consumer(id.id("consumer")?).await?;
    let generation = current.generation.get();
    let json = writable(&consumer_to_json(current)?)?;
    page(&edition(ask.frame, &id, json, generation, None))
}

fn edition(
    frame: Frame,
    id: &Named,
    json: String,
    generation: u64,
    problem: Option<Problem>,
) -> ConsumerForm {
    let back = format!("../{}", id.0);
    ConsumerForm {
        frame,
        title: "Edit the consumer",
        json,
        generation: Some(generation),
        problem,
        back,
    }
}

/// What may be written of what is shown.
fn writable(json: &str) -> Result<String, Invalid> {
    let wrong = |error: serde_json::Error| Invalid::new("", error.to_string());
    let mut all: serde_json::Map<_, _> = serde_json::from_str(json).map_err(wrong)?;
    for name in ["id", "generation", "status", "createdAt", "updatedAt"] {
        all.remove(name);
    }
    serde_json::to_string_pretty(&all).map_err(wrong)
}

/// Changes it, unless somebody else did meanwhile.
pub(crate) async fn replace(id: Named, ask: Ask) -> Answer {
    let its: ConsumerId = id.id("consumer")?;
    let json = ask.form.text("json").to_owned();
    let seen: u64 = ask.form.text("generation").parse().unwrap_or_default();
    let replaced = async {
        let current = ask.flare().consumer(its).await?;
        let (resource, new) = consumer_from_json(json.as_bytes())?;
        if resource.is_some_and(|resource| resource != current.resource) {
            let reason = format!("cannot be changed: it is {}", current.resource);
            return Err(Invalid::new("resource", reason).into());
        }
        ask.flare().replace_consumer_at(its, Generation::new(seen), new).await?;
        Ok::<(), Refusal>(())
    };
    match replaced.await {
        Ok(()) => Ok(see(format!("../{its}?done=saved"))),
        Err(refusal) if refusal.is_theirs() => {
            let status = refusal.0.status();
            page_with(status, &edition(ask.frame, &id, json, seen, Some(refusal.0)))
        }
        Err(refusal) => Err(refusal),
    }
}
