//! Clauses RS6 to RS9: how subscriptions change, are listed and go.

use flare_core::model::subscription::DataValue;
use flare_core::model::{
    Applied, Epoch, Generation, LaneId, LaneState, PartitionId, Subscription, SubscriptionId,
    SubscriptionSpec, SubscriptionStatus, Timestamp,
};
use flare_core::port::{Page, Replaced};

use super::make::{LONG_AGO, Make, Repo, all, epochs, only, race};
use super::subscriptions::{replace, seat, stored};

/// RS6: a replacement changes what may change, and raises the generation by one.
pub async fn rs6_replaces_at_the_generation_named(repo: Repo) {
    let make = Make::new("rs6_replaces");
    let given = make.subscription(make.id());
    repo.insert_subscription(given.clone(), 10).await.unwrap();
    let old = stored(&repo, given.id).await;

    let mut new = make.subscription(make.id());
    new.id = old.id;
    new.partition = PartitionId::new(old.partition.get() + 77);
    new.generation = Generation::new(40);
    new.status = SubscriptionStatus::Suspended;
    new.reason = Some("only fails".to_owned());
    new.created_at = Timestamp::EPOCH;
    new.updated_at = Timestamp::from_unix_millis(1_700_000_000_001);
    new.resumed_at = Some(Timestamp::from_unix_millis(1_700_000_000_002));
    (new.slot, new.moving_from, new.least_epoch) = (Some(1_030), Some(0), Epoch::new(9));
    new.left_at = Some(LONG_AGO);
    let replaced = repo.replace_subscription(old.generation, new.clone()).await.unwrap();

    let mut expected = new;
    expected.resource = old.resource;
    expected.partition = old.partition;
    expected.created_at = old.created_at;
    expected.generation = Generation::new(2);
    assert_eq!(replaced, Replaced::Done(expected.clone()));
    assert_eq!(stored(&repo, old.id).await, expected);

    // And what is not there any more goes.
    let mut new = expected.clone();
    (new.reason, new.slot, new.moving_from, new.left_at) = (None, None, None, None);
    let replaced = repo.replace_subscription(new.generation, new.clone()).await.unwrap();
    new.generation = Generation::new(3);
    assert_eq!(replaced, Replaced::Done(new.clone()));
    assert_eq!(stored(&repo, old.id).await, new);
}

/// RS6: at any other generation nothing changes, and the caller learns what is there.
pub async fn rs6_other_generations_learn_what_is_there(repo: Repo) {
    let make = Make::new("rs6_conflict");
    let given = make.subscription(make.id());
    repo.insert_subscription(given.clone(), 10).await.unwrap();
    replace(&repo, &stored(&repo, given.id).await, |new| new.status = SubscriptionStatus::Active)
        .await;
    let current = stored(&repo, given.id).await;
    for generation in [0, 1, 3] {
        let mut new = current.clone();
        new.status = SubscriptionStatus::Paused;
        let answer = repo.replace_subscription(Generation::new(generation), new).await.unwrap();
        assert_eq!(answer, Replaced::Conflict(current.clone()), "at {generation}");
        assert_eq!(stored(&repo, given.id).await, current);
    }
    let unknown = make.subscription(given.resource);
    let answer = repo.replace_subscription(Generation::new(1), unknown.clone()).await.unwrap();
    assert_eq!(answer, Replaced::Missing);
    assert_eq!(repo.subscription(unknown.id).await.unwrap(), None);
}

/// RS6: of replacements at once one takes place, the others learn of it.
pub async fn rs6_one_of_many_replacements_wins(repo: Repo) {
    let make = Make::new("rs6_race");
    let given = make.subscription(make.id());
    repo.insert_subscription(given.clone(), 10).await.unwrap();
    for round in 1..=12 {
        let old = stored(&repo, given.id).await;
        assert_eq!(old.generation, Generation::new(round));
        let answers = race(|racer| {
            let (port, mut new) = (repo.port(), old.clone());
            new.reason = Some(format!("racer {racer}"));
            async move { port.replace_subscription(new.generation, new).await.unwrap() }
        })
        .await;
        let won = stored(&repo, given.id).await;
        let mut winners = 0;
        for (racer, answer) in answers.into_iter().enumerate() {
            match answer {
                Replaced::Done(new) => {
                    winners += 1;
                    assert_eq!(new.reason, Some(format!("racer {racer}")));
                    assert_eq!(new, won);
                }
                other => assert_eq!(other, Replaced::Conflict(won.clone())),
            }
        }
        assert_eq!(winners, 1);
    }
}

/// RS7: a resource's list has those that are not deleting, oldest first, with their total.
pub async fn rs7_lists_oldest_first(repo: Repo) {
    let make = Make::new("rs7_lists");
    let resource = make.id();
    let given: Vec<Subscription> = (0..7).map(|_| make.subscription(resource)).collect();
    for index in [3, 0, 6, 1, 5, 2, 4] {
        seat(&repo, given[index].clone(), 2).await;
    }
    seat(&repo, make.subscription(make.id()), 2).await;
    for index in [1, 4] {
        let old = stored(&repo, given[index].id).await;
        replace(&repo, &old, |new| new.status = SubscriptionStatus::Deleting).await;
    }
    let expected = [0, 2, 3, 5, 6].map(|index: usize| given[index].id);
    for (limit, offset) in [(30, 0), (2, 0), (2, 2), (2, 4), (2, 5), (2, 1_000), (1, 3)] {
        let listing = repo.list_subscriptions(resource, Page::new(limit, offset)).await.unwrap();
        assert_eq!(listing.total, 5);
        let ids: Vec<_> = listing.items.iter().map(|subscription| subscription.id).collect();
        let page: Vec<_> =
            expected.iter().copied().skip(offset as usize).take(limit as usize).collect();
        assert_eq!(ids, page, "limit {limit}, offset {offset}");
    }
    let nobody = repo.list_subscriptions(make.id(), Page::new(2, 0)).await.unwrap();
    assert_eq!((nobody.items.len(), nobody.total), (0, 0));
}

/// RS7: a scan has all of every resource, deleting ones too, by id after the one named.
pub async fn rs7_scans_everything_by_id(repo: Repo) {
    let make = Make::new("rs7_scans");
    let resources = [make.id(), make.id()];
    let given: Vec<Subscription> =
        (0..12).map(|index| make.subscription(resources[index % 2])).collect();
    for subscription in given.iter().rev() {
        seat(&repo, subscription.clone(), 3).await;
    }
    let old = stored(&repo, given[4].id).await;
    replace(&repo, &old, |new| new.status = SubscriptionStatus::Deleting).await;
    let ids: Vec<SubscriptionId> = given.iter().map(|subscription| subscription.id).collect();
    let scan = async |after| {
        let found = all(repo.scan_subscriptions(after)).await;
        found.into_iter().map(|subscription| subscription.id).collect::<Vec<_>>()
    };
    assert_eq!(scan(None).await, ids);
    for (index, id) in ids.iter().enumerate() {
        assert_eq!(scan(Some(*id)).await, ids[index + 1..]);
    }
}

/// RS8: a removed subscription is forgotten with its seat and its lanes' states.
pub async fn rs8_forgets_it_with_seat_and_lanes(repo: Repo) {
    let make = Make::new("rs8");
    let resource = make.id();
    let (gone, partition) = seat(&repo, make.subscription(resource), 10).await;
    let (stays, _) = seat(&repo, make.subscription(resource), 10).await;
    let epoch = epochs(&repo).await[0];
    for id in [gone, stays] {
        let mut state = LaneState::new(LaneId::new(id, 0));
        state.epoch = epoch;
        only(repo.store_lanes(epoch, vec![state]).await).unwrap();
    }
    for _ in 0..2 {
        repo.remove_subscription(gone).await.expect("one that is not there is no error");
        assert_eq!(repo.subscription(gone).await.unwrap(), None);
        let members = repo.members(resource, partition).await.unwrap();
        assert!(members.iter().all(|member| member.subscription != gone));
        assert_eq!(repo.lanes(gone).await.unwrap().items, []);
    }
    assert!(repo.subscription(stays).await.unwrap().is_some());
    assert_eq!(repo.lanes(stays).await.unwrap().items.len(), 1);
}

/// RS8: a state that is stored at the same time is forgotten too.
pub async fn rs8_forgets_states_that_cross_it(repo: Repo) {
    let make = Make::new("rs8_cross");
    let resource = make.id();
    let epoch = epochs(&repo).await[0];
    for _ in 0..20 {
        let (gone, _) = seat(&repo, make.subscription(resource), 10).await;
        let states =
            |from: u16| (from..from + 4).map(|shard| LaneState::new(LaneId::new(gone, shard)));
        let store = async |from| repo.store_lanes(epoch, states(from).collect()).await;
        let (before, removed, after) =
            futures::join!(store(0), repo.remove_subscription(gone), store(4));
        removed.unwrap();
        for answer in before.into_iter().chain(after) {
            assert!(matches!(answer.unwrap(), Applied::Done | Applied::Missing));
        }
        assert_eq!(repo.lanes(gone).await.unwrap().items, [], "nobody would ever remove them");
    }
}

/// RS9: secrets, data and templates come back exactly as they were stored.
pub async fn rs9_settings_come_back_exactly(repo: Repo) {
    let make = Make::new("rs9");
    let spec = SubscriptionSpec::from_stored(RICH).unwrap();
    let rich = Subscription::new(make.id(), make.id(), spec.clone(), LONG_AGO);
    repo.insert_subscription(rich.clone(), 10).await.unwrap();
    // Another one gets them by replacement.
    let plain = make.subscription(make.id());
    repo.insert_subscription(plain.clone(), 10).await.unwrap();
    replace(&repo, &stored(&repo, plain.id).await, |new| new.spec = spec.clone()).await;

    for given in [&rich, &plain] {
        let by_id = stored(&repo, given.id).await;
        let listed = repo.list_subscriptions(given.resource, Page::new(1, 0)).await.unwrap();
        for read in std::iter::once(by_id).chain(listed.items) {
            assert_eq!(read.spec, spec);
            assert_eq!(read.spec.signing().unwrap().count(), 2);
            let data = read.spec.data().unwrap();
            let names: Vec<&str> = data.iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["$z.y", "big", "list", "😀"]);
            let DataValue::Scalar(big) = data.get("big").unwrap() else { panic!("a number") };
            assert_eq!(format!("{big:?}"), r#"Number(DataNumber("12345678901234567890.10"))"#);
        }
    }
}

const RICH: &str = r#"{
    "endpoint": {
        "url": "https://rs9.example/a/{id}?x={revision}&y=%7E",
        "method": "PUT",
        "headers": {"X-Many": ["{id}", "b; c"], "Authorization": ["Bearer .$"]},
        "actions": {"delete": {"method": "DELETE", "headers": {}},
                    "create": {"url": "https://rs9.example/create/{id}"}}
    },
    "delivery": {"success": [299, 200], "discard": [422], "ttl": "72h", "concurrency": 4,
                 "lanes": 2, "timeout": "1500ms", "rate": {"limit": 7, "period": "1s"},
                 "retry": {"numRetries": 5, "backoffFunction": "geometric"}},
    "data": {"$z.y": "{id}/{revision}", "big": 12345678901234567890.10,
             "list": [1e400, true, "{{\u00e9}}"], "😀": "\u0000"},
    "filter": "document.a.b > 1 && params.id != '$'",
    "signing": {"secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"]},
    "mode": "passive",
    "backfill": true
}"#;
