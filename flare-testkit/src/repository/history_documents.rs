//! Random histories of documents, beside a small model that knows the rules by itself.

use std::collections::BTreeSet;

use flare_core::model::{DocumentChange, DocumentKey, PartitionId, Revision, Version};
use flare_core::port::{ClosePartition, Closed, DocumentWrite, Opened};

use super::make::{Make, Repo, content, delete, document, gone, live, mark, only, open, write};

const SEEDS: [u64; 4] = [1, 2, 3, 1_871];

/// RD1 to RD9 together: a long random history leaves what the model says, at every step.
pub async fn rd_history_agrees_with_the_model(repo: Repo) {
    for seed in SEEDS {
        let make = Make::new(&format!("rd_history_{seed}"));
        let mut random = fastrand::Rng::with_seed(seed);
        let keys = make.documents(3);
        let mut models = [const { None::<Model> }; 3];
        for step in 0..300 {
            let index = random.usize(..keys.len());
            let (key, model) = (&keys[index], &mut models[index]);
            let story = format!("seed {seed}, step {step}, document {index}, {model:?}");
            match random.u8(..12) {
                0..=3 => {
                    let revision = random.i64(0..8) + i64::from(step) / 20;
                    let text = format!(r#"{{"rev":{revision},"step":{step}}}"#);
                    try_put(&repo, key, model, revision, text, &story).await;
                }
                4 | 5 => {
                    let named = random.bool().then(|| random.i64(0..8) + i64::from(step) / 20);
                    try_delete(&repo, key, model, named, &story).await;
                }
                6 | 7 => try_open(&repo, key, model, &mut random, &story).await,
                8 | 9 => try_close(&repo, key, model, &mut random, &story).await,
                10 => try_mark(&repo, key, model, &mut random).await,
                _ => try_remove(&repo, key, model, &mut random, &story).await,
            }
            compare(&repo, key, model.as_ref(), &story).await;
        }
    }
}

/// A document in the model: versions are pairs, whose order is that of versions.
#[derive(Debug, Clone)]
struct Model {
    version: (i64, bool),
    content: Option<String>,
    dispatched: Option<(i64, bool)>,
    open: Option<BTreeSet<u32>>,
}

impl Model {
    fn spread(&self) -> bool {
        self.dispatched == Some(self.version)
    }
}

fn real(version: (i64, bool)) -> Version {
    if version.1 { gone(version.0) } else { live(version.0) }
}

/// The document's version mostly, else one nearby.
fn some_version(model: &Option<Model>, random: &mut fastrand::Rng) -> (i64, bool) {
    let (revision, gone) = model.as_ref().map_or((1, false), |model| model.version);
    match random.u8(..6) {
        0 => (revision - 1, gone),
        1 => (revision, !gone),
        2 => (revision + 1, gone),
        _ => (revision, gone),
    }
}

async fn try_put(
    repo: &Repo,
    key: &DocumentKey,
    model: &mut Option<Model>,
    revision: i64,
    text: String,
    story: &str,
) {
    let put = DocumentWrite::put(key.clone(), Revision::new(revision), content(&text));
    let outcome = write(repo, put).await;
    let expected = match model {
        None => {
            let version = (revision, false);
            *model = Some(Model { version, content: Some(text), dispatched: None, open: None });
            DocumentChange::Created
        }
        Some(stored) if (revision, false) == stored.version => DocumentChange::Unchanged,
        Some(stored) if (revision, false) < stored.version => DocumentChange::Stale,
        Some(stored) => {
            let came_back = stored.version.1;
            (stored.version, stored.content) = ((revision, false), Some(text));
            stored.open = None;
            if came_back { DocumentChange::Created } else { DocumentChange::Updated }
        }
    };
    assert_eq!(outcome.change, expected, "{story}: put {revision}");
    assert_eq!(
        outcome.undispatched,
        model.as_ref().is_some_and(|model| !model.spread()),
        "{story}"
    );
}

async fn try_delete(
    repo: &Repo,
    key: &DocumentKey,
    model: &mut Option<Model>,
    named: Option<i64>,
    story: &str,
) {
    let outcome = write(repo, delete(key, named)).await;
    let expected = match (&mut *model, named) {
        (None, None) => DocumentChange::Unchanged,
        (None, Some(revision)) => {
            let version = (revision, true);
            let dispatched = Some(version);
            *model = Some(Model { version, content: None, dispatched, open: None });
            DocumentChange::Unchanged
        }
        (Some(stored), Some(revision)) if revision < stored.version.0 => DocumentChange::Stale,
        (Some(stored), named) => {
            let target = (named.unwrap_or(stored.version.0), true);
            let (was_gone, was_spread) = (stored.version.1, stored.spread());
            if target > stored.version {
                (stored.version, stored.open) = (target, None);
                if was_gone && was_spread {
                    stored.dispatched = Some(target);
                }
            }
            if was_gone { DocumentChange::Unchanged } else { DocumentChange::Deleted }
        }
    };
    assert_eq!(outcome.change, expected, "{story}: delete {named:?}");
    assert_eq!(
        outcome.undispatched,
        model.as_ref().is_some_and(|model| !model.spread()),
        "{story}"
    );
}

async fn try_open(
    repo: &Repo,
    key: &DocumentKey,
    model: &mut Option<Model>,
    random: &mut fastrand::Rng,
    story: &str,
) {
    let version = some_version(model, random);
    let mut partitions: Vec<u32> = (0..4).filter(|_| random.bool()).collect();
    partitions.push(4);
    let mut answer = open(repo, key, real(version), &partitions).await;
    if let Opened::Open(open) = &mut answer {
        open.sort_unstable();
    }
    let expected = match model {
        Some(stored) if stored.version == version && stored.spread() => Opened::Dispatched,
        Some(stored) if stored.version == version => {
            let open = stored.open.get_or_insert_with(|| partitions.into_iter().collect());
            Opened::Open(open.iter().copied().map(PartitionId::new).collect())
        }
        _ => Opened::Superseded,
    };
    assert_eq!(answer, expected, "{story}: open {version:?}");
}

async fn try_close(
    repo: &Repo,
    key: &DocumentKey,
    model: &mut Option<Model>,
    random: &mut fastrand::Rng,
    story: &str,
) {
    let (version, partition) = (some_version(model, random), random.u32(..5));
    let close = ClosePartition {
        key: key.clone(),
        version: real(version),
        partition: PartitionId::new(partition),
    };
    let answer = only(repo.close_partitions(vec![close]).await).unwrap();
    let expected = match model {
        Some(stored) if stored.version == version => {
            let emptied = stored.open.as_mut().is_some_and(|open| {
                open.remove(&partition);
                open.is_empty()
            });
            if emptied {
                stored.dispatched = Some(version);
            }
            if stored.spread() { Closed::Dispatched } else { Closed::Open }
        }
        _ => Closed::Superseded,
    };
    assert_eq!(answer, expected, "{story}: close {partition} of {version:?}");
}

async fn try_mark(
    repo: &Repo,
    key: &DocumentKey,
    model: &mut Option<Model>,
    random: &mut fastrand::Rng,
) {
    let version = some_version(model, random);
    // Nobody spreads what is not stored, and what then happens is left open.
    if let Some(stored) = model.as_mut().filter(|stored| version <= stored.version) {
        mark(repo, key, real(version)).await;
        stored.dispatched = stored.dispatched.max(Some(version));
    }
}

async fn try_remove(
    repo: &Repo,
    key: &DocumentKey,
    model: &mut Option<Model>,
    random: &mut fastrand::Rng,
    story: &str,
) {
    let version = some_version(model, random);
    let removed = repo.remove_document(key, real(version)).await.unwrap();
    let taken = model.take_if(|stored| stored.version == version && stored.spread());
    assert_eq!(removed, taken.is_some(), "{story}: remove {version:?}");
}

async fn compare(repo: &Repo, key: &DocumentKey, model: Option<&Model>, story: &str) {
    let stored = document(repo, key).await;
    let (Some(stored), Some(model)) = (&stored, model) else {
        assert_eq!(stored.is_some(), model.is_some(), "{story}: {stored:?}");
        return;
    };
    assert_eq!(stored.version, real(model.version), "{story}");
    assert_eq!(stored.dispatched, model.dispatched.map(real), "{story}");
    assert_eq!(stored.content, model.content.as_deref().map(content), "{story}");
    // Once everything is spread there is no telling an empty set from none.
    if !model.spread() {
        let open = stored.open.as_ref().map(|open| open.iter().map(|open| open.get()).collect());
        assert_eq!(open, model.open, "{story}");
    }
}
