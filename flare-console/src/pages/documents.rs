//! Finds a document by its URL: what it is, and who has which version of it, and why not yet. Puts and deletes one by hand.

use askama::Template;
use flare_core::model::{Document, DocumentDelivery, Resource, ResourceId, Version, WaitsFor};
use flare_core::{ErrorKind, Flare};
use flare_http::Problem;

use super::confirm::{Confirm, Input};
use crate::ask::{Ask, page, page_with, see};
use crate::behind;
use crate::fields::query;
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::{Answer, Refusal};
use crate::show::{Now, State};

/// So much of a document is shown.
const SHOWN_BYTES: usize = 256 << 10;

#[derive(Template)]
#[template(path = "pages/documents.html")]
struct Documents {
    frame: Frame,
    now: Now,
    url: String,
    problem: Option<Problem>,
    found: Option<Found>,
    /// Whether a resource takes it, though it is not there.
    absent: bool,
    deliveries: Vec<DeliveryLine>,
    part: Part,
    api: String,
}

struct Found {
    document: Document,
    resource: Resource,
    revision: String,
    content: String,
    cut: bool,
}

/// What one client has of it.
struct DeliveryLine {
    delivery: DocumentDelivery,
    name: String,
    has: String,
    wanted: String,
    state: State,
    why: &'static str,
}

/// Asks for a URL, and shows the document there.
pub(crate) async fn show(ask: Ask) -> Answer {
    let url = ask.query.text("url").to_owned();
    let part = Part::asked(&ask.query, &["url"]);
    let mut shown = Documents {
        now: ask.now(),
        api: ask.api(),
        url: url.clone(),
        problem: None,
        found: None,
        absent: false,
        deliveries: Vec::new(),
        part: part.clone(),
        frame: ask.frame.clone(),
    };
    if url.is_empty() {
        return page(&shown);
    }
    let flare = ask.flare();
    match flare.document(&url).await {
        Ok(document) => shown.found = Some(found(flare, document).await?),
        Err(error) => match Refusal::from(error.clone()) {
            // It may have been there: then clients were told of it.
            _ if error.kind() == ErrorKind::NotFound => shown.absent = true,
            refusal if refusal.is_theirs() => {
                let status = refusal.0.status();
                shown.problem = Some(refusal.0);
                return page_with(status, &shown);
            }
            refusal => return Err(refusal),
        },
    }
    match flare.deliveries(&url, part.page()).await {
        Ok(listing) => {
            shown.part = part.of(listing.total);
            shown.deliveries = lines(flare, listing.items).await?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let refusal = Refusal::from(error);
            shown.absent = false;
            let status = refusal.0.status();
            shown.problem = Some(refusal.0);
            return page_with(status, &shown);
        }
        Err(error) => return Err(error.into()),
    }
    page(&shown)
}

async fn found(flare: &Flare, document: Document) -> Result<Found, Refusal> {
    let resource = flare.resource(document.key.resource).await?;
    let bytes = document.content.as_ref().map_or(&b""[..], |content| content.as_bytes());
    let content = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned();
    let revision = resource.change.shown(document.version.revision()).to_string();
    Ok(Found { revision, content, cut: bytes.len() > SHOWN_BYTES, resource, document })
}

async fn lines(
    flare: &Flare,
    deliveries: Vec<DocumentDelivery>,
) -> Result<Vec<DeliveryLine>, Refusal> {
    let mut lines = Vec::with_capacity(deliveries.len());
    let mut rules: Vec<(ResourceId, Option<Resource>)> = Vec::new();
    for delivery in deliveries {
        let id = delivery.resource;
        if !rules.iter().any(|(known, _)| *known == id) {
            rules.push((id, flare.resource(id).await.ok()));
        }
        let rule = rules.iter().find(|(known, _)| *known == id).and_then(|(_, it)| it.as_ref());
        let shown = |version: Version| {
            let revision = match rule {
                Some(resource) => resource.change.shown(version.revision()).to_string(),
                None => version.revision().get().to_string(),
            };
            if version.is_gone() { format!("deleted at {revision}") } else { revision }
        };
        // One whose subscription is gone, or cannot be read, is known by its id alone.
        let name = flare.subscription(delivery.subscription).await.map(|it| behind::name(&it));
        let (state, why) = why(&delivery);
        lines.push(DeliveryLine {
            name: name.unwrap_or_else(|_| delivery.subscription.to_string()),
            has: delivery.settled.map_or_else(|| "none".to_owned(), shown),
            wanted: shown(delivery.wanted),
            state,
            why,
            delivery,
        });
    }
    Ok(lines)
}

/// Whether a client has it, and what the rest waits for.
fn why(delivery: &DocumentDelivery) -> (State, &'static str) {
    let given_up = !delivery.pending && delivery.settled < Some(delivery.wanted);
    match delivery.waits_for {
        _ if given_up => (State::bad("given up"), "It is among the dead letters: replay it."),
        None if delivery.filtered => (
            State::plain("filtered"),
            "The subscription's filter says that the client should not have it.",
        ),
        None => (State::good("has it"), ""),
        Some(WaitsFor::Turn) => (State::plain("due"), "It is due: its turn comes at once."),
        Some(WaitsFor::Retry) => (State::fair("retry"), "An attempt failed; it is tried again."),
        Some(WaitsFor::Interval) => {
            (State::plain("rests"), "The client wants to hear of one document only so often.")
        }
        Some(WaitsFor::Hold) => {
            (State::fair("held"), "The client asked to be left alone until then.")
        }
        Some(WaitsFor::Probe) => {
            (State::bad("client down"), "The client is taken for down, and probed now and then.")
        }
        Some(WaitsFor::Resume) => (State::fair("paused"), "The subscription is paused: resume it."),
        Some(WaitsFor::Mending) => (
            State::bad("suspended"),
            "The subscription is suspended: mend the client and resume it.",
        ),
        Some(WaitsFor::Demand) => {
            (State::plain("waits"), "The client has to pull it or ask for it.")
        }
        Some(WaitsFor::Puller) => {
            (State::plain("handed out"), "A puller has it and has not settled it.")
        }
        Some(WaitsFor::Reading) => (
            State::bad("cannot be read"),
            "The document could not be read, or the filter not be asked about it; it is tried again.",
        ),
        Some(_) => (State::plain("waits"), ""),
    }
}

#[derive(Template)]
#[template(path = "pages/document_form.html")]
struct DocumentForm {
    frame: Frame,
    url: String,
    content: String,
    problem: Option<Problem>,
}

/// Asks for a new version of a document.
pub(crate) async fn form(ask: Ask) -> Answer {
    let url = ask.query.text("url").to_owned();
    let content = match ask.flare().document(&url).await {
        Ok(document) => {
            document.content.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned())
        }
        Err(_) => None,
    };
    page(&DocumentForm {
        frame: ask.frame,
        url,
        content: content.unwrap_or_default(),
        problem: None,
    })
}

/// Stores it.
pub(crate) async fn put(ask: Ask) -> Answer {
    let (url, content) = (ask.form.text("url").to_owned(), ask.form.text("content").to_owned());
    match ask.flare().put_json(&url, content.clone()).await.map_err(Refusal::from) {
        Ok(change) => {
            let done = format!("put-{}", change.as_str());
            Ok(see(format!(
                "../documents{}",
                query([("url", url.as_str()), ("done", done.as_str())])
            )))
        }
        Err(refusal) if refusal.0.status().is_client_error() => {
            let (status, problem) = (refusal.0.status(), Some(refusal.0));
            page_with(status, &DocumentForm { frame: ask.frame, url, content, problem })
        }
        Err(refusal) => Err(refusal),
    }
}

/// Asks before a document is deleted.
pub(crate) async fn confirm_delete(ask: Ask) -> Answer {
    let url = ask.query.text("url").to_owned();
    let document = ask.flare().document(&url).await?;
    let resource = ask.flare().resource(document.key.resource).await?;
    let back = format!("../documents{}", query([("url", url.as_str())]));
    let mut asked = Confirm::new(ask.frame, "Delete this document?", url, "Delete the document", back)
        .effect("Every client that holds it is told that it is gone, and that version of it stays deleted: only a \
                 newer revision brings it back.")
        .destroying();
    asked.input = Some(Input {
        name: "revision",
        label: "As of revision",
        hint: "Empty: as of the newest one stored.",
        value: resource.change.shown(document.version.revision()).to_string(),
        choices: Vec::new(),
    });
    page(&asked)
}

/// Deletes it.
pub(crate) async fn delete(ask: Ask) -> Answer {
    let url = ask.query.text("url");
    let change = ask.flare().delete_traced(url, ask.form.given("revision"), None).await?;
    let done = format!("put-{}", change.as_str());
    Ok(see(format!("../documents{}", query([("url", url), ("done", done.as_str())]))))
}
