//! Tries a filter on a document, and a mapping on a message. Stores nothing.

use askama::Template;
use axum::http::Method;
use flare_core::model::Invalid;
use flare_core::model::consumer::MappingInput;
use flare_http::Problem;

use crate::access::needs;
use crate::ask::{Ask, page, page_with};
use crate::fields::Fields;
use crate::frame::Frame;
use crate::refusal::{Answer, Refusal};

#[derive(Template)]
#[template(path = "pages/trials.html")]
struct Trials {
    frame: Frame,
    filter: String,
    document: String,
    params: String,
    filter_says: Option<String>,
    mapping: String,
    message: String,
    mapping_says: Vec<Said>,
    problem: Option<Problem>,
    /// Which of the two forms the problem is of.
    of_mapping: bool,
}

/// What would become of one part of a message.
struct Said {
    head: String,
    content: String,
    rejected: bool,
}

impl Trials {
    fn new(frame: Frame, form: &Fields) -> Self {
        let text = |name, example: &str| form.get(name).unwrap_or(example).to_owned();
        Self {
            frame,
            filter: text("filter", "document.status == 'paid'"),
            document: text("document", "{\"rev\": 1, \"status\": \"paid\"}"),
            params: text("params", ""),
            filter_says: None,
            mapping: text("mapping", "{\"url\": \"http://api.example.com/users/{/id}\"}"),
            message: text("message", "{\"id\": 7, \"rev\": 1}"),
            mapping_says: Vec::new(),
            problem: None,
            of_mapping: form.get("mapping").is_some(),
        }
    }
}

/// Asks for both.
pub(crate) async fn show(ask: Ask) -> Answer {
    page(&Trials::new(ask.frame, &Fields::default()))
}

/// Tries what was sent.
pub(crate) async fn run(ask: Ask) -> Answer {
    ask.insist(needs(&Method::POST, "/filters/test"))?;
    let mut shown = Trials::new(ask.frame.clone(), &ask.form);
    let tried = match shown.of_mapping {
        true => try_mapping(&ask, &mut shown).await,
        false => try_filter(&ask, &mut shown),
    };
    match tried {
        Ok(()) => page(&shown),
        Err(refusal) if refusal.is_theirs() => {
            let status = refusal.0.status();
            shown.problem = Some(refusal.0);
            page_with(status, &shown)
        }
        Err(refusal) => Err(refusal),
    }
}

fn try_filter(ask: &Ask, shown: &mut Trials) -> Result<(), Refusal> {
    let params = Fields::read(shown.params.as_bytes());
    let tried =
        ask.flare().test_filter(&shown.filter, shown.document.as_bytes(), params.pairs())?;
    shown.filter_says = Some(match (tried.matches, tried.error) {
        (_, Some(error)) => format!("It fails on this document, which is no match: {error}"),
        (true, None) => "Yes: the client should have this document.".to_owned(),
        (false, None) => "No: the client should not have this document.".to_owned(),
    });
    Ok(())
}

async fn try_mapping(ask: &Ask, shown: &mut Trials) -> Result<(), Refusal> {
    let wrong = |error: serde_json::Error| Invalid::new("document", error.to_string());
    let mapping: MappingInput = serde_json::from_str(&shown.mapping).map_err(wrong)?;
    let tried = ask.flare().test_mapping(mapping, shown.message.as_bytes()).await?;
    let said = tried.into_iter().map(|part| match part {
        Ok(document) => {
            let revision = document.revision.map_or_else(
                || "the newest revision stored".to_owned(),
                |it| format!("revision {it}"),
            );
            let verb = if document.content.is_some() { "put at" } else { "deleted as of" };
            let content = document.content.as_deref().map(String::from_utf8_lossy);
            Said {
                head: format!("{} {verb} {revision}", document.url),
                content: content.unwrap_or_default().into_owned(),
                rejected: false,
            }
        }
        Err(rejection) => {
            Said { head: format!("Rejected: {rejection}"), content: String::new(), rejected: true }
        }
    });
    shown.mapping_says = said.collect();
    Ok(())
}
