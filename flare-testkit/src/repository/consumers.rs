//! Clauses RC1 to RC5: inputs that documents are pulled from, and what their owners store of them.

use flare_core::model::{
    Applied, Checkpoint, Consumer, ConsumerId, ConsumerState, ConsumerStatus, Epoch, Generation,
    OnReject, Reject, Timestamp,
};
use flare_core::port::{Page, Replaced};

use super::make::{LONG_AGO, Make, Repo, all, epochs, race};

/// More rejects than any clause stores.
const ENOUGH: usize = 1_000;

/// RC1: what is inserted is stored; inserting its id again changes nothing, and gives what is there.
pub async fn rc1_the_same_again_changes_nothing(repo: Repo) {
    let make = Make::new("rc1_again");
    let given = make.consumer();
    assert_eq!(repo.consumer(given.id).await.unwrap(), None, "not inserted yet");
    assert_eq!(repo.insert_consumer(given.clone()).await.unwrap(), given);
    let mut other = make.consumer();
    (other.id, other.generation) = (given.id, Generation::new(9));
    (other.status, other.on_reject) = (ConsumerStatus::Paused, OnReject::Leave);
    for again in [&given, &other] {
        assert_eq!(repo.insert_consumer(again.clone()).await.unwrap(), given);
        assert_eq!(stored(&repo, given.id).await, given);
    }
    other.generation = given.generation;
    repo.replace_consumer(given.generation, other).await.unwrap();
    let replaced = stored(&repo, given.id).await;
    assert_eq!(replaced.status, ConsumerStatus::Paused);
    assert_eq!(repo.insert_consumer(given.clone()).await.unwrap(), replaced, "that is there now");
    assert_eq!(stored(&repo, given.id).await, replaced);
    assert_eq!(repo.consumer(make.id()).await.unwrap(), None, "another id");
}

/// RC1: of inserts of one id at once one is stored, and every caller learns which.
pub async fn rc1_one_of_many_inserts_is_stored(repo: Repo) {
    let make = Make::new("rc1_race");
    for _ in 0..8 {
        let id = make.id();
        let rivals: Vec<Consumer> = (0..8)
            .map(|_| {
                let mut rival = make.consumer();
                rival.id = id;
                rival
            })
            .collect();
        let answers = race(|racer| {
            let (port, rival) = (repo.port(), rivals[racer].clone());
            async move { port.insert_consumer(rival).await.unwrap() }
        })
        .await;
        let winner = stored(&repo, id).await;
        assert!(rivals.contains(&winner), "one of them, and nothing in between");
        assert!(answers.iter().all(|answer| *answer == winner), "all learn which");
    }
}

/// RC1: sources' settings and mappings of every form come back exactly, inserted or replaced, however read.
pub async fn rc1_all_of_it_comes_back_exactly(repo: Repo) {
    let make = Make::new("rc1_exactly");
    let mut expected = Vec::new();
    for (number, document) in MAPPINGS.into_iter().enumerate() {
        let mut rich = make.consumer_of(RICH_SOURCE, document);
        rich.generation = Generation::new(number as u64 + 1);
        if number % 2 == 0 {
            (rich.status, rich.on_reject) = (ConsumerStatus::Paused, OnReject::Leave);
        }
        rich.updated_at = Timestamp::from_unix_nanos(1_700_000_000_987_654_321);
        assert_eq!(repo.insert_consumer(rich.clone()).await.unwrap(), rich);

        // Another one gets all of it by replacement.
        let plain = make.consumer();
        repo.insert_consumer(plain.clone()).await.unwrap();
        let mut new = rich.clone();
        (new.id, new.resource, new.generation) = (plain.id, plain.resource, plain.generation);
        repo.replace_consumer(plain.generation, new.clone()).await.unwrap();
        new.generation = Generation::new(2);
        expected.extend([rich, new]);
    }
    let listed = repo.list_consumers(Page::new(100, 0)).await.unwrap().items;
    let scanned = all(repo.scan_consumers(None)).await;
    for expected in expected {
        assert_eq!(stored(&repo, expected.id).await, expected);
        for found in [&listed, &scanned] {
            assert_eq!(found.iter().find(|it| it.id == expected.id), Some(&expected));
        }
    }
}

/// RC2: a replacement changes all but id, resource and creation time, and raises the generation by one.
pub async fn rc2_replaces_at_the_generation_named(repo: Repo) {
    let make = Make::new("rc2_replaces");
    let bystander = make.consumer();
    let old = make.consumer();
    for given in [&bystander, &old] {
        repo.insert_consumer(given.clone()).await.unwrap();
    }
    let mut new = make.consumer_of(OTHER_SOURCE, MAPPINGS[1]);
    (new.id, new.generation) = (old.id, Generation::new(40));
    (new.status, new.on_reject) = (ConsumerStatus::Paused, OnReject::Leave);
    (new.created_at, new.updated_at) = (Timestamp::EPOCH, Timestamp::from_unix_nanos(1_234_567));
    let replaced = repo.replace_consumer(old.generation, new.clone()).await.unwrap();

    let mut expected = new;
    (expected.resource, expected.created_at) = (old.resource, old.created_at);
    expected.generation = Generation::new(2);
    assert_eq!(replaced, Replaced::Done(expected.clone()));
    assert_eq!(stored(&repo, old.id).await, expected);

    // And back again: nothing of what was there in between is left.
    let replaced = repo.replace_consumer(Generation::new(2), old.clone()).await.unwrap();
    let mut expected = old;
    expected.generation = Generation::new(3);
    assert_eq!(replaced, Replaced::Done(expected.clone()));
    assert_eq!(stored(&repo, expected.id).await, expected);
    assert_eq!(stored(&repo, bystander.id).await, bystander);
}

/// RC2: at any other generation nothing changes, and the caller learns what is there.
pub async fn rc2_other_generations_learn_what_is_there(repo: Repo) {
    let make = Make::new("rc2_conflict");
    let given = make.consumer();
    repo.insert_consumer(given.clone()).await.unwrap();
    repo.replace_consumer(given.generation, given.clone()).await.unwrap();
    let current = stored(&repo, given.id).await;
    for generation in [0, 1, 3] {
        let mut new = current.clone();
        new.status = ConsumerStatus::Paused;
        // The generation that counts is the one named, not the one that the new value has.
        new.generation = Generation::new(2);
        let answer = repo.replace_consumer(Generation::new(generation), new).await.unwrap();
        assert_eq!(answer, Replaced::Conflict(current.clone()), "at {generation}");
        assert_eq!(stored(&repo, given.id).await, current);
    }
    let unknown = make.consumer();
    let answer = repo.replace_consumer(Generation::new(1), unknown.clone()).await.unwrap();
    assert_eq!(answer, Replaced::Missing);
    assert_eq!(repo.consumer(unknown.id).await.unwrap(), None);
}

/// RC2: of replacements at once one takes place, the others learn of it.
pub async fn rc2_one_of_many_replacements_wins(repo: Repo) {
    let make = Make::new("rc2_race");
    let given = make.consumer();
    repo.insert_consumer(given.clone()).await.unwrap();
    for round in 1..=12 {
        let old = stored(&repo, given.id).await;
        assert_eq!(old.generation, Generation::new(round));
        let rivals: Vec<Consumer> = (0..8).map(|_| make.consumer()).collect();
        let answers = race(|racer| {
            let (port, mut new) = (repo.port(), old.clone());
            new.source = rivals[racer].source.clone();
            async move { port.replace_consumer(new.generation, new).await.unwrap() }
        })
        .await;
        let won = stored(&repo, given.id).await;
        let mut winners = 0;
        for (answer, rival) in answers.into_iter().zip(&rivals) {
            match answer {
                Replaced::Done(new) => {
                    winners += 1;
                    assert_eq!(new.source, rival.source);
                    assert_eq!(new, won);
                }
                other => assert_eq!(other, Replaced::Conflict(won.clone())),
            }
        }
        assert_eq!(winners, 1);
    }
}

/// RC2: what its owner stored is there after a replacement as it was before.
pub async fn rc2_what_is_stored_for_it_stays(repo: Repo) {
    let make = Make::new("rc2_stays");
    let given = make.consumer();
    repo.insert_consumer(given.clone()).await.unwrap();
    fill(&repo, &make, given.id, epochs(&repo).await[1]).await;
    let before = held(&repo, given.id).await;
    assert_eq!((before.0.len(), before.1.len()), (1, 2));
    let mut new = make.consumer();
    (new.id, new.status) = (given.id, ConsumerStatus::Paused);
    for generation in [1, 2] {
        let generation = Generation::new(generation);
        repo.replace_consumer(generation, new.clone()).await.unwrap();
        assert_eq!(held(&repo, given.id).await, before);
    }
}

/// RC3: the list has all of every resource, oldest first, with their total.
pub async fn rc3_lists_oldest_first(repo: Repo) {
    let make = Make::new("rc3_lists");
    let nobody = repo.list_consumers(Page::new(2, 0)).await.unwrap();
    assert_eq!((nobody.items.len(), nobody.total), (0, 0));
    let given = inserted(&repo, &make, &[3, 0, 6, 1, 5, 2, 4]).await;
    for (limit, offset) in [(30, 0), (2, 0), (2, 2), (2, 5), (2, 6), (2, 7), (2, 1_000), (1, 3)] {
        let listing = repo.list_consumers(Page::new(limit, offset)).await.unwrap();
        let ids: Vec<_> = listing.items.iter().map(|consumer| consumer.id).collect();
        let page: Vec<_> =
            given.iter().copied().skip(offset as usize).take(limit as usize).collect();
        assert_eq!((ids, listing.total), (page, 7), "limit {limit}, offset {offset}");
    }
}

/// RC3: a scan has all of every resource by id, after the one named.
pub async fn rc3_scans_everything_by_id(repo: Repo) {
    let make = Make::new("rc3_scans");
    assert_eq!(all(repo.scan_consumers(None)).await, []);
    let before = make.id();
    let given = inserted(&repo, &make, &[7, 2, 0, 5, 1, 6, 3, 4]).await;
    let scan = async |after| {
        let found = all(repo.scan_consumers(after)).await;
        found.into_iter().map(|consumer| consumer.id).collect::<Vec<_>>()
    };
    assert_eq!(scan(None).await, given);
    assert_eq!(scan(Some(before)).await, given, "after one that is not there");
    for (index, id) in given.iter().enumerate() {
        assert_eq!(scan(Some(*id)).await, given[index + 1..]);
    }
}

/// RC4: a removed consumer is forgotten with its state and its rejects, and no other is.
pub async fn rc4_forgets_it_with_state_and_rejects(repo: Repo) {
    let make = Make::new("rc4");
    let [gone, stays] = [make.consumer(), make.consumer()];
    let epoch = epochs(&repo).await[0];
    let mut rejects = Vec::new();
    for given in [&gone, &stays] {
        repo.insert_consumer(given.clone()).await.unwrap();
        rejects = [rejects, fill(&repo, &make, given.id, epoch).await].concat();
    }
    let before = held(&repo, stays.id).await;
    for _ in 0..2 {
        repo.remove_consumer(gone.id, None).await.expect("one that is not there is no error");
        assert_eq!(repo.consumer(gone.id).await.unwrap(), None);
        let answer = repo.replace_consumer(gone.generation, gone.clone()).await.unwrap();
        assert_eq!(answer, Replaced::Missing);
    }
    let listed = repo.list_consumers(Page::new(10, 0)).await.unwrap().items;
    assert_eq!(listed, std::slice::from_ref(&stays));
    nothing_is_left(&repo, &gone, &rejects).await;
    assert_eq!(held(&repo, stays.id).await, before);
    repo.remove_consumer(make.id(), None).await.expect("nor is one that never was");
}

/// RC4: what is stored for a consumer that was removed is forgotten.
pub async fn rc4_forgets_what_is_stored_afterwards(repo: Repo) {
    let make = Make::new("rc4_afterwards");
    let [low, _, high] = epochs(&repo).await;
    let gone = make.consumer();
    repo.insert_consumer(gone.clone()).await.unwrap();
    let mut rejects = fill(&repo, &make, gone.id, low).await;
    repo.remove_consumer(gone.id, None).await.unwrap();
    for epoch in [low, high] {
        let stored = repo.store_consumer_state(epoch, gone.id, state(&make, 7)).await.unwrap();
        assert_eq!(stored, Applied::Missing);
        rejects.push(make.reject(gone.id, 9));
        repo.insert_rejects(rejects.clone(), ENOUGH).await.expect("they are only not kept");
    }
    nothing_is_left(&repo, &gone, &rejects).await;
}

/// RC4: what is stored for a consumer while it is removed is forgotten too.
pub async fn rc4_forgets_what_crosses_it(repo: Repo) {
    let make = Make::new("rc4_crosses");
    let epoch = epochs(&repo).await[0];
    for _ in 0..20 {
        let gone = make.consumer();
        repo.insert_consumer(gone.clone()).await.unwrap();
        let rejects: Vec<Reject> = (0..8).map(|nanos| make.reject(gone.id, nanos)).collect();
        race(|racer| {
            let (port, id, state) = (repo.port(), gone.id, state(&make, racer as u64));
            let reject = rejects[racer].clone();
            async move {
                if racer == 3 {
                    port.remove_consumer(id, None).await.unwrap();
                } else if racer % 2 == 0 {
                    port.store_consumer_state(epoch, id, state).await.unwrap();
                } else {
                    port.insert_rejects(vec![reject], ENOUGH).await.unwrap();
                }
            }
        })
        .await;
        assert_eq!(repo.consumer(gone.id).await.unwrap(), None);
        nothing_is_left(&repo, &gone, &rejects).await;
    }
}

/// RC4: with a generation named it is removed at that one alone; else all of it stays.
pub async fn rc4_only_at_the_generation_named(repo: Repo) {
    let make = Make::new("rc4_at");
    let given = make.consumer();
    repo.insert_consumer(given.clone()).await.unwrap();
    fill(&repo, &make, given.id, epochs(&repo).await[0]).await;
    repo.replace_consumer(given.generation, given.clone()).await.unwrap();
    let (current, before) = (stored(&repo, given.id).await, held(&repo, given.id).await);
    for generation in [0, 1, 3] {
        let at = Some(Generation::new(generation));
        assert!(!repo.remove_consumer(given.id, at).await.unwrap(), "at {generation}");
        assert_eq!(stored(&repo, given.id).await, current);
        assert_eq!(held(&repo, given.id).await, before);
    }
    for _ in 0..2 {
        let at = Some(current.generation);
        assert!(repo.remove_consumer(given.id, at).await.unwrap(), "gone is gone");
        assert_eq!(repo.consumer(given.id).await.unwrap(), None);
    }
    assert!(repo.remove_consumer(make.id(), None).await.unwrap());
}

/// RC4: of a removal at a generation and replacements at once one takes place: what was replaced is there.
pub async fn rc4_one_of_removal_and_replacements_wins(repo: Repo) {
    let make = Make::new("rc4_at_race");
    for round in 0..20 {
        let given = make.consumer();
        repo.insert_consumer(given.clone()).await.unwrap();
        let answers = race(|racer| {
            let (port, given) = (repo.port(), given.clone());
            async move {
                if racer % 2 == 0 {
                    let removed = port.remove_consumer(given.id, Some(given.generation)).await;
                    return !removed.unwrap();
                }
                // Later from round to round, so that a removal has begun before it in some of them.
                for _ in 0..round {
                    tokio::task::yield_now().await;
                }
                let replaced = port.replace_consumer(given.generation, given).await.unwrap();
                matches!(replaced, Replaced::Done(_))
            }
        })
        .await;
        let replaced = answers.iter().skip(1).step_by(2).any(|done| *done);
        let left = answers.iter().step_by(2).filter(|left| **left).count();
        let is_there = repo.consumer(given.id).await.unwrap().is_some();
        assert_eq!(replaced, is_there, "what was replaced stays");
        assert_eq!(left, if is_there { 4 } else { 0 }, "and those who remove it hear so");
    }
}

/// RC5: an owner's state is stored unless a later owner has written it.
pub async fn rc5_states_are_fenced(repo: Repo) {
    let make = Make::new("rc5_fence");
    let [low, middle, high] = epochs(&repo).await;
    let ids = inserted(&repo, &make, &[0, 1]).await;
    let (id, other) = (ids[0], ids[1]);
    let steps = [
        (middle, Applied::Done),
        (low, Applied::Fenced { epoch: middle }),
        (middle, Applied::Done),
        (high, Applied::Done),
        (middle, Applied::Fenced { epoch: high }),
        (low, Applied::Fenced { epoch: high }),
        (high, Applied::Done),
    ];
    let mut expected = Vec::new();
    for (step, (epoch, answer)) in steps.into_iter().enumerate() {
        // Every other state has next to nothing in it: what was there before is not mixed in.
        let mut state = state(&make, step as u64);
        if step % 2 == 1 {
            state = ConsumerState::default();
            state.stored_at = step as i64;
        }
        let stored = repo.store_consumer_state(epoch, id, state.clone()).await.unwrap();
        assert_eq!(stored, answer, "step {step}");
        if answer == Applied::Done {
            expected = vec![(id, epoch, state)];
        }
        assert_eq!(repo.consumer_states(vec![id]).await.unwrap(), expected, "step {step}");
    }
    // Each consumer has a fence of its own.
    let stored = repo.store_consumer_state(low, other, state(&make, 1)).await.unwrap();
    assert_eq!(stored, Applied::Done);
}

/// RC5: of owners at once the one with the greatest epoch has the last word.
pub async fn rc5_the_greatest_epoch_stays(repo: Repo) {
    let make = Make::new("rc5_race");
    let base = epochs(&repo).await[0].get();
    for round in 0..12 {
        let consumer = make.consumer();
        let id = consumer.id;
        repo.insert_consumer(consumer).await.unwrap();
        let states: Vec<ConsumerState> = (0..8).map(|racer| state(&make, racer)).collect();
        // The greatest is another racer's in every round.
        let epoch = |racer: usize| Epoch::new(base + (racer as u64 + round) % 8);
        let answers = race(|racer| {
            let (port, epoch, state) = (repo.port(), epoch(racer), states[racer].clone());
            async move { port.store_consumer_state(epoch, id, state).await.unwrap() }
        })
        .await;
        let greatest = (0..8).max_by_key(|racer| epoch(*racer)).expect("there are racers");
        assert_eq!(answers[greatest], Applied::Done);
        for (racer, answer) in answers.into_iter().enumerate() {
            match answer {
                Applied::Done => {}
                Applied::Fenced { epoch: by } => assert!(by > epoch(racer), "{by:?}"),
                other => panic!("{other:?}"),
            }
        }
        let found = repo.consumer_states(vec![id]).await.unwrap();
        assert_eq!(found, [(id, epoch(greatest), states[greatest].clone())]);
    }
}

/// RC5: states are given as they were stored last, of many at once, and none where nothing was stored.
pub async fn rc5_gives_what_was_stored_last(repo: Repo) {
    let make = Make::new("rc5_reads");
    let [low, middle, high] = epochs(&repo).await;
    let ids = inserted(&repo, &make, &[0, 1, 2, 3]).await;
    let unknown: ConsumerId = make.id();
    let answer = repo.store_consumer_state(low, unknown, state(&make, 1)).await.unwrap();
    assert_eq!(answer, Applied::Missing);
    assert_eq!(repo.consumer_states([&ids[..], &[unknown]].concat()).await.unwrap(), []);

    let mut expected = Vec::new();
    for (id, epoch) in ids.iter().zip([low, middle, high]) {
        for count in [1, u64::MAX] {
            let answer = repo.store_consumer_state(epoch, *id, state(&make, count)).await.unwrap();
            assert_eq!(answer, Applied::Done);
        }
        let last = state(&make, u64::from(id.as_bytes()[15]));
        repo.store_consumer_state(epoch, *id, last.clone()).await.unwrap();
        expected.push((*id, epoch, last));
    }
    let asked = async |ids: Vec<ConsumerId>| {
        let mut found = repo.consumer_states(ids).await.unwrap();
        found.sort_by_key(|(id, ..)| *id);
        found
    };
    assert_eq!(asked(vec![ids[3], unknown, ids[2], ids[0], ids[1]]).await, expected);
    assert_eq!(asked(vec![ids[2], ids[0]]).await, [expected[0].clone(), expected[2].clone()]);
    assert_eq!(asked(vec![ids[1]]).await, expected[1..2]);
    assert_eq!(asked(vec![ids[3], unknown]).await, []);
    assert_eq!(asked(Vec::new()).await, []);
}

/// RC5: a claim gives what is stored and leaves it so; from then on lesser epochs are fenced, and only those.
pub async fn rc5_a_claim_gives_what_is_stored_and_fences(repo: Repo) {
    let make = Make::new("rc5_claim");
    let [low, middle, high] = epochs(&repo).await;
    let ids = inserted(&repo, &make, &[0, 1]).await;
    let claim = async |epoch, id| repo.claim_consumer_state(epoch, id).await.unwrap();
    assert_eq!(claim(low, make.id()).await, None, "there is no such consumer");
    // Of one that was never worked there is an empty state, and it fences as any other.
    assert_eq!(claim(middle, ids[0]).await, Some(ConsumerState::default()));
    assert_eq!(claim(low, ids[0]).await, None, "another has it");
    let late = repo.store_consumer_state(low, ids[0], state(&make, 1)).await.unwrap();
    assert_eq!(late, Applied::Fenced { epoch: middle });
    let worked = state(&make, 7);
    for (epoch, id) in [(middle, ids[0]), (low, ids[1])] {
        let answer = repo.store_consumer_state(epoch, id, worked.clone()).await.unwrap();
        assert_eq!(answer, Applied::Done);
        assert_eq!(claim(high, id).await, Some(worked.clone()));
        assert_eq!(claim(high, id).await, Some(worked.clone()), "once more by the same owner");
        assert_eq!(claim(epoch, id).await, None);
        let late = repo.store_consumer_state(epoch, id, state(&make, 8)).await.unwrap();
        assert_eq!(late, Applied::Fenced { epoch: high });
        let found = repo.consumer_states(vec![id]).await.unwrap();
        assert_eq!(found, [(id, high, worked.clone())], "as it was");
    }
}

/// RC5: what a former owner stores while it is taken over is either seen by the claim or fenced.
pub async fn rc5_a_claim_misses_nothing(repo: Repo) {
    let make = Make::new("rc5_claim_race");
    let [former, successor, _] = epochs(&repo).await;
    for _ in 0..8 {
        let [id] = inserted(&repo, &make, &[0]).await[..] else { panic!("one consumer") };
        let counted = |count| state(&make, count);
        repo.store_consumer_state(former, id, counted(0)).await.unwrap();
        let states: Vec<ConsumerState> = (1..=6).map(counted).collect();
        let writing = {
            let (port, states) = (repo.port(), states.clone());
            tokio::spawn(async move {
                let mut last = 0;
                for state in states {
                    let count = state.received;
                    match port.store_consumer_state(former, id, state).await.unwrap() {
                        Applied::Done => last = count,
                        _ => break,
                    }
                }
                last
            })
        };
        let claimed = repo.claim_consumer_state(successor, id).await.unwrap();
        let claimed = claimed.expect("no greater epoch has it");
        let last = writing.await.unwrap();
        assert_eq!(claimed.received, last, "the last that was not fenced");
        let found = repo.consumer_states(vec![id]).await.unwrap();
        assert_eq!(found, [(id, successor, claimed)]);
    }
}

/// The consumer, which must be there.
async fn stored(repo: &Repo, id: ConsumerId) -> Consumer {
    repo.consumer(id).await.unwrap().expect("the consumer is there")
}

/// Inserts as many consumers in an order of indexes; gives their ids, oldest first.
async fn inserted(repo: &Repo, make: &Make, order: &[usize]) -> Vec<ConsumerId> {
    let given: Vec<Consumer> = order.iter().map(|_| make.consumer()).collect();
    for index in order {
        repo.insert_consumer(given[*index].clone()).await.unwrap();
    }
    given.iter().map(|consumer| consumer.id).collect()
}

/// Stores a state and two rejects of a consumer; gives the rejects.
async fn fill(repo: &Repo, make: &Make, id: ConsumerId, epoch: Epoch) -> Vec<Reject> {
    let answer = repo.store_consumer_state(epoch, id, state(make, 5)).await.unwrap();
    assert_eq!(answer, Applied::Done);
    let rejects = vec![make.reject(id, 1), make.reject(id, 2)];
    repo.insert_rejects(rejects.clone(), ENOUGH).await.unwrap();
    rejects
}

/// All that is stored for a consumer.
async fn held(
    repo: &Repo,
    id: ConsumerId,
) -> (Vec<(ConsumerId, Epoch, ConsumerState)>, Vec<Reject>) {
    let states = repo.consumer_states(vec![id]).await.unwrap();
    (states, repo.list_rejects(id, Page::new(100, 0)).await.unwrap().items)
}

/// Insists that nothing is stored for a consumer that was removed, nor for one that gets its id anew.
async fn nothing_is_left(repo: &Repo, gone: &Consumer, rejects: &[Reject]) {
    let ids: Vec<_> = rejects.iter().filter(|it| it.consumer == gone.id).map(|it| it.id).collect();
    for anew in [false, true] {
        if anew {
            assert_eq!(repo.insert_consumer(gone.clone()).await.unwrap(), *gone);
        }
        assert_eq!(held(repo, gone.id).await, (Vec::new(), Vec::new()), "anew: {anew}");
        let total = repo.list_rejects(gone.id, Page::new(1, 0)).await.unwrap().total;
        assert_eq!(total, 0, "anew: {anew}");
        assert_eq!(repo.rejects(gone.id, ids.clone()).await.unwrap(), [], "anew: {anew}");
    }
}

/// All that an owner can know of a consumer.
fn state(make: &Make, count: u64) -> ConsumerState {
    let mut state = ConsumerState::default();
    state.node = Some(make.id());
    state.checkpoints = vec![
        Checkpoint::new("shardId-000000000000", "4959033827149025660855969253836157109592"),
        Checkpoint::new("$a.b \"ü\" 😀\u{0}", ""),
    ];
    (state.received, state.accepted, state.unchanged) = (count, u64::MAX, 0);
    state.rejected = 3;
    state.reasons = [("not-json", 1), ("$a.b", 2), ("", u64::MAX)]
        .map(|(reason, count)| (reason.to_owned(), count))
        .into();
    (state.rates.received.minute, state.rates.received.five_minutes) = (0.1, 1_234.5);
    (state.rates.accepted.minute, state.rates.rejected.five_minutes) = (1.0, 0.25);
    state.last_message_at = Some(LONG_AGO.unix_nanos());
    state.last_error = Some("broker.$ said: \"nö\"\n'; --".to_owned());
    state.last_error_at = Some(i64::MIN);
    (state.depth, state.behind_millis) = (Some(u64::MAX), Some(0));
    state.stored_at = i64::MAX;
    state
}

/// Settings that a store which reads JSON, paths or patterns of its own would spoil.
const RICH_SOURCE: &str = r#"{"kind": "my.$kind ü", "settings": {
    "$set": {"a.b": {"": [1, -2.5, true, null, {"deep": [[], {}, [{"er": "😀"}]]}]}},
    "dotted.name": "C:\\temp \"quoted\" 'n' %s ? $1 {x}\n\t",
    "ünïcode 😀": "Grüße, 世界 \u0000\u001f",
    "big": 18446744073709551615, "low": -9223372036854775808, "float": 0.1,
    "null": null, "true": false, "no": {}, "none": [], "_id": "id", "": ""
}}"#;

const OTHER_SOURCE: &str = r#"{"kind": "other", "settings": {"stream": "users.$", "shards": [0]}}"#;

/// Every field of a mapping, every preset, and both forms of what is deleted.
const MAPPINGS: [&str; 6] = [
    r#"{"url": "https://rc.example/a%7E.$/{/user/id}/{/a.b~1$c/0}"}"#,
    r#"{"preset": "sns", "url": "https://rc.example/{/id}", "content": "/after/$doc.x",
        "delete": {"pointer": "/op.$", "equals": "gelöscht \"d\""}, "revision": "/ts",
        "split": "/records"}"#,
    r#"{"preset": "eventbridge", "url": "https://rc.example/{/id}", "revision": "/a~0b",
        "delete": "document.op == 'd' && document[\"$a.b\"] != \"ü\\n\""}"#,
    r#"{"preset": "debezium", "url": "https://rc.example/{/id}", "revision": "/ts_ms"}"#,
    r#"{"url": "https://rc.example/{/id}",
        "delete": {"pointer": "/gone", "equals": 18446744073709551615}}"#,
    r#"{"url": "https://rc.example/{/id}", "content": "/0", "delete": {"pointer": "/gone", "equals": true}}"#,
];
