//! Takes what hosts say, in its order; gives what was accepted and told, and what went wrong: a client that was
//! told an older version than before, or does not have the newest that was accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::host::CLIENTS;

/// All that was said so far.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The newest accepted revision of each document.
    accepted: BTreeMap<String, i64>,
    /// The newest revision that each client was told of each document.
    told: BTreeMap<(usize, String), i64>,
    /// The hosts that said so.
    pub(crate) ready: BTreeSet<String>,
    /// The number of the pause that each host said last that it makes.
    paused: BTreeMap<String, usize>,
    pub(crate) puts: u64,
    pub(crate) notifications: u64,
    pub(crate) doubled: u64,
    pub(crate) refused: Vec<String>,
    pub(crate) backwards: Vec<String>,
    watch: Option<Watch>,
}

/// What is waited for after a kill: every client is told something that was accepted since.
#[derive(Debug)]
struct Watch {
    before: BTreeMap<String, i64>,
    waiting: BTreeSet<usize>,
    done: Option<Instant>,
}

impl Record {
    /// Takes a line.
    pub(crate) fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["ready", name] => drop(self.ready.insert(name.to_owned())),
            ["paused", name, number] => {
                self.paused.insert(name.to_owned(), number.parse().unwrap());
            }
            ["accepted", document, revision] => {
                let revision = revision.parse().unwrap();
                self.puts += 1;
                self.accepted.insert(document.to_owned(), revision);
            }
            ["told", client, document, revision] => {
                self.tell(client.parse().unwrap(), document, revision.parse().unwrap());
            }
            ["refused", ..] => self.refused.push(line.to_owned()),
            _ => panic!("a host says {line:?}"),
        }
    }

    fn tell(&mut self, client: usize, document: &str, revision: i64) {
        self.notifications += 1;
        let newest = self.told.entry((client, document.to_owned())).or_insert(i64::MIN);
        if revision < *newest {
            let line = format!("client {client} was told {document} {revision} after {newest}");
            self.backwards.push(line);
        }
        self.doubled += u64::from(revision == *newest);
        *newest = revision.max(*newest);
        let Some(watch) = &mut self.watch else { return };
        if watch.before.get(document).is_none_or(|before| revision > *before) {
            watch.waiting.remove(&client);
            if watch.waiting.is_empty() && watch.done.is_none() {
                watch.done = Some(Instant::now());
            }
        }
    }

    /// From now on it is waited until every client was told something new.
    pub(crate) fn watch(&mut self) {
        let waiting = (0..CLIENTS).collect();
        self.watch = Some(Watch { before: self.accepted.clone(), waiting, done: None });
    }

    /// When every client had been, once it has.
    pub(crate) fn watched(&self) -> Option<Instant> {
        self.watch.as_ref().and_then(|watch| watch.done)
    }

    /// How many hosts make the pause of a number.
    pub(crate) fn pausing(&self, number: usize) -> usize {
        self.paused.values().filter(|paused| **paused == number).count()
    }

    /// What was accepted and some client does not have, nor anything newer.
    pub(crate) fn missing(&self) -> Vec<String> {
        let each = self.accepted.iter().flat_map(|it| (0..CLIENTS).map(move |client| (client, it)));
        let missing = each.filter_map(|(client, (document, revision))| {
            let told = self.told.get(&(client, document.clone()));
            let has = told.is_some_and(|told| told >= revision);
            (!has).then(|| format!("client {client} has {told:?} of {document} {revision}"))
        });
        missing.collect()
    }
}
