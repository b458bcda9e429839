//! Takes a handle; puts documents at a steady rate, one after the other, and knows the newest of each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flare_core::Flare;
use flare_core::model::DocumentChange;
use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::task::JoinHandle;

use crate::world::{DOCUMENTS, RATE, RESOURCES, document};

/// The revision of each (resource, document) whose put has returned.
type Newest = HashMap<(usize, usize), i64>;

/// The load, until it is dropped.
pub struct Load {
    newest: Arc<Mutex<Newest>>,
    /// Held while a put is under way.
    turn: Arc<AsyncMutex<()>>,
    task: JoinHandle<()>,
}

impl Load {
    pub fn start(flare: Flare, seed: u64) -> Self {
        let newest = Arc::<Mutex<Newest>>::default();
        let turn = Arc::new(AsyncMutex::new(()));
        let task = tokio::spawn(put(flare, Arc::clone(&newest), Arc::clone(&turn), seed));
        Self { newest, turn, task }
    }

    /// Holds it back, from between two puts on.
    pub async fn pause(&self) -> OwnedMutexGuard<()> {
        assert!(!self.task.is_finished(), "a put failed");
        Arc::clone(&self.turn).lock_owned().await
    }

    /// What every lane of a resource has to have.
    pub fn newest(&self) -> Newest {
        self.newest.lock().unwrap().clone()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn put(flare: Flare, newest: Arc<Mutex<Newest>>, turn: Arc<AsyncMutex<()>>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for revision in 1.. {
        let next = Instant::now() + Duration::from_secs_f64(1.0 / RATE);
        let turn = turn.lock().await;
        let (resource, number) = (random.usize(..RESOURCES), random.usize(..DOCUMENTS));
        let body = json!({ "revision": revision });
        let change = flare.put_document(&document(resource, number), &body).await;
        let change = change.expect("MongoDB is not what is broken here");
        assert!(matches!(change, DocumentChange::Created | DocumentChange::Updated), "{change:?}");
        newest.lock().unwrap().insert((resource, number), revision);
        drop(turn);
        tokio::time::sleep_until(next.into()).await;
    }
}
