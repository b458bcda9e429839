//! Takes note of every command that is sent to the server; gives their numbers, for hosts' metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mongodb::event::EventHandler;
use mongodb::event::command::{CommandEvent, CommandStartedEvent};

/// A command's name, and the command itself as BSON.
type Recorded = (String, Vec<u8>);

/// How many commands of each kind were sent: each is a round trip. Clones count together.
///
/// ```
/// use flare_backend_mongo::{Commands, MongoConfig};
///
/// let commands = Commands::new();
/// let config = MongoConfig::new("mongodb://localhost").commands(&commands);
/// assert_eq!(commands.total(), 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Commands {
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
    recorder: Option<Arc<Mutex<Vec<Recorded>>>>,
}

impl Commands {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// All commands so far.
    pub fn total(&self) -> u64 {
        self.by_name().values().sum()
    }

    /// The commands so far, by their names (`find`, `bulkWrite` …).
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the commands themselves too, for tests that have the server explain them.
    #[doc(hidden)]
    pub fn recording() -> Self {
        Self { recorder: Some(Arc::default()), ..Self::default() }
    }

    /// The commands kept since the last time, as BSON.
    #[doc(hidden)]
    pub fn take_recorded(&self) -> Vec<(String, Vec<u8>)> {
        let take = |it: &Arc<Mutex<Vec<_>>>| {
            std::mem::take(&mut *it.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.recorder.as_ref().map(take).unwrap_or_default()
    }

    fn record(&self, started: &CommandStartedEvent) {
        if let Some(recorder) = &self.recorder
            && let Ok(bytes) = started.command.to_vec()
        {
            let mut kept = recorder.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push((started.command_name.clone(), bytes));
        }
    }

    fn sent(&self, name: &str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(counts.insert(name.to_owned(), 1)),
        }
    }

    pub(crate) fn handler(&self) -> EventHandler<CommandEvent> {
        let counter = self.clone();
        EventHandler::callback(move |event| {
            if let CommandEvent::Started(started) = event {
                counter.sent(&started.command_name);
                counter.record(&started);
            }
        })
    }
}
