//! Kinds of documents: the list, and a new one.

use askama::Template;
use flare_core::model::{NewResource, Resource};
use flare_http::Problem;

use crate::ask::{Ask, page, page_with, see};
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::{Answer, Refusal};
use crate::show::Now;

#[derive(Template)]
#[template(path = "pages/resources.html")]
struct Resources {
    frame: Frame,
    now: Now,
    resources: Vec<Resource>,
    unreadable: Vec<String>,
    part: Part,
    api: String,
}

/// The list, oldest first.
pub(crate) async fn list(ask: Ask) -> Answer {
    let part = Part::asked(&ask.query, &[]);
    let listing = ask.flare().resources(part.page()).await?;
    page(&Resources {
        now: ask.now(),
        api: ask.api(),
        frame: ask.frame,
        resources: listing.items,
        unreadable: listing.unreadable.iter().map(ToString::to_string).collect(),
        part: part.of(listing.total),
    })
}

#[derive(Template)]
#[template(path = "pages/resource_form.html")]
struct ResourceForm {
    frame: Frame,
    endpoint: String,
    field: String,
    format: String,
    problem: Option<Problem>,
}

/// Asks what a new one shall be.
pub(crate) async fn form(ask: Ask) -> Answer {
    let (endpoint, field, format) = (String::new(), String::new(), String::new());
    page(&ResourceForm { frame: ask.frame, endpoint, field, format, problem: None })
}

/// Creates it.
pub(crate) async fn create(ask: Ask) -> Answer {
    let text = |name| ask.form.text(name).to_owned();
    let (endpoint, field, format) = (text("endpoint"), text("field"), text("format"));
    let new = match format.as_str() {
        "" => NewResource::new(&endpoint).change_field(&field),
        format => NewResource::new(&endpoint).change(&field, format),
    };
    match ask.flare().create_resource(new).await.map_err(Refusal::from) {
        Ok(created) => Ok(see(format!("../resources/{}?done=created", created.id))),
        Err(refusal) if refusal.is_theirs() => {
            let (status, problem) = (refusal.0.status(), Some(refusal.0));
            page_with(status, &ResourceForm { frame: ask.frame, endpoint, field, format, problem })
        }
        Err(refusal) => Err(refusal),
    }
}
