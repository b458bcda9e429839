//! Who gets permits, by example and by property.

use proptest::prelude::*;

use super::*;

fn id(number: u8) -> SubscriptionId {
    SubscriptionId::from_bytes([number; 16])
}

/// Shares with some clients, of which none has answered yet.
fn sharing(limit: usize, young: usize, clients: u8) -> Sharing {
    let mut sharing = Sharing::new(limit, young);
    (0..clients).for_each(|number| sharing.join(id(number)));
    sharing
}

/// Shows that a client answers at once.
fn is_quick(sharing: &mut Sharing, client: u8) {
    (0..8).for_each(|_| sharing.showed(id(client), false));
    assert!(!sharing.is_slow(id(client)));
}

/// Takes all that a client can get, none of it young any more.
fn fill(sharing: &mut Sharing, client: u8) -> usize {
    let mut taken = 0;
    while let Some(count) = sharing.try_take(id(client), 10_000) {
        (0..count).for_each(|_| sharing.aged());
        taken += count;
    }
    taken
}

#[test]
fn a_client_that_hangs_leaves_most_permits_to_others() {
    let mut sharing = sharing(1_024, 128, 2);
    assert_eq!(fill(&mut sharing, 0), 1 + 256);
    is_quick(&mut sharing, 1);
    assert!(fill(&mut sharing, 1) > 300);
}

#[test]
fn a_client_that_was_quick_and_hangs_leaves_half() {
    let mut sharing = sharing(1_024, 128, 2);
    is_quick(&mut sharing, 0);
    assert_eq!(fill(&mut sharing, 0), 1 + 512);
    (0..8).for_each(|_| sharing.showed(id(0), true));
    assert!(sharing.is_slow(id(0)));
    is_quick(&mut sharing, 1);
    assert_eq!(fill(&mut sharing, 1), 1 + 256);
    (0..600).for_each(|_| sharing.release(id(0)));
    assert!(fill(&mut sharing, 0) <= 1 + 256, "from now on as a slow one");
}

#[test]
fn every_client_has_a_permit_of_its_own_however_many_hang() {
    let mut sharing = sharing(8, 128, 200);
    for client in 0..200 {
        assert!(fill(&mut sharing, client) >= 1, "{client}");
    }
    assert!(sharing.taken().0 <= 208);
}

#[test]
fn nobody_takes_all_at_once_and_who_is_first_in_line_waits_for_enough() {
    let mut sharing = sharing(1_000, 80, 3);
    assert_eq!(sharing.try_take(id(0), 100), Some(10));
    (0..7).for_each(|_| assert_eq!(sharing.try_take(id(0), 100), Some(10)));
    assert_eq!(sharing.taken(), (80, 80));
    let ticket = sharing.wait(id(1), 4);
    for _ in 0..3 {
        sharing.aged();
        assert_eq!(sharing.serve(), None);
        assert_eq!(sharing.try_take(id(2), 1), None, "it is another's turn");
    }
    sharing.aged();
    assert_eq!(sharing.serve(), Some((ticket, 4)));
    assert_eq!(sharing.serve(), None);
}

#[test]
fn who_has_the_fewest_goes_first_and_of_two_who_waits_longer() {
    let mut sharing = sharing(100, 8, 4);
    let taken = [(0, 2), (1, 1), (2, 1), (3, 4)];
    for (client, count) in taken {
        (0..count).for_each(|_| assert_eq!(sharing.try_take(id(client), 1), Some(1)));
    }
    let [a, b, c] = [0, 2, 1].map(|client| sharing.wait(id(client), 1));
    let mut served = Vec::new();
    for _ in 0..4 {
        sharing.aged();
        sharing.release(id(3));
        served.extend(sharing.serve().map(|(ticket, _)| ticket));
    }
    assert_eq!(served, [b, c, a]);
}

#[test]
fn a_wish_that_is_taken_back_is_forgotten() {
    let mut sharing = sharing(100, 1, 2);
    assert_eq!(sharing.try_take(id(0), 1), Some(1));
    let ticket = sharing.wait(id(1), 1);
    sharing.cancel(ticket);
    sharing.aged();
    assert_eq!(sharing.serve(), None);
    sharing.leave(id(1));
    sharing.release(id(0));
    sharing.leave(id(0));
    assert!(sharing.clients.is_empty() && sharing.lines.iter().all(BTreeSet::is_empty));
}

#[derive(Debug, Clone)]
enum Step {
    Take(u8, usize),
    Wait(u8, usize),
    Cancel(usize),
    Age,
    Slow(u8),
    Quick(u8),
    Release(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..6u8;
    prop_oneof![
        (who.clone(), 1..40usize).prop_map(|(who, wanted)| Step::Take(who, wanted)),
        (who.clone(), 1..40usize).prop_map(|(who, wanted)| Step::Wait(who, wanted)),
        (0..20usize).prop_map(Step::Cancel),
        Just(Step::Age),
        who.clone().prop_map(Step::Slow),
        who.clone().prop_map(Step::Quick),
        who.prop_map(Step::Release),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens: no more than the limit and one for each, counts that are true, and no client
    /// left waiting who could have been served.
    #[test]
    fn permits_are_bounded_and_nobody_is_forgotten(
        limit in 1..200usize,
        young in 1..64usize,
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let mut sharing = sharing(limit, young, 6);
        let (mut taken, mut waiting) = ([0; 6], Vec::new());
        for step in steps {
            match step {
                Step::Take(who, wanted) => {
                    taken[usize::from(who)] += sharing.try_take(id(who), wanted).unwrap_or(0);
                }
                Step::Wait(who, wanted) => waiting.push((who, sharing.wait(id(who), wanted))),
                Step::Cancel(which) if which < waiting.len() => {
                    sharing.cancel(waiting.remove(which).1);
                }
                Step::Cancel(_) => {}
                Step::Age => sharing.aged(),
                Step::Slow(who) => sharing.showed(id(who), true),
                Step::Quick(who) => sharing.showed(id(who), false),
                Step::Release(who) if taken[usize::from(who)] > 0 => {
                    taken[usize::from(who)] -= 1;
                    sharing.release(id(who));
                }
                Step::Release(_) => {}
            }
            while let Some((ticket, count)) = sharing.serve() {
                let which = waiting.iter().position(|(_, waits)| *waits == ticket);
                let (who, _) = waiting.remove(which.unwrap());
                prop_assert!(count > 0);
                taken[usize::from(who)] += count;
            }
            let all: usize = taken.iter().sum();
            prop_assert_eq!(sharing.taken().0, all);
            prop_assert!(all <= limit + 6);
            for (who, ticket) in &waiting {
                let client = &sharing.clients[&id(*who)];
                let may = sharing.allowed(client, 1) > 0;
                prop_assert!(!may || sharing.young + sharing.most > young, "{ticket:?}");
                prop_assert!(client.taken > 0 || sharing.young > 0, "it has none of its own");
            }
        }
    }

    /// A client that is well never waits for others' requests to end, only for them to age.
    #[test]
    fn clients_that_are_well_find_permits_however_many_hang(hanging in 0..150u8, quick in 1..8u8) {
        let mut sharing = sharing(1_024, 128, 160);
        let others = (0..hanging).map(|client| fill(&mut sharing, client)).sum::<usize>();
        prop_assert!(others <= 512 + usize::from(hanging));
        for client in 150..150 + quick {
            is_quick(&mut sharing, client);
        }
        // In turns, as they come.
        let mut own = vec![0; usize::from(quick)];
        while own.iter().any(|own| *own < 32) {
            for (own, client) in own.iter_mut().zip(150..) {
                let taken = sharing.try_take(id(client), 32_usize.saturating_sub(*own).max(1));
                prop_assert!(taken.is_some() || *own >= 32);
                (0..taken.unwrap_or(0)).for_each(|_| sharing.aged());
                *own += taken.unwrap_or(0);
            }
        }
    }
}
