//! Takes random clusters and what befalls them; checks what `assign` promises at every step.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn id(number: u64) -> NodeId {
    NodeId::from_bytes(u128::from(number).to_be_bytes())
}

fn worker(number: u64, weight: u32) -> Worker {
    Worker::new(id(number), format!("node-{number}"), weight)
}

fn workers(weights: &[u32]) -> Vec<Worker> {
    (0..).zip(weights).map(|(number, weight)| worker(number, *weight)).collect()
}

type Owners = Vec<Option<NodeId>>;

fn has(owners: &Owners, id: NodeId) -> usize {
    owners.iter().filter(|owner| **owner == Some(id)).count()
}

fn moved(before: &Owners, after: &Owners) -> usize {
    before.iter().zip(after).filter(|(a, b)| a != b).count()
}

/// ceil(1.2 × weighted mean).
fn cap(workers: &[Worker], at: usize, slots: usize) -> usize {
    let shares = shares(workers);
    let sum: u64 = shares.iter().sum();
    let share = 12 * slots as u64 * shares[at];
    if sum == 0 { 0 } else { share.div_ceil(10 * sum) as usize }
}

/// Their parts; those who stand by have equal ones while no other node is there.
fn shares(workers: &[Worker]) -> Vec<u64> {
    let weighted: Vec<u64> = workers.iter().map(|it| it.share().into()).collect();
    if weighted.iter().any(|share| *share > 0) {
        return weighted;
    }
    workers.iter().map(|it| u64::from(it.receives && !it.leaves)).collect()
}

fn none(slots: usize) -> Owners {
    vec![None; slots]
}

fn unpinned(workers: &[Worker], owners: &Owners, moves: usize) -> Owners {
    assign(workers, &BTreeMap::new(), owners, moves)
}

/// Balances to the end; tells how many slots moved on the way and in how many rounds.
fn settle(workers: &[Worker], owners: &Owners, moves: usize) -> (Owners, usize, usize) {
    let (mut owners, mut total) = (owners.clone(), 0);
    for round in 0..10_000 {
        let next = unpinned(workers, &owners, moves);
        let changed = moved(&owners, &next);
        if changed == 0 {
            return (owners, total, round);
        }
        total += changed;
        owners = next;
    }
    panic!("it does not come to rest");
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_first_plan_is_within_the_cap_and_needs_no_second(
        weights in prop::collection::vec(1..5u32, 1..20), slots in 1..2_000usize,
    ) {
        let workers = workers(&weights);
        let owners = unpinned(&workers, &none(slots), 0);
        for (at, worker) in workers.iter().enumerate() {
            prop_assert!(has(&owners, worker.id) <= cap(&workers, at, slots));
        }
        prop_assert!(owners.iter().all(Option::is_some));
        prop_assert_eq!(unpinned(&workers, &owners, slots), owners);
    }

    #[test]
    fn a_loss_moves_only_what_was_lost(
        weights in prop::collection::vec(1..5u32, 2..20), slots in 1..2_000usize, lost in any::<prop::sample::Index>(),
    ) {
        let mut workers = workers(&weights);
        let owners = unpinned(&workers, &none(slots), 0);
        let gone = workers.remove(lost.index(weights.len())).id;
        let next = unpinned(&workers, &owners, 0);
        for (before, after) in owners.iter().zip(&next) {
            prop_assert!(after.is_some() && *after != Some(gone));
            prop_assert!(before == after || *before == Some(gone));
        }
        for (at, worker) in workers.iter().enumerate() {
            prop_assert!(has(&next, worker.id) <= cap(&workers, at, slots));
        }
    }

    #[test]
    fn a_join_moves_at_most_the_fair_share_and_only_to_who_joined(
        nodes in 1..20u64, per_node in 10..100usize, moves in 1..100usize,
    ) {
        let slots = nodes as usize * per_node;
        let mut workers = workers(&vec![1; nodes as usize]);
        let owners = unpinned(&workers, &none(slots), 0);
        workers.push(worker(nodes, 1));
        let (after, total, _) = settle(&workers, &owners, moves);
        prop_assert!(total <= slots.div_ceil(nodes as usize + 1), "{} of {} moved", total, slots);
        for (before, after) in owners.iter().zip(&after) {
            prop_assert!(before == after || *after == Some(id(nodes)));
        }
    }

    #[test]
    fn the_order_in_which_nodes_are_named_does_not_matter(
        weights in prop::collection::vec(0..5u32, 1..10), slots in 1..300usize,
    ) {
        let mut workers = workers(&weights);
        let owners = unpinned(&workers, &none(slots), 0);
        workers.reverse();
        prop_assert_eq!(unpinned(&workers, &none(slots), 0), owners);
    }

    /// Whatever happened before: no node is given anything beyond the cap, one that is above it got
    /// there by what happened to the others and has not gained; all slots have an owner while
    /// there is a node to take them; no more than allowed moves; and it comes to rest within the cap.
    #[test]
    fn histories_keep_every_bound(
        slots in 1..600usize,
        moves in 1..50usize,
        history in prop::collection::vec((0..8u64, 0..6u32, 0..5u8), 1..30),
    ) {
        let mut nodes: BTreeMap<u64, Worker> = BTreeMap::new();
        let mut owners = none(slots);
        for (number, weight, what) in history {
            match what {
                0 => drop(nodes.remove(&number)),
                1 => nodes.entry(number).and_modify(|it| it.leaves = true).or_insert_with(|| worker(number, weight)).receives = true,
                _ => nodes.entry(number).or_insert_with(|| worker(number, weight)).weight = weight,
            }
            let workers: Vec<Worker> = nodes.values().cloned().collect();
            let next = unpinned(&workers, &owners, moves);
            let can_work = shares(&workers).iter().any(|share| *share > 0);
            let mut changed = 0;
            for (before, after) in owners.iter().zip(&next) {
                let owner = before.and_then(|id| workers.iter().find(|it| it.id == id));
                changed += usize::from(owner.is_some_and(|it| !it.leaves) && before != after);
                prop_assert!(after.is_some() || !can_work);
                let stays = owner.is_some_and(|it| !it.leaves);
                prop_assert!(!stays || after.is_some());
            }
            prop_assert!(changed <= moves);
            for (at, worker) in workers.iter().enumerate() {
                let (had, has) = (has(&owners, worker.id), has(&next, worker.id));
                prop_assert!(has <= cap(&workers, at, slots) || has <= had);
                prop_assert!(!can_work || !worker.leaves || has == 0);
            }
            owners = next;
        }
        let workers: Vec<Worker> = nodes.values().cloned().collect();
        let (rest, _, rounds) = settle(&workers, &owners, moves);
        prop_assert!(rounds <= slots / moves + 2, "{} rounds", rounds);
        if shares(&workers).iter().any(|share| *share > 0) {
            for (at, worker) in workers.iter().enumerate() {
                prop_assert!(has(&rest, worker.id) <= cap(&workers, at, slots));
            }
        }
    }
}

#[test]
fn a_lower_weight_sheds_slowly_and_a_small_change_moves_nothing() {
    let mut workers = workers(&[100, 100, 100, 100]);
    let owners = unpinned(&workers, &none(1_024), 0);
    for wobble in [97, 103, 95, 100] {
        workers[0].weight = wobble;
        assert_eq!(unpinned(&workers, &owners, 51), owners, "{wobble}");
    }
    workers[0].weight = 50;
    let next = unpinned(&workers, &owners, 51);
    let given = has(&owners, id(0)) - has(&next, id(0));
    assert!(given > 0 && given <= 51);
    let (rest, total, _) = settle(&workers, &owners, 51);
    assert!(has(&rest, id(0)) < 170 && total < 130, "{} left, {total} moved", has(&rest, id(0)));
}

#[test]
fn weight_zero_gives_all_away_bit_by_bit_and_a_leaver_at_once() {
    let mut workers = workers(&[1, 1, 1]);
    let owners = unpinned(&workers, &none(300), 0);
    workers[1].weight = 0;
    let (rest, ..) = settle(&workers, &owners, 15);
    assert_eq!(has(&rest, id(1)), 0);
    assert_eq!(moved(&owners, &unpinned(&workers, &owners, 15)), 15);
    workers[1] = Worker { leaves: true, ..worker(1, 1) };
    assert_eq!(has(&unpinned(&workers, &owners, 0), id(1)), 0);
}

#[test]
fn nobody_to_take_over_leaves_owners_their_slots_and_others_without() {
    let mut workers = workers(&[1]);
    workers[0].leaves = true;
    let owners = vec![Some(id(0)), None, Some(id(9))];
    assert_eq!(unpinned(&workers, &owners, 9), vec![Some(id(0)), None, None]);
    assert_eq!(unpinned(&[], &owners, 9), none(3));
}

#[test]
fn a_pinned_slot_goes_to_its_node_while_that_is_there() {
    let workers = workers(&[1, 1, 1]);
    let pins: BTreeMap<u32, String> = (0..6).map(|slot| (slot, "node-2".to_owned())).collect();
    let owners = assign(&workers, &pins, &none(9), 0);
    assert!(owners[..6].iter().all(|owner| *owner == Some(id(2))));
    assert_eq!(assign(&workers, &pins, &owners, 9), owners);
    let without = assign(&workers[..2], &pins, &owners, 9);
    assert!(without.iter().all(Option::is_some));
    // Home again, as fast as slots may move.
    let back = assign(&workers, &pins, &without, 4);
    assert_eq!(moved(&without, &back), 4);
    assert_eq!(has(&back, id(2)), 4);
}

#[test]
fn a_node_started_again_gets_much_of_what_it_had() {
    let workers = workers(&[1, 1, 1, 1]);
    let owners = unpinned(&workers, &none(1_024), 0);
    let had: BTreeSet<usize> = (0..1_024).filter(|slot| owners[*slot] == Some(id(3))).collect();
    let mut again = workers.clone();
    again[3].id = id(33);
    let next = unpinned(&again, &owners, 0);
    assert!(had.iter().all(|slot| next[*slot] == Some(id(33))), "its own slots are what is free");
}
