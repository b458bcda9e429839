//! One kind of document: what it is, who is subscribed to it; and its deletion.

use askama::Template;
use axum::response::Response;
use flare_core::model::{Resource, ResourceId};
use flare_core::port::Page;

use super::confirm::Confirm;
use crate::ask::{Ask, Named, page, see};
use crate::behind::{Line, Wanted, lines};
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::Answer;
use crate::show::{Now, many};

#[derive(Template)]
#[template(path = "pages/resource.html")]
struct ResourcePage {
    frame: Frame,
    now: Now,
    resource: Resource,
    example: String,
    behind: Vec<Line>,
    part: Part,
    search: String,
    api: String,
}

/// The page of one.
pub(crate) async fn show(id: Named, ask: Ask) -> Answer {
    let id: ResourceId = id.id("resource")?;
    let resource = ask.flare().resource(id).await?;
    let search = ask.query.text("search").to_owned();
    let wanted = Wanted { resource: Some(id), search: search.clone(), ..Wanted::default() };
    let part = Part::asked(&ask.query, &["search"]);
    let (behind, part) = lines(ask.flare(), &wanted, part).await?;
    // A URL of a document that would be one of its own.
    let values = resource.endpoint.wildcards().map(|_| "1").collect::<Vec<_>>();
    let example = resource.url(values).unwrap_or_default();
    let (now, api) = (ask.now(), ask.api());
    page(&ResourcePage { frame: ask.frame, now, resource, example, behind, part, search, api })
}

/// Asks before it is deleted.
pub(crate) async fn confirm_delete(id: Named, ask: Ask) -> Answer {
    let id: ResourceId = id.id("resource")?;
    let subject = match ask.flare().resource(id).await {
        Ok(resource) => resource.endpoint.to_string(),
        // One that cannot be read can be deleted all the same.
        Err(error) if error.unreadable().is_some() => id.to_string(),
        Err(error) => return Err(error.into()),
    };
    let subscriptions = ask.flare().subscriptions(id, Page::new(1, 0)).await?.total;
    let consumers = consumers_of(&ask, id).await?;
    let impossible = (subscriptions > 0 || consumers > 0).then(|| {
        let (subscriptions, consumers) =
            (many(subscriptions, "subscription"), many(consumers, "consumer"));
        format!("It has {subscriptions} and {consumers}: delete these first.")
    });
    let back = format!("../{id}");
    let asked =
        Confirm::new(ask.frame, "Delete this resource?", subject, "Delete the resource", back)
            .effect(
                "It takes no documents from now on, and its endpoint is free for another resource.",
            )
            .effect("Its documents are removed in the background. There is no way back.")
            .destroying()
            .unless(impossible);
    page(&asked)
}

async fn consumers_of(ask: &Ask, id: ResourceId) -> Result<u64, flare_core::Error> {
    let mut offset = 0;
    let mut found = 0;
    loop {
        let listing = ask.flare().consumers(Page::new(1_000, offset)).await?;
        found += listing.items.iter().filter(|it| it.resource == id).count() as u64;
        offset += 1_000;
        if offset >= listing.total {
            return Ok(found);
        }
    }
}

/// Deletes it.
pub(crate) async fn delete(id: Named, ask: Ask) -> Answer {
    ask.flare().delete_resource(id.id("resource")?).await?;
    let gone: Response = see("../../resources?done=deleted");
    Ok(gone)
}
