//! What all parts of it agree on: how many of what there are, what they are called, and how long
//! things may take.

use std::time::Duration;

use flare_core::Settings;
use flare_core::cluster::ClusterSettings;

/// Resources, each with its own subscriptions and documents.
pub const RESOURCES: usize = 10;
/// Subscriptions of each resource, of one lane each.
pub const SUBSCRIPTIONS: usize = 30;
/// Documents of each resource.
pub const DOCUMENTS: usize = 3;
/// Puts a second; each is told to all subscriptions of a resource.
pub const RATE: f64 = 2.0;
/// Slots that the lanes are hashed onto.
pub const SLOTS: u32 = 48;
/// Nodes that share them.
pub const NODES: usize = 3;
/// How long a dead node keeps its slots.
pub const TTL: Duration = Duration::from_secs(5);
/// Within which they are given to somebody else, who works them.
pub const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(7);
/// How long the client takes to answer, so that there is always something in flight.
pub const ANSWERS_AFTER: Duration = Duration::from_millis(20);
/// Says which process sent a request.
pub const NODE_HEADER: &str = "chaos-node";

/// All lanes.
pub const LANES: usize = RESOURCES * SUBSCRIPTIONS;

/// The endpoint of a resource.
pub fn endpoint(resource: usize) -> String {
    format!("http://origin.example/r{resource}/{{id}}")
}

/// The URL of a document.
pub fn document(resource: usize, number: usize) -> String {
    format!("http://origin.example/r{resource}/d{number}")
}

/// Which resource and document a URL means.
pub fn parse_document(url: &str) -> Option<(usize, usize)> {
    let (resource, number) = url.strip_prefix("http://origin.example/r")?.split_once("/d")?;
    Some((resource.parse().ok()?, number.parse().ok()?))
}

/// How the nodes work; the driver's own handle has to agree.
pub fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.slots = Some(SLOTS);
    settings.drain_limit = Duration::from_secs(10);
    settings
}

/// How they share the work.
pub fn membership(name: &str) -> ClusterSettings {
    let mut membership = ClusterSettings::default();
    membership.name = name.to_owned();
    membership.ttl = TTL;
    membership.call_limit = Duration::from_secs(1);
    membership.settle_after = Duration::from_secs(1);
    membership.move_percent = 25;
    membership.move_every = Duration::from_millis(500);
    membership.hand_over_limit = Duration::from_secs(6);
    membership
}
