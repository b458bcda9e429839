//! Every order of acts up to some length, and longer ones by chance: after each of them answer,
//! stores, readers and clients are what the model says.

use flare_core::model::{Action, DocumentChange};

use super::model::{Act, KINDS, Model, NARROW, WIDE};
use super::world::Overlapping;

/// The acts of every order that is tried, beside the first; more with `FLARE_ORDERS=<acts>`.
const LENGTH: usize = 4;

#[tokio::test]
async fn a_delete_reaches_the_document_where_it_is_stored() {
    let acts = [Act::Create(WIDE), Act::Put(1), Act::Create(NARROW)];
    let mut overlapping = Overlapping::after(&acts).await;
    assert_eq!(overlapping.read().await, Some((WIDE, 1)));
    assert_eq!(overlapping.act(Act::Delete).await, Some(DocumentChange::Deleted));
    overlapping.world.settled().await;
    let told = overlapping.model().await.told;
    assert_eq!(told[WIDE], [(Action::Create, 1), (Action::Delete, 1)]);
    assert_eq!(told[NARROW], []);
}

#[tokio::test]
async fn a_put_moves_the_document_and_its_former_clients_are_told() {
    let acts = [Act::Create(WIDE), Act::Put(1), Act::Create(NARROW)];
    let mut overlapping = Overlapping::after(&acts).await;
    assert_eq!(overlapping.act(Act::Put(1)).await, Some(DocumentChange::Created));
    overlapping.world.settled().await;
    assert_eq!(overlapping.read().await, Some((NARROW, -999)));
    let told = overlapping.model().await.told;
    assert_eq!(told[WIDE], [(Action::Create, 1), (Action::Delete, 1)]);
    assert_eq!(told[NARROW], [(Action::Create, -999)]);
}

#[tokio::test]
async fn every_order_of_acts_does_what_the_model_says() {
    let asked = std::env::var("FLARE_ORDERS").ok().map(|text| text.parse().unwrap());
    let length: usize = asked.unwrap_or(LENGTH);
    let mut orders = 0;
    let mut waiting = vec![vec![Act::Create(WIDE)]];
    while let Some(acts) = waiting.pop() {
        if acts.len() > length {
            orders += 1;
            try_acts(&acts).await;
            continue;
        }
        waiting.extend(next(&acts).into_iter().map(|act| [acts.as_slice(), &[act]].concat()));
    }
    // At every place there are four acts to choose from at least.
    assert!(orders >= 4_usize.pow(length as u32), "{orders} orders");
}

#[tokio::test]
async fn long_orders_of_three_resources_do_what_the_model_says() {
    for seed in 0..150 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut acts = vec![Act::Create(WIDE)];
        for _ in 0..16 {
            let model = Model::after(&acts);
            let kind = random.usize(..KINDS);
            let newest = newest(&acts);
            acts.push(match random.u8(..8) {
                0..=2 => Act::Put(newest + 1),
                3 => Act::Put(random.i64(1..=newest + 1)),
                4 => Act::Delete,
                5 => Act::DeleteAsOf(random.i64(1..=newest + 1)),
                _ if model.kinds[kind].is_some() => Act::Drop(kind),
                _ => Act::Create(kind),
            });
        }
        try_acts(&acts).await;
    }
}

fn newest(acts: &[Act]) -> i64 {
    let number = |act: &Act| match act {
        Act::Put(number) => *number,
        _ => 0,
    };
    acts.iter().map(number).max().unwrap_or(0)
}

/// What may come next: a newer put, the last one again, deletes, and two resources come and go.
fn next(acts: &[Act]) -> Vec<Act> {
    let (model, newest) = (Model::after(acts), newest(acts));
    let toggle = |kind: usize| match model.kinds[kind] {
        Some(_) => Act::Drop(kind),
        None => Act::Create(kind),
    };
    let mut next = vec![Act::Put(newest + 1), Act::Delete, toggle(NARROW), toggle(WIDE)];
    if newest > 0 {
        next.extend([Act::Put(newest), Act::DeleteAsOf(newest + 1)]);
    }
    next
}

async fn try_acts(acts: &[Act]) {
    let mut overlapping = Overlapping::after(&[]).await;
    let mut model = Model::default();
    for (at, act) in acts.iter().enumerate() {
        let story = || format!("{:?} of {acts:?}", &acts[..=at]);
        let answer = overlapping.act(*act).await;
        assert_eq!(answer, model.act(*act), "{}", story());
        if let Act::Create(kind) | Act::Drop(kind) = act {
            // Whoever subscribes now is somebody new.
            model.told[*kind].clear();
        }
        assert_eq!(overlapping.read().await, model.live(), "{}", story());
        overlapping.world.settled().await;
        assert_eq!(overlapping.model().await, model, "{}", story());
        assert_eq!(overlapping.read().await, model.live(), "{}", story());
    }
}
