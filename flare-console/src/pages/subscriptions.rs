//! Subscriptions of all resources: those first that are furthest behind; by status, or searched for.

use askama::Template;
use flare_core::model::{SubscriptionStatus, SummaryOrder};

use crate::ask::{Ask, page};
use crate::behind::{Line, Wanted, lines};
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::Answer;
use crate::show::Now;

#[derive(Template)]
#[template(path = "pages/subscriptions.html")]
struct Subscriptions {
    frame: Frame,
    now: Now,
    behind: Vec<Line>,
    part: Part,
    search: String,
    status: &'static str,
    statuses: Vec<&'static str>,
    order: &'static str,
}

/// The orders by their words.
const ORDERS: [(&str, &str); 4] = [
    ("lag", "furthest behind first"),
    ("oldest", "longest waiting first"),
    ("failures", "failed most often first"),
    ("rate", "busiest first"),
];

impl Subscriptions {
    fn orders(&self) -> [(&'static str, &'static str); 4] {
        ORDERS
    }
}

/// The list.
pub(crate) async fn show(ask: Ask) -> Answer {
    let asked = ask.query.text("status");
    let status = SubscriptionStatus::SHOWN.into_iter().find(|it| it.as_str() == asked);
    let search = ask.query.text("search").to_owned();
    let order: SummaryOrder = ask.query.text("order").parse().unwrap_or_default();
    let wanted = Wanted { order, resource: None, status, search: search.clone() };
    let part = Part::asked(&ask.query, &["search", "status", "order"]);
    let (behind, part) = lines(ask.flare(), &wanted, part).await?;
    page(&Subscriptions {
        now: ask.now(),
        frame: ask.frame,
        behind,
        part,
        search,
        status: status.map_or("", SubscriptionStatus::as_str),
        order: order.as_str(),
        statuses: SubscriptionStatus::SHOWN.map(SubscriptionStatus::as_str).to_vec(),
    })
}
