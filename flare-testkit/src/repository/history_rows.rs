//! Random histories of rows, beside a small model that knows the rules by itself.

use std::time::Duration;

use flare_core::model::{
    Applied, ClaimEffect, ClaimId, DeadLetterId, DocumentKey, Epoch, Generation, Present, Round,
    Row, RowEffect, RowKey, SubscriptionId, Timestamp, Version,
};
use flare_core::port::{ClaimRows, ClaimUpdate, Replay};

use super::make::{
    LONG_AGO, Make, Repo, apply, epochs, find_row, gone, live, now, only, spread_at,
};
use super::rows_dead::dead_letter;

const SEEDS: [u64; 4] = [1, 2, 3, 1_871];

/// RR2 to RR9 together: a long random history leaves what the model says, at every step.
pub async fn rr_history_agrees_with_the_model(repo: Repo) {
    for seed in SEEDS {
        let make = Make::new(&format!("rr_history_{seed}"));
        let mut history = History {
            random: fastrand::Rng::with_seed(seed),
            subscription: make.id(),
            documents: make.documents(3),
            oldest: epochs(&repo).await[0],
            models: [const { None }; 3],
            claims: (0..3).map(|_| make.id()).collect(),
            story: String::new(),
        };
        for step in 0..300_i64 {
            let index = history.random.usize(..3);
            let model = &history.models[index];
            history.story = format!("seed {seed}, step {step}, row {index}, {model:?}");
            let version = live(history.random.i64(0..6) + step / 20);
            let version =
                if history.random.u8(..4) == 0 { gone(version.revision().get()) } else { version };
            if step % 25 == 24 {
                history.oldest = Epoch::new(history.oldest.get() + 1);
            }
            match history.random.u8(..10) {
                0..=2 => history.spread(&repo, index, version).await,
                3..=6 => history.apply(&repo, index, version, make.id()).await,
                7 => history.replay(&repo, index, version).await,
                8 => history.claim(&repo, make.id()).await,
                _ => history.settle_claim(&repo, index, version).await,
            }
            repo.pass_ticks(u32::from(history.random.u8(..8) == 0)).await;
            history.compare(&repo, index).await;
        }
    }
}

/// A row in the model; what only the store can know (times) is taken from it once it was checked.
#[derive(Debug, Clone)]
struct Model {
    wanted: Version,
    settled: Option<Version>,
    given_up: Option<Version>,
    dead: Option<DeadLetterId>,
    present: Present,
    generation: u64,
    attempts: u32,
    attempted: Option<Version>,
    due: Timestamp,
    since: Timestamp,
    epoch: Epoch,
    claim: Option<ClaimId>,
}

impl Model {
    fn pending(&self) -> bool {
        let below = |done: Option<Version>| done.is_none_or(|done| done < self.wanted);
        below(self.settled) && below(self.given_up)
    }
}

struct History {
    random: fastrand::Rng,
    subscription: SubscriptionId,
    documents: Vec<DocumentKey>,
    /// The least epoch that anybody may still come along with.
    oldest: Epoch,
    models: [Option<Model>; 3],
    claims: Vec<ClaimId>,
    story: String,
}

impl History {
    fn key(&self, index: usize) -> RowKey {
        RowKey::new(self.subscription, self.documents[index].url.clone())
    }

    async fn spread(&mut self, repo: &Repo, index: usize, version: Version) {
        let generation = self.random.u64(1..20);
        let before = now(repo).await;
        let document = &self.documents[index];
        spread_at(repo, self.subscription, generation, document, version).await;
        let was_pending = self.models[index].as_ref().is_some_and(Model::pending);
        let model = self.models[index].get_or_insert(Model {
            wanted: version,
            settled: None,
            given_up: None,
            dead: None,
            present: Present::No,
            generation,
            attempts: 0,
            attempted: None,
            due: before,
            since: before,
            epoch: Epoch::ZERO,
            claim: None,
        });
        model.wanted = model.wanted.max(version);
        model.generation = model.generation.max(generation);
        if !was_pending && model.pending() {
            self.afresh(repo, index, before).await;
        }
    }

    async fn apply(&mut self, repo: &Repo, index: usize, version: Version, letter: DeadLetterId) {
        let epoch = Epoch::new(self.oldest.get() + self.random.u64(0..3));
        let present = [Present::No, Present::Maybe, Present::Yes][self.random.usize(..3)];
        let effect = match self.random.u8(..3) {
            0 => RowEffect::Settle { version, present, not_before: None },
            1 => RowEffect::Retry {
                version,
                present,
                attempts: self.random.u32(1..9),
                due: if self.random.bool() { LONG_AGO } else { Timestamp::MAX },
                first_failure: Some(LONG_AGO),
            },
            _ => RowEffect::GiveUp { version, present, dead: dead_letter(letter, LONG_AGO) },
        };
        let answer = apply(repo, epoch, &self.key(index), effect.clone()).await;
        let expected = match &mut self.models[index] {
            None => Applied::Missing,
            Some(row) if row.epoch > epoch => Applied::Fenced { epoch: row.epoch },
            Some(row) if row.settled.is_some_and(|settled| settled >= version) => {
                Applied::Overtaken
            }
            Some(row)
                if matches!(effect, RowEffect::GiveUp { .. }) && row.given_up > Some(version) =>
            {
                Applied::Overtaken
            }
            Some(row) => {
                (row.epoch, row.present, row.attempts, row.attempted) = (epoch, present, 0, None);
                match effect {
                    RowEffect::Settle { .. } => {
                        row.settled = Some(version);
                        if row.given_up.is_none_or(|given_up| given_up <= version) {
                            row.dead = None;
                        }
                    }
                    RowEffect::Retry { attempts, due, .. } => {
                        (row.attempts, row.attempted, row.due) = (attempts, Some(version), due);
                    }
                    RowEffect::GiveUp { .. } => {
                        row.given_up = Some(version);
                        row.dead = Some(letter);
                    }
                }
                Applied::Done
            }
        };
        assert_eq!(answer, expected, "{}: {version} at {epoch}", self.story);
    }

    async fn replay(&mut self, repo: &Repo, index: usize, version: Version) {
        let given_up = self.models[index].as_ref().and_then(|row| row.given_up);
        let version = given_up.filter(|_| self.random.bool()).unwrap_or(version);
        let before = now(repo).await;
        let replay = Replay { key: self.key(index), version };
        let replayed = only(repo.replay_rows(vec![replay]).await).unwrap();
        assert_eq!(replayed, given_up == Some(version), "{}: replay {version}", self.story);
        if let Some(row) = self.models[index].as_mut().filter(|_| replayed) {
            let was_pending = row.pending();
            (row.given_up, row.dead) = (None, None);
            if !was_pending && row.pending() {
                self.afresh(repo, index, before).await;
            }
        }
    }

    /// Claims hold for longer than any history takes; clause RR7 has those that lapse.
    async fn claim(&mut self, repo: &Repo, claim: ClaimId) {
        let max = self.random.usize(1..3);
        let time = now(repo).await;
        let request = ClaimRows {
            subscription: self.subscription,
            claim,
            max,
            holds_for: Duration::from_secs(86_400),
        };
        let rows = repo.claim_rows(request).await.unwrap();
        let free = |row: &Model| row.pending() && row.due <= time && row.claim.is_none();
        let available = self.models.iter().flatten().filter(|row| free(row)).count();
        assert_eq!(rows.len(), available.min(max), "{}: claim {max}", self.story);
        for row in rows {
            let index = (0..3).find(|index| self.key(*index) == row.key).unwrap();
            let model = self.models[index].as_mut().unwrap();
            assert!(free(model), "{}: {model:?} was handed out", self.story);
            (model.claim, model.due) = (Some(claim), row.due);
            if model.present == Present::No {
                model.present = Present::Maybe;
            }
        }
        self.claims.remove(0);
        self.claims.push(claim);
    }

    async fn settle_claim(&mut self, repo: &Repo, index: usize, version: Version) {
        let claim = self.claims[self.random.usize(..self.claims.len())];
        let effect = match self.random.u8(..3) {
            0 => ClaimEffect::Release,
            _ => ClaimEffect::Settle { version, present: Present::Yes, not_before: None },
        };
        let settles = effect != ClaimEffect::Release;
        let (key, before) = (self.key(index), now(repo).await);
        let update = ClaimUpdate { key: key.clone(), claim, round: Round::ZERO, effect };
        let answer = only(repo.apply_claims(vec![update]).await).unwrap();
        let expected = match &mut self.models[index] {
            None => Applied::Missing,
            Some(row) if row.claim != Some(claim) => Applied::Expired,
            Some(row) => {
                row.claim = None;
                // The claim's end makes it due, by store time.
                row.due = find_row(repo, &key).await.expect("the row is there").due;
                assert!(before <= row.due && row.due <= now(repo).await, "{}", self.story);
                if !settles {
                    Applied::Done
                } else if row.settled.is_some_and(|settled| settled >= version) {
                    Applied::Overtaken
                } else {
                    (row.settled, row.present) = (Some(version), Present::Yes);
                    (row.attempts, row.attempted) = (0, None);
                    if row.given_up.is_none_or(|given_up| given_up <= version) {
                        row.dead = None;
                    }
                    Applied::Done
                }
            }
        };
        assert_eq!(answer, expected, "{}: settle {version} by claim", self.story);
    }

    /// The row became pending: its times are store time, which only the store can tell.
    async fn afresh(&mut self, repo: &Repo, index: usize, before: Timestamp) {
        let stored = find_row(repo, &self.key(index)).await.expect("the row is there");
        let after = now(repo).await;
        assert!(before <= stored.since && stored.since <= after, "{}", self.story);
        if let Some(row) = &mut self.models[index] {
            // What a puller has waits for its claim, which outlives every history.
            let due = if row.claim.is_some() { stored.due } else { stored.since };
            (row.since, row.due, row.attempts, row.attempted) = (stored.since, due, 0, None);
        }
    }

    async fn compare(&self, repo: &Repo, index: usize) {
        let stored = find_row(repo, &self.key(index)).await;
        let story = &self.story;
        let (Some(row), Some(model)) = (&stored, &self.models[index]) else {
            assert_eq!(stored.is_some(), self.models[index].is_some(), "{story}");
            return;
        };
        let Row { wanted, settled, given_up, present, attempts, attempted, epoch, .. } = row;
        assert_eq!((*wanted, *settled), (model.wanted, model.settled), "{story}");
        assert_eq!((*given_up, *present), (model.given_up, model.present), "{story}");
        assert_eq!((*attempts, *attempted), (model.attempts, model.attempted), "{story}");
        assert_eq!((row.due, row.since, *epoch), (model.due, model.since, model.epoch), "{story}");
        assert_eq!(row.generation, Generation::new(model.generation), "{story}");
        assert_eq!(row.dead.as_ref().map(|dead| dead.id), model.dead, "{story}");
        assert_eq!(row.claim.map(|claim| claim.id), model.claim, "{story}");
    }
}
