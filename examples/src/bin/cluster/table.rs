//! Takes the cluster as its store has it, and what nodes say of themselves; gives a table that stays in
//! place on a terminal and is printed anew, elsewhere, whenever slots have moved.

use std::fmt;
use std::io::{IsTerminal, stdout};

use flare_core::cluster::{ClusterView, Health};

use crate::audience::Audience;
use crate::origin::Origin;
use crate::processes::Processes;

/// How everything is at one time.
#[derive(Debug)]
pub(crate) struct Glance {
    pub(crate) health: Health,
    rows: Vec<Row>,
    unassigned: usize,
    moving: usize,
    puts: u64,
    notifications: u64,
    behind: usize,
}

#[derive(Debug)]
struct Row {
    name: String,
    process: Option<u32>,
    slots: usize,
    leads: bool,
    lanes: u64,
    delivered: u64,
}

impl Glance {
    pub(crate) fn new(
        view: &ClusterView,
        processes: &Processes,
        audience: &Audience,
        origin: &Origin,
    ) -> Self {
        let row = |node: &flare_core::cluster::NodeView| {
            let name = node.record.as_ref().map_or("?", |record| &record.name).to_owned();
            let told = processes.told(&name);
            Row {
                process: told.map(|(process, _)| process),
                slots: node.slots,
                leads: view.leader == Some(node.id),
                lanes: told.map_or(0, |(_, told)| told.lanes),
                delivered: told.map_or(0, |(_, told)| told.delivered),
                name,
            }
        };
        let mut rows: Vec<Row> = view.nodes.iter().map(row).collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            health: view.health,
            rows,
            unassigned: view.unassigned,
            moving: view.moving,
            puts: origin.puts(),
            notifications: audience.heard().notifications,
            behind: audience.behind(&origin.newest()),
        }
    }

    /// Whether so many nodes are there, each with at least half of what it should have.
    pub(crate) fn is_shared(&self, nodes: usize) -> bool {
        let slots: usize = self.rows.iter().map(|row| row.slots).sum();
        self.rows.len() == nodes && self.rows.iter().all(|row| row.slots * nodes * 2 >= slots)
    }

    /// Slots that nobody works.
    pub(crate) fn unassigned(&self) -> usize {
        self.unassigned
    }

    /// Who works how much.
    fn shares(&self) -> Vec<(String, usize, bool)> {
        self.rows.iter().map(|row| (row.name.clone(), row.slots, row.leads)).collect()
    }
}

impl fmt::Display for Glance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  node  process  slots  leads  lanes  delivered")?;
        for row in &self.rows {
            let process = row.process.map_or_else(|| "dead".to_owned(), |id| id.to_string());
            let leads = if row.leads { "yes" } else { "" };
            let Row { name, slots, lanes, delivered, .. } = row;
            writeln!(
                f,
                "  {name:<4}  {process:>7}  {slots:>5}  {leads:<5}  {lanes:>5}  {delivered:>9}"
            )?;
        }
        write!(
            f,
            "  {}: {} slots unassigned, {} moving; {} puts, {} notifications, {} still to come",
            self.health.as_str(),
            self.unassigned,
            self.moving,
            self.puts,
            self.notifications,
            self.behind,
        )
    }
}

/// What is on the screen.
#[derive(Debug, Default)]
pub(crate) struct Table {
    shares: Vec<(String, usize, bool)>,
    /// What the next one is printed over.
    shown: Option<String>,
}

impl Table {
    pub(crate) fn print(&mut self, glance: &Glance) {
        let shares = glance.shares();
        let moved = shares != self.shares;
        self.shares = shares;
        if stdout().is_terminal() {
            let text = glance.to_string();
            // Clears what is below, prints, and goes back to where it began.
            println!("\x1b[J{text}\x1b[{}A\r", text.lines().count());
            self.shown = Some(text);
        } else if moved {
            println!("{glance}");
        }
    }

    /// Prints something below the table, which stays.
    pub(crate) fn say(&mut self, text: &str) {
        if let Some(shown) = self.shown.take() {
            println!("{shown}");
        }
        println!("{text}");
    }
}
