//! Takes the cluster as its store has it, many times a second; gives when each process lost its place
//! there, whatever the reason: what it had in flight then may be told again by others.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flare_core::Flare;
use flare_core::model::NodeId;
use tokio::task::JoinHandle;

use crate::client::Doubled;
use crate::world::TTL;

const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// A request, its answer and the storing of it are over by then.
const IN_FLIGHT: Duration = Duration::from_secs(2);
/// How much later than others this one may notice.
const NOTICED: Duration = Duration::from_secs(2);

/// A process, when it was seen that its incarnation is gone, and since when it may have been without the
/// store: longer, if nobody could reach etcd, which then lets every lease live once more.
#[derive(Debug, Clone)]
pub struct Loss {
    pub name: String,
    pub at: Instant,
    since: Instant,
}

/// All losses since this was made, until it is dropped.
pub struct Losses {
    seen: Arc<Mutex<Vec<Loss>>>,
    task: JoinHandle<()>,
}

impl Losses {
    pub fn watch(flare: Flare) -> Self {
        let seen = Arc::<Mutex<Vec<Loss>>>::default();
        let task = tokio::spawn(look(flare, Arc::clone(&seen)));
        Self { seen, task }
    }

    /// Those since then.
    pub fn since(&self, began: Instant) -> Vec<Loss> {
        self.seen.lock().unwrap().iter().filter(|loss| loss.at >= began).cloned().collect()
    }

    /// Whether what came twice could not be known to have come: whoever brought it first lost its place
    /// before it could store that, and before it came again.
    pub fn excuse(&self, doubled: &Doubled) -> bool {
        let (first, again) = (&doubled.first, &doubled.again);
        let excuses = |loss: &Loss| {
            loss.name == first.node
                && loss.at + NOTICED >= first.at
                && loss.since <= first.at + TTL + IN_FLIGHT + NOTICED
                && loss.at <= again.at + NOTICED
        };
        self.seen.lock().unwrap().iter().any(excuses)
    }
}

impl Drop for Losses {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn look(flare: Flare, seen: Arc<Mutex<Vec<Loss>>>) {
    let mut known: HashMap<NodeId, String> = HashMap::new();
    let mut looked = Instant::now();
    let mut away: Option<Range<Instant>> = None;
    loop {
        // While etcd is away nobody loses anything that others would be given.
        if let Ok(view) = flare.cluster().await {
            let at = Instant::now();
            if at - looked > NOTICED {
                away = Some(looked..at);
            }
            looked = at;
            let recent = away.as_ref().filter(|away| at <= away.end + TTL + NOTICED);
            let since = recent.map_or(at, |away| away.start);
            let there: HashMap<NodeId, String> = view
                .nodes
                .iter()
                .filter_map(|node| Some((node.id, node.record.as_ref()?.name.clone())))
                .collect();
            let gone = known.iter().filter(|(id, _)| !there.contains_key(id));
            seen.lock().unwrap().extend(gone.map(|(_, name)| Loss {
                name: name.clone(),
                at,
                since,
            }));
            known = there;
        }
        tokio::time::sleep(LOOKS_EVERY).await;
    }
}
