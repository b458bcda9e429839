//! Takes a node's changes; works its slots, in that it remembers which they are, and gives them up
//! as politely as it was made to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_core::internals::{SlotChange, Trust};
use flare_core::model::Epoch;
use flare_core::port::Clock;
use flare_testkit::ManualClock;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;

/// How a worker gives slots up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manners {
    AtOnce,
    After(Duration),
    /// It never says that it has stopped.
    Never,
}

/// What a node works, as far as it knows.
pub(crate) type Works = Arc<Mutex<BTreeMap<u32, (Epoch, Trust)>>>;

pub(crate) async fn work(
    mut changes: mpsc::Receiver<SlotChange>,
    works: Works,
    manners: Manners,
    clock: ManualClock,
) {
    let mut releases = FuturesUnordered::new();
    let mut kept = Vec::new();
    loop {
        let change = tokio::select! {
            biased;
            change = changes.recv() => change,
            Some((epochs, done)) = releases.next() => {
                let mut works = works.lock().unwrap();
                let epochs: Vec<(u32, Epoch)> = epochs;
                for (slot, epoch) in epochs {
                    if works.get(&slot).is_some_and(|(now, _)| *now == epoch) {
                        works.remove(&slot);
                    }
                }
                drop(done);
                continue;
            }
        };
        match change {
            None => return works.lock().unwrap().clear(),
            Some(SlotChange::Granted { slots, term }) => {
                let mut works = works.lock().unwrap();
                for slot in slots.iter() {
                    let before = works.insert(slot, (term.epoch, term.trust.clone()));
                    assert!(before.is_none(), "slot {slot} was granted while it was worked");
                }
            }
            Some(SlotChange::Releasing { slots, done, .. }) => {
                let epoch = |slot: u32| Some((slot, works.lock().unwrap().get(&slot)?.0));
                let epochs: Vec<_> = slots.iter().filter_map(epoch).collect();
                let clock = clock.clone();
                let wait = match manners {
                    Manners::AtOnce => Duration::ZERO,
                    Manners::After(time) => time,
                    Manners::Never => {
                        kept.push(done);
                        continue;
                    }
                };
                releases.push(async move {
                    clock.sleep(wait).await;
                    (epochs, done)
                });
            }
            Some(SlotChange::Lost { slots }) => {
                let mut works = works.lock().unwrap();
                slots.iter().for_each(|slot| _ = works.remove(&slot));
            }
        }
    }
}
