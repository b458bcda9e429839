//! The slots: who works each, which are on their way, and which belong to a node.

use askama::Template;
use flare_core::cluster::{ClusterView, SlotState};
use flare_core::model::NodeId;

use super::confirm::{Confirm, Input};
use super::nodes::{name, slots};
use crate::ask::{Ask, Named, page, see};
use crate::frame::Frame;
use crate::lists::Part;
use crate::refusal::{Answer, Refusal};
use crate::show::{State, count};

#[derive(Template)]
#[template(path = "pages/slots.html")]
struct Slots {
    frame: Frame,
    lines: Vec<SlotLine>,
    part: Part,
    only: String,
}

struct SlotLine {
    slot: u32,
    state: State,
    node: String,
    to: Option<String>,
    pin: Option<String>,
}

/// The list, by number.
pub(crate) async fn list(ask: Ask) -> Answer {
    let cluster = ask.flare().cluster().await?;
    let total = u32::try_from(slots(&ask, &cluster)).unwrap_or(u32::MAX);
    let only = ask.query.text("only").to_owned();
    let fits = |line: &SlotLine| match only.as_str() {
        "pinned" => line.pin.is_some(),
        "moving" => line.to.is_some(),
        "free" => line.node.is_empty(),
        _ => true,
    };
    let all: Vec<SlotLine> = (0..total).map(|slot| line(&cluster, slot)).filter(fits).collect();
    let (lines, part) = Part::asked(&ask.query, &["only"]).take(all);
    page(&Slots { frame: ask.frame, lines, part, only })
}

fn line(cluster: &ClusterView, slot: u32) -> SlotLine {
    let pin = cluster.pins.get(&slot).cloned();
    let called = |id: NodeId| {
        let node = cluster.nodes.iter().find(|node| node.id == id);
        node.map_or_else(|| id.to_string(), name)
    };
    let Some(worker) = cluster.worker(slot) else {
        return SlotLine { slot, state: State::bad("free"), node: String::new(), to: None, pin };
    };
    let (state, to) = match cluster.slot(slot) {
        Some(SlotState::Releasing { to, .. }) => (State::fair("moving"), Some(called(*to))),
        _ => (State::good("worked"), None),
    };
    SlotLine { slot, state, node: called(worker), to, pin }
}

fn number(slot: &Named) -> Result<u32, Refusal> {
    slot.0.parse().map_err(|_| Refusal::not_found("slot", &slot.0))
}

/// Asks which node a slot shall belong to, or whether to take that back.
pub(crate) async fn confirm_pin(slot: Named, ask: Ask) -> Answer {
    let slot = number(&slot)?;
    let cluster = ask.flare().cluster().await?;
    if u64::from(slot) >= slots(&ask, &cluster) {
        return Err(Refusal::not_found("slot", &slot.to_string()));
    }
    let subject = format!("Slot {}", count(slot));
    let mut nodes: Vec<String> = cluster.nodes.iter().map(name).collect();
    nodes.sort();
    nodes.dedup();
    let its = cluster.pins.get(&slot).cloned();
    let none = "(none: as the plan says)".to_owned();
    let mut asked = Confirm::new(ask.frame, "Pin this slot?", subject, "Pin", "../../slots").effect(
        "The slot, with all lanes and consumers in it, is worked by the node of that name for as long as it is \
         there. It moves as slots do: what is in flight finishes first, nothing is lost.",
    );
    let chosen = its.clone().or_else(|| nodes.first().cloned()).unwrap_or_default();
    if let Some(its) = its {
        asked = asked.effect(format!("It belongs to {its} now."));
        nodes.insert(0, none);
    }
    let impossible = nodes.is_empty().then(|| "No node is there.".to_owned());
    asked.input = Some(Input {
        name: "node",
        label: "Node",
        hint: "By its name.",
        value: chosen,
        choices: nodes,
    });
    page(&asked.unless(impossible))
}

/// Pins it, or takes that back.
pub(crate) async fn pin(slot: Named, ask: Ask) -> Answer {
    let slot = number(&slot)?;
    let node = ask.form.given("node").filter(|node| !node.starts_with("(none"));
    ask.flare().pin_slot(slot, node).await?;
    let done = if node.is_some() { "pinned" } else { "unpinned" };
    Ok(see(format!("../../slots?only=pinned&done={done}")))
}
