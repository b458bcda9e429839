//! Takes the collection of rows; gives what is pending in it, and looks several times a second whether what
//! may only rise has fallen.
//!
//! A write whose epoch is below its row's would leave the lower one behind, until the rightful owner
//! writes the row again: seconds later, at this load. A server that is no replica set has no change
//! stream to see every write by.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flare_core::model::SubscriptionId;
use futures::TryStreamExt;
use mongodb::bson::{Bson, Document, doc};
use mongodb::{Client, Collection};
use tokio::task::JoinHandle;

use crate::fleet::DATABASE;

const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// What only rises in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Risen {
    epoch: i64,
    settled: i64,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub struct Seen {
    rows: HashMap<String, Risen>,
    pub looks: usize,
    /// The most rows that were pending at a look, since somebody last set it to nothing.
    pub most_pending: usize,
    /// The longest that MongoDB took to read a single row; likewise.
    pub slowest: Duration,
    /// Rows whose epoch has risen since the look before: how much there was to see.
    pub raised: usize,
    pub fallen: Vec<String>,
}

/// The rows, watched until this is dropped.
pub struct Rows {
    collection: Collection<Document>,
    lanes: HashMap<Vec<u8>, usize>,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Rows {
    /// `lanes` are the subscriptions, by the number of their lane.
    pub async fn watch(mongodb: &str, lanes: &[SubscriptionId]) -> Self {
        let client = Client::with_uri_str(mongodb).await.unwrap();
        let collection = client.database(DATABASE).collection("flare_rows");
        let seen = Arc::<Mutex<Seen>>::default();
        let task = tokio::spawn(look(collection.clone(), Arc::clone(&seen)));
        let lanes = lanes.iter().enumerate().map(|(lane, id)| (id.as_bytes().to_vec(), lane));
        Self { collection, lanes: lanes.collect(), seen, task }
    }

    /// How many rows of these lanes are pending now.
    pub async fn pending(&self, lanes: &BTreeSet<usize>) -> usize {
        let pending = self.collection.find(doc! { "pending": true }).await.unwrap();
        let pending: Vec<Document> = pending.try_collect().await.unwrap();
        let lane = |row: &Document| match row.get_document("_id").ok()?.get("subscription")? {
            Bson::Binary(id) => self.lanes.get(&id.bytes).copied(),
            _ => None,
        };
        pending.iter().filter_map(lane).filter(|lane| lanes.contains(lane)).count()
    }

    pub fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        assert!(!self.task.is_finished(), "the rows could not be read");
        look(&mut self.seen.lock().unwrap())
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn look(rows: Collection<Document>, seen: Arc<Mutex<Seen>>) {
    loop {
        let began = Instant::now();
        rows.find_one(doc! {}).await.unwrap();
        let took = began.elapsed();
        let fields = doc! { "epoch": 1, "settled": 1, "pending": 1 };
        let found = rows.find(doc! {}).projection(fields).await.unwrap();
        let found: Vec<Document> = found.try_collect().await.unwrap();
        seen.lock().unwrap().compare(&found, took);
        tokio::time::sleep(LOOKS_EVERY).await;
    }
}

impl Seen {
    fn compare(&mut self, rows: &[Document], took: Duration) {
        self.looks += 1;
        self.slowest = self.slowest.max(took);
        let pending = rows.iter().filter(|row| row.get_bool("pending").unwrap_or(false)).count();
        self.most_pending = self.most_pending.max(pending);
        for row in rows {
            let key = row.get("_id").unwrap().to_string();
            let settled = row.get_document("settled").ok();
            let now = Risen {
                epoch: row.get_i64("epoch").unwrap(),
                settled: settled.map_or(i64::MIN, |it| it.get_i64("revision").unwrap()),
            };
            let Some(before) = self.rows.insert(key.clone(), now) else { continue };
            if now.epoch < before.epoch || now.settled < before.settled {
                self.fallen.push(format!("{key}: {before:?} became {now:?}"));
            }
            self.raised += usize::from(now.epoch > before.epoch);
        }
    }
}
