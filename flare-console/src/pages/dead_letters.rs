//! Notifications of a subscription that were given up: which, why, and a choice of those to replay.

use askama::Template;
use flare_core::model::{DeadNotification, SubscriptionId};

use crate::ask::{Ask, Named, page};
use crate::behind::name;
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::Answer;
use crate::show::Now;

#[derive(Template)]
#[template(path = "pages/dead_letters.html")]
struct DeadLetters {
    frame: Frame,
    now: Now,
    id: SubscriptionId,
    name: String,
    letters: Vec<DeadNotification>,
    unreadable: Vec<String>,
    part: Part,
}

/// The list, oldest death first.
pub(crate) async fn show(id: Named, ask: Ask) -> Answer {
    let id: SubscriptionId = id.id("subscription")?;
    let subscription = ask.flare().subscription(id).await?;
    let part = Part::asked(&ask.query, &[]);
    let listing = ask.flare().dead_letters(id, part.page()).await?;
    page(&DeadLetters {
        now: ask.now(),
        frame: ask.frame,
        id,
        name: name(&subscription),
        letters: listing.items,
        unreadable: listing.unreadable.iter().map(ToString::to_string).collect(),
        part: part.of(listing.total),
    })
}
