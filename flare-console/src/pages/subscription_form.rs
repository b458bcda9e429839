//! Asks for the settings of a subscription: of a new one, or in place of those there are.

use askama::Template;
use axum::http::StatusCode;
use flare_core::model::{
    Generation, Invalid, ResourceId, Subscription, SubscriptionId, SubscriptionSpec,
};
use flare_http::{Problem, subscription_from_json, subscription_to_json};

use crate::ask::{Ask, Named, page, page_with, see};
use crate::behind::name;
use crate::frame::Frame;
use crate::refusal::{Answer, Refusal};
use crate::settings_form::SettingsForm;

const METHODS: [&str; 5] = ["POST", "GET", "PUT", "PATCH", "DELETE"];

#[derive(Template)]
#[template(path = "pages/subscription_form.html")]
struct FormPage {
    frame: Frame,
    title: String,
    subject: String,
    /// What stands in braces in this resource's URLs.
    wildcards: String,
    form: SettingsForm,
    problem: Option<Problem>,
    /// Of one that is there: what must not have changed meanwhile, and how many secrets it has.
    current: Option<Current>,
    back: String,
}

struct Current {
    generation: u64,
    secrets: usize,
}

impl FormPage {
    fn methods(&self) -> [&'static str; 5] {
        METHODS
    }
}

/// Asks for a new one.
pub(crate) async fn new(resource: Named, ask: Ask) -> Answer {
    page(&creation(&resource, ask, SettingsForm::default(), None).await?)
}

async fn creation(
    resource: &Named,
    ask: Ask,
    form: SettingsForm,
    problem: Option<Problem>,
) -> Result<FormPage, Refusal> {
    let id: ResourceId = resource.id("resource")?;
    let resource = ask.flare().resource(id).await?;
    Ok(FormPage {
        frame: ask.frame,
        title: "New subscription".to_owned(),
        subject: format!("to {}", resource.endpoint),
        wildcards: wildcards(resource.endpoint.wildcards()),
        form,
        problem,
        current: None,
        back: format!("../../{id}"),
    })
}

fn wildcards<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.chain(["revision"]).map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(" ")
}

/// Creates it.
pub(crate) async fn create(resource: Named, ask: Ask) -> Answer {
    let id: ResourceId = resource.id("resource")?;
    let form = SettingsForm::sent(&ask.form);
    let spec = || -> Result<SubscriptionSpec, Invalid> {
        Ok(subscription_from_json(form.json()?.as_bytes())?.create())
    };
    let created = async {
        let created: Result<Subscription, Refusal> =
            Ok(ask.flare().create_subscription(id, spec()?).await?);
        created
    };
    match created.await {
        Ok(created) => Ok(see(format!("../../../subscriptions/{}?done=created", created.id))),
        Err(refusal) if refusal.is_theirs() => {
            let (status, problem) = (refusal.0.status(), Some(refusal.0));
            page_with(status, &creation(&resource, ask, form, problem).await?)
        }
        Err(refusal) => Err(refusal),
    }
}

/// Asks what one shall be from now on.
pub(crate) async fn edit(id: Named, ask: Ask) -> Answer {
    let current = ask.flare().subscription(id.id("subscription")?).await?;
    let form = SettingsForm::shown(&subscription_to_json(current.clone())?)?;
    page(&edition(current, ask, form, None).await?)
}

async fn edition(
    current: Subscription,
    ask: Ask,
    form: SettingsForm,
    problem: Option<Problem>,
) -> Result<FormPage, Refusal> {
    let resource = ask.flare().resource(current.resource).await?;
    Ok(FormPage {
        frame: ask.frame,
        title: "Edit".to_owned(),
        subject: name(&current),
        wildcards: wildcards(resource.endpoint.wildcards()),
        form,
        problem,
        current: Some(Current {
            generation: current.generation.get(),
            secrets: current.spec.signing().map_or(0, |signing| signing.count()),
        }),
        back: format!("../{}", current.id),
    })
}

/// Changes it, unless somebody else did meanwhile.
pub(crate) async fn replace(id: Named, ask: Ask) -> Answer {
    let id: SubscriptionId = id.id("subscription")?;
    let form = SettingsForm::sent(&ask.form);
    let seen = ask.form.text("generation").parse().map(Generation::new);
    let replaced = async {
        let missing = |_| Refusal::new(StatusCode::BAD_REQUEST, "The form has no generation.");
        let input = subscription_from_json(form.json()?.as_bytes())?;
        ask.flare().replace_subscription_at(id, seen.map_err(missing)?, input).await?;
        Ok::<(), Refusal>(())
    };
    match replaced.await {
        Ok(()) => Ok(see(format!("../{id}?done=changed"))),
        Err(refusal) if refusal.is_theirs() => {
            let current = ask.flare().subscription(id).await?;
            let (status, problem) = (refusal.0.status(), Some(refusal.0));
            page_with(status, &edition(current, ask, form, problem).await?)
        }
        Err(refusal) => Err(refusal),
    }
}
