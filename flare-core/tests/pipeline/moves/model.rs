//! Takes acts in their order; gives what has to come out of them, by the words of the
//! specification and without a single call of Flare's own rules.

use flare_core::model::{Action, DocumentChange, Version};

use DocumentChange::{Created, Deleted, Stale, Unchanged, Updated};

/// How many kinds of resources match the document, numbered from the most specific one.
pub(crate) const KINDS: usize = 3;
pub(crate) const NARROW: usize = 0;
pub(crate) const WIDE: usize = 2;

/// Where each kind finds its documents, and the field it reads revisions from.
pub(crate) const RULES: [(&str, &str); KINDS] = [
    ("http://api.example/users/{id}", "n"),
    ("http://api.example/{kind}/1", "o"),
    ("http://api.example/{kind}/{id}", "w"),
];

/// What a kind calls the `number`th version: nobody else's revisions compare with it.
pub(crate) fn revision(kind: usize, number: i64) -> i64 {
    [number - 1_000, number * 10, number][kind]
}

/// The `number`th version of the document.
pub(crate) fn content(number: i64) -> String {
    let field = |kind: usize| format!("\"{}\":{}", RULES[kind].1, revision(kind, number));
    format!("{{{},{},{}}}", field(0), field(1), field(2))
}

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// A put of the version with this number.
    Put(i64),
    Delete,
    /// A delete as of the version with this number.
    DeleteAsOf(i64),
    /// A kind of resource is created, with somebody who subscribes to it; or deleted with them.
    Create(usize),
    Drop(usize),
}

/// What every client of a kind was told, in its order.
pub(crate) type Told = [Vec<(Action, i64)>; KINDS];

/// What ought to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Model {
    /// What each kind that is there stores: a revision, and whether the document is gone.
    pub(crate) kinds: [Option<Option<(i64, bool)>>; KINDS],
    pub(crate) told: Told,
}

impl Model {
    pub(crate) fn after(acts: &[Act]) -> Self {
        let mut model = Self::default();
        for act in acts {
            let _ = model.act(*act);
        }
        model
    }

    /// What is answered: a change, or that no resource matches.
    pub(crate) fn act(&mut self, act: Act) -> Option<DocumentChange> {
        match act {
            Act::Put(number) => self.put(number),
            Act::Delete => self.delete(None),
            Act::DeleteAsOf(number) => self.delete(Some(number)),
            Act::Create(kind) => {
                self.kinds[kind] = Some(None);
                None
            }
            Act::Drop(kind) => {
                self.kinds[kind] = None;
                None
            }
        }
    }

    fn stored(&self, kind: usize) -> Option<(i64, bool)> {
        self.kinds[kind].flatten()
    }

    /// The kind that holds the document live: one at most.
    pub(crate) fn live(&self) -> Option<(usize, i64)> {
        let mut live = (0..KINDS).filter_map(|kind| match self.stored(kind) {
            Some((revision, false)) => Some((kind, revision)),
            _ => None,
        });
        let found = live.next();
        assert_eq!(live.next(), None, "two resources hold it: {self:?}");
        found
    }

    fn put(&mut self, number: i64) -> Option<DocumentChange> {
        let kind = self.kinds.iter().position(Option::is_some)?;
        let revision = revision(kind, number);
        let change = match self.stored(kind) {
            None => Created,
            Some((stored, gone)) if revision > stored => {
                if gone {
                    Created
                } else {
                    Updated
                }
            }
            Some(stored) if stored == (revision, false) => Unchanged,
            Some(_) => Stale,
        };
        if change == Created || change == Updated {
            if let Some((former, held)) = self.live().filter(|(former, _)| *former != kind) {
                self.kinds[former] = Some(Some((held, true)));
                self.told[former].push((Action::Delete, held));
            }
            self.kinds[kind] = Some(Some((revision, false)));
            let action = if change == Created { Action::Create } else { Action::Update };
            self.told[kind].push((action, revision));
        }
        Some(change)
    }

    fn delete(&mut self, number: Option<i64>) -> Option<DocumentChange> {
        let best = self.kinds.iter().position(Option::is_some)?;
        let live = self.live().map(|(kind, _)| kind);
        let kind = live.or_else(|| (0..KINDS).find(|kind| self.stored(*kind).is_some()));
        let kind = kind.unwrap_or(best);
        let named = number.map(|number| revision(kind, number));
        let change = match (self.stored(kind), named) {
            (None, None) => Unchanged,
            (None, Some(named)) => {
                self.kinds[kind] = Some(Some((named, true)));
                Unchanged
            }
            (Some((stored, _)), Some(named)) if named < stored => Stale,
            (Some((stored, gone)), named) => {
                let revision = named.unwrap_or(stored);
                self.kinds[kind] = Some(Some((revision, true)));
                if !gone {
                    self.told[kind].push((Action::Delete, revision));
                }
                if gone { Unchanged } else { Deleted }
            }
        };
        Some(change)
    }

    /// What the clients of each kind that is there hold, going by what they were told.
    pub(crate) fn held(&self) -> [Option<Option<i64>>; KINDS] {
        std::array::from_fn(|kind| {
            self.kinds[kind].map(|_| {
                let last = self.told[kind].last();
                last.and_then(|(action, it)| (*action != Action::Delete).then_some(*it))
            })
        })
    }
}

/// A version as the model has it.
pub(crate) fn plain(version: Version) -> (i64, bool) {
    (version.revision().get(), version.is_gone())
}
