//! What documents are pulled from: the list, and the form of a new one or of one that is changed.

use askama::Template;
use flare_core::model::{Consumer, ConsumerId, Generation, Invalid};
use flare_http::{Problem, consumer_from_json, consumer_to_json};

use crate::ask::{Ask, Named, page, page_with, see};
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::{Answer, Refusal};
use crate::show::{Now, State};

#[derive(Template)]
#[template(path = "pages/consumers.html")]
struct Consumers {
    frame: Frame,
    now: Now,
    consumers: Vec<Consumer>,
    unreadable: Vec<String>,
    part: Part,
    api: String,
}

/// The list, oldest first.
pub(crate) async fn list(ask: Ask) -> Answer {
    let part = Part::asked(&ask.query, &[]);
    let listing = ask.flare().consumers(part.page()).await?;
    page(&Consumers {
        now: ask.now(),
        api: ask.api(),
        frame: ask.frame,
        consumers: listing.items,
        unreadable: listing.unreadable.iter().map(ToString::to_string).collect(),
        part: part.of(listing.total),
    })
}

/// Whether it is to pull.
pub(crate) fn state(consumer: &Consumer) -> State {
    match consumer.status {
        flare_core::model::ConsumerStatus::Active => State::good("active"),
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
