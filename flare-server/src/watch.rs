//! Takes a server to ask; gives how its node and cluster are and who is behind, again and again until ctrl-c. The first
//! round has to go well; a later one that fails is shown and followed by the next.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use flare_core::port::{Clock, SystemClock};
use serde_json::Value;

use crate::failure::Failure;
use crate::signals::Signals;
use crate::status::{Server, text};
use crate::table::Table;

/// Puts the cursor at the beginning of an empty screen.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

pub(crate) async fn watch(server: &Server<'_>, every: Duration) -> Result<(), Failure> {
    let listening = |error| Failure::because("cannot listen for signals", error);
    let mut signals = Signals::listen().map_err(listening)?;
    let clock = SystemClock::new();
    let mut answered = false;
    loop {
        let round = tokio::select! {
            round = overview(server) => round,
            _ = signals.next() => return Ok(()),
        };
        let shown = match round {
            Ok(shown) => shown,
            // Whoever asks the wrong server, or without a token, is told so rather than kept waiting.
            Err(failure) if !answered => return Err(failure),
            Err(failure) => format!("{failure}\n"),
        };
        answered = true;
        if show(&shown).is_err() {
            // Whoever read this (`| head`) has seen enough.
            return Ok(());
        }
        tokio::select! {
            () = clock.sleep(every) => {}
            _ = signals.next() => return Ok(()),
        }
    }
}

fn show(round: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let clear = if out.is_terminal() { CLEAR } else { "" };
    writeln!(out, "{clear}{round}")?;
    out.flush()
}

async fn overview(server: &Server<'_>) -> Result<String, Failure> {
    let (about, health) = server.about().await?;
    let nodes = server.list("cluster/nodes", "nodes").await?;
    // While all is quiet the nodes know how many slots they have.
    let quiet = health["moving"] == 0 && health["unassigned"] == 0;
    let slots = if quiet { Vec::new() } else { server.list("cluster/slots", "slots").await? };
    let (worst, totals) = server.worst().await?;
    let (nodes_shown, slots_shown) = (node_table(&nodes), slot_table(&nodes, &slots));
    let worst = worst_table(&nodes, &worst);
    Ok(format!("{about}\n{nodes_shown}\n{slots_shown}\n{}{worst}", summed(&totals)))
}

/// All subscriptions together, in a line.
fn summed(totals: &Value) -> String {
    let count = |name: &str| text(&totals[name]);
    let rate = |outcome: &str| {
        text(&totals["rates"][outcome]["minute"].as_f64().map_or(Value::Null, shortened))
    };
    format!(
        "{} subscriptions, {} behind by {}, {} failing; {} delivered and {} failed a second\n",
        count("subscriptions"),
        count("behind"),
        count("lag"),
        count("failing"),
        rate("delivered"),
        rate("failed"),
    )
}

/// The subscriptions in the order in which they came.
fn worst_table(nodes: &[Value], worst: &[Value]) -> Table {
    let mut table = Table::default();
    let heads = ["SUBSCRIPTION", "STATUS", "LAG", "OLDEST", "FAILURES", "DELIVERED/S", "FAILED/S"];
    table.row(heads.into_iter().chain(["NODE", "URL", "LAST ERROR"]));
    for it in worst {
        let rate = |outcome: &str| {
            let rate = it["rates"][outcome]["minute"].as_f64();
            text(&rate.map_or(Value::Null, shortened))
        };
        table.row([
            text(&it["id"]),
            text(&it["status"]),
            text(&it["lag"]),
            format!("{}s", text(&it["oldestPendingSeconds"])),
            text(&it["consecutiveFailures"]),
            rate("delivered"),
            rate("failed"),
            called(nodes, &it["node"]),
            text(&it["url"]),
            text(&it["lastError"]),
        ]);
    }
    table
}

/// A rate with as many digits as anybody reads.
fn shortened(rate: f64) -> Value {
    Value::String(if rate >= 10.0 { format!("{rate:.0}") } else { format!("{rate:.2}") })
}

/// A node's name if it has one, else its id.
fn called(nodes: &[Value], id: &Value) -> String {
    let node = nodes.iter().find(|node| node["id"] == *id);
    match node.map(|node| &node["name"]) {
        Some(Value::String(name)) => name.clone(),
        _ => text(id),
    }
}

fn node_table(nodes: &[Value]) -> Table {
    let mut table = Table::default();
    let heads = ["NODE", "NAME", "VERSION", "ROLES", "WEIGHT", "SLOTS", "LANES", "IN FLIGHT"];
    table.row(heads.into_iter().chain(["BUSY %", "IS"]));
    for node in nodes {
        let words = |list: &Value| {
            let words = list.as_array().into_iter().flatten().map(text);
            words.collect::<Vec<_>>().join(",")
        };
        let is = [("leader", "leader"), ("draining", "draining"), ("local", "this one")];
        let is = is.into_iter().filter(|(field, _)| node[field] == true).map(|(_, word)| word);
        table.row([
            text(&node["id"]),
            text(&node["name"]),
            text(&node["version"]),
            words(&node["roles"]),
            text(&node["weight"]),
            text(&node["slots"]),
            text(&node["load"]["lanes"]),
            text(&node["load"]["inFlight"]),
            text(&node["load"]["busyPercent"]),
            is.collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}

/// How many slots are in which state, by node; `slots` may be left out if all of them are owned.
fn slot_table(nodes: &[Value], slots: &[Value]) -> Table {
    let called = |id: &Value| called(nodes, id);
    let mut counted: BTreeMap<[String; 3], u64> = BTreeMap::new();
    for slot in slots {
        let key = [text(&slot["state"]), called(&slot["node"]), called(&slot["to"])];
        *counted.entry(key).or_default() += 1;
    }
    if slots.is_empty() {
        for node in nodes {
            let key = ["owned".to_owned(), called(&node["id"]), text(&Value::Null)];
            *counted.entry(key).or_default() += node["slots"].as_u64().unwrap_or(0);
        }
    }
    let mut table = Table::default();
    table.row(["SLOTS", "STATE", "BY", "TO"]);
    for ([state, by, to], count) in counted.into_iter().filter(|(_, count)| *count > 0) {
        table.row([count.to_string(), state, by, to]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_is_behind_is_shown_in_the_order_given() {
        let nodes = [json!({"id": "1", "name": "a"})];
        let one = |id: &str, lag: u64| {
            let rates = json!({"delivered": {"minute": 12.34}, "failed": {"minute": 0.126}});
            json!({"id": id, "status": "active", "lag": lag, "oldestPendingSeconds": 7, "rates": rates,
                "consecutiveFailures": 3, "node": "1", "lastError": "answered 500\u{1b}[2J"})
        };
        let shown = worst_table(&nodes, &[one("x", 9), one("y", 2)]).to_string();
        let lines: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines[1][..9],
            ["x", "active", "9", "7s", "3", "12", "0.13", "a", "-"],
            "{shown}"
        );
        assert_eq!(lines[2][0], "y");
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let totals = json!({"subscriptions": 5, "behind": 2, "lag": 11, "failing": 1,
            "rates": {"delivered": {"minute": 1.0}, "failed": {"minute": 0.0}}});
        assert_eq!(
            summed(&totals),
            "5 subscriptions, 2 behind by 11, 1 failing; 1.00 delivered and 0.00 failed a second\n"
        );
    }

    #[test]
    fn slots_are_counted_by_state_and_node() {
        let nodes = [
            json!({"id": "1", "name": "a", "slots": 3, "leader": true, "local": true,
                "roles": ["lead", "work"], "load": {"lanes": 7}}),
            json!({"id": "2", "name": "b", "slots": 0}),
        ];
        let shown = slot_table(&nodes, &[]).to_string();
        assert_eq!(shown, "SLOTS  STATE  BY  TO\n3      owned  a   -\n");
        let slots = [
            json!({"state": "owned", "node": "1"}),
            json!({"state": "releasing", "node": "1", "to": "2"}),
            json!({"state": "releasing", "node": "1", "to": "2"}),
            json!({"state": "free"}),
        ];
        let shown = slot_table(&nodes, &slots).to_string();
        let lines: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(lines.contains(&vec!["2", "releasing", "a", "b"]), "{shown}");
        assert!(lines.contains(&vec!["1", "free", "-", "-"]), "{shown}");
        let shown = node_table(&nodes).to_string();
        assert!(shown.contains("lead,work") && shown.contains("leader, this one"), "{shown}");
    }
}
