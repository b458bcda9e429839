//! Is it well? The cluster's health, what this node is at, and who is behind.

use askama::Template;
use flare_core::OverviewTotals;
use flare_core::cluster::{ClusterView, Health};
use flare_core::port::Page;

use crate::ask::{Ask, page};
use crate::behind::{Line, furthest};
use crate::frame::Frame;
use crate::refusal::Answer;
use crate::show::{Now, State, count, rate};

/// So many of those that are behind are shown.
const FURTHEST: u32 = 10;
/// A loop that has work and got nowhere for so long is worth a word.
const STUCK: std::time::Duration = std::time::Duration::from_secs(30);

#[derive(Template)]
#[template(path = "pages/overview.html")]
struct Overview {
    frame: Frame,
    now: Now,
    cluster: ClusterView,
    health: State,
    why: String,
    slots: u64,
    resources: u64,
    totals: OverviewTotals,
    consumers: u64,
    /// How many of them fail.
    failing_consumers: u64,
    behind: Vec<Line>,
    stuck: Vec<String>,
    unreadable: Vec<String>,
    api: String,
}

/// The first page.
pub(crate) async fn show(ask: Ask) -> Answer {
    let flare = ask.flare();
    let node = flare.node();
    let cluster = flare.cluster_seen().await;
    let resources = flare.resources(Page::new(1, 0)).await?.total;
    let consumers = flare.consumers(Page::new(1, 0)).await?.total;
    let failing_consumers = flare.consumer_totals().await?.failing;
    let (behind, found) = furthest(flare, FURTHEST).await?;
    let stuck = node.stuck(STUCK).map(|it| it.name.to_string()).collect();
    let unreadable = node.unreadable.iter().map(ToString::to_string).collect();
    let slots = cluster.plan.as_ref().map_or(u64::from(node.slots), |it| it.slots.len() as u64);
    page(&Overview {
        now: ask.now(),
        api: ask.api(),
        health: health(cluster.health),
        why: why(&cluster),
        cluster,
        slots,
        resources,
        totals: found.totals,
        consumers,
        failing_consumers,
        behind,
        stuck,
        unreadable,
        frame: ask.frame,
    })
}

impl Overview {
    /// How much clients take a second.
    fn delivered(&self) -> String {
        rate(self.totals.rates.delivered.minute)
    }

    /// How many attempts fail a second.
    fn failed(&self) -> String {
        rate(self.totals.rates.failed.minute)
    }
}

pub(crate) fn health(health: Health) -> State {
    match health {
        Health::Green => State::good("green"),
        Health::Yellow => State::fair("yellow"),
        Health::Red => State::bad("red"),
    }
}

/// What the colour comes from.
pub(crate) fn why(cluster: &ClusterView) -> String {
    let leaving =
        cluster.nodes.iter().filter(|it| it.record.as_ref().is_some_and(|it| it.draining));
    let leaving = leaving.count() as u64;
    let mut reasons = Vec::new();
    if cluster.nodes.is_empty() {
        reasons.push("no node is there".to_owned());
    }
    if cluster.plan.is_none() {
        reasons.push("there is no plan yet".to_owned());
    }
    if cluster.unassigned > 0 {
        reasons.push(format!("{} slots are worked by no node", count(cluster.unassigned as u64)));
    }
    if cluster.moving > 0 {
        reasons.push(format!("{} slots are on their way", count(cluster.moving as u64)));
    }
    if leaving > 0 {
        reasons.push(format!("{} leaving", crate::show::many(leaving, "node")));
    }
    if cluster.leader.is_none() {
        reasons.push("there is no leader".to_owned());
    }
    match reasons.is_empty() {
        true => "every slot is worked".to_owned(),
        false => reasons.join(", "),
    }
}
