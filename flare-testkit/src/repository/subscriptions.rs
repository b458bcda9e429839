//! Clauses RS1 to RS5: clients' wishes, where they sit, and whose URL is whose.

use std::collections::{BTreeMap, BTreeSet};

use flare_core::ErrorKind;
use flare_core::model::subscription::Mode;
use flare_core::model::{
    Action, Generation, PartitionId, ResourceId, Subscription, SubscriptionId, SubscriptionSpec,
    SubscriptionStatus,
};
use flare_core::port::Replaced;

use super::make::{Make, Repo, race};

/// RS1: what is stored is what was given, with a partition, and what is returned is that.
pub async fn rs1_stores_it_with_its_partition(repo: Repo) {
    let make = Make::new("rs1_stores");
    let mut given = make.subscription(make.id());
    given.status = SubscriptionStatus::Active;
    given.reason = Some("because 😀".to_owned());
    let returned = repo.insert_subscription(given.clone(), 1_000).await.unwrap();
    assert_eq!(stored(&repo, given.id).await, returned);
    given.partition = returned.partition;
    assert_eq!(returned, given);
    assert_eq!(repo.subscription(make.id()).await.unwrap(), None);
}

/// RS1: inserting an id again changes nothing, and gives what is stored.
pub async fn rs1_the_same_again_changes_nothing(repo: Repo) {
    let make = Make::new("rs1_again");
    let given = make.subscription(make.id());
    let insert = |subscription: Subscription| {
        let port = repo.port();
        async move { port.insert_subscription(subscription, 2).await.unwrap() }
    };
    let returned = race(|_| insert(given.clone())).await;
    let first = stored(&repo, given.id).await;
    assert!(returned.iter().all(|returned| *returned == first), "{returned:?}");

    let mut other = make.subscription(given.resource);
    other.id = given.id;
    assert_eq!(insert(other.clone()).await, first);
    assert_eq!(stored(&repo, given.id).await, first);

    replace(&repo, &first, |new| new.status = SubscriptionStatus::Paused).await;
    let replaced = stored(&repo, given.id).await;
    assert_eq!(insert(given.clone()).await, replaced);
    assert_eq!(stored(&repo, given.id).await, replaced);
}

/// RS2: no partition is ever over its limit, however many are inserted at once.
pub async fn rs2_no_partition_is_over_its_limit(repo: Repo) {
    let make = Make::new("rs2_limit");
    for limit in [1, 3] {
        let resource = make.id();
        let wanted: Vec<Vec<Subscription>> =
            (0..8).map(|_| (0..4).map(|_| make.subscription(resource)).collect()).collect();
        race(|racer| {
            let (port, wanted) = (repo.port(), wanted[racer].clone());
            async move {
                for subscription in wanted {
                    port.insert_subscription(subscription, limit).await.unwrap();
                }
            }
        })
        .await;
        let mut seats: BTreeMap<PartitionId, u32> = BTreeMap::new();
        for subscription in wanted.iter().flatten() {
            *seats.entry(stored(&repo, subscription.id).await.partition).or_default() += 1;
        }
        assert!(seats.values().all(|taken| *taken <= limit), "limit {limit}: {seats:?}");
    }
}

/// RS2: seats that were left are taken again, so churn opens no new partitions.
pub async fn rs2_left_seats_are_taken_again(repo: Repo) {
    let make = Make::new("rs2_seats");
    let resource = make.id();
    let mut sitting = Vec::new();
    let mut partitions = BTreeSet::new();
    for _ in 0..6 {
        let (id, partition) = seat(&repo, make.subscription(resource), 2).await;
        sitting.push(id);
        partitions.insert(partition);
    }
    for round in 0..12 {
        let leaving = sitting.remove(round % sitting.len());
        repo.remove_subscription(leaving).await.unwrap();
        let (id, partition) = seat(&repo, make.subscription(resource), 2).await;
        assert!(partitions.contains(&partition), "{partition} is new, {partitions:?} had a seat");
        sitting.push(id);
    }
}

/// RS3: a URL another subscription of the resource has, in any spelling, is refused.
pub async fn rs3_no_url_is_used_twice(repo: Repo) {
    let make = Make::new("rs3_insert");
    let resource = make.id();
    let own = |spec: SubscriptionSpec| {
        Subscription::new(make.id(), resource, spec, super::make::LONG_AGO)
    };
    let first = SubscriptionSpec::post("http://rs3.example/a/{id}")
        .action_url(Action::Delete, "http://rs3.example/b")
        .build()
        .unwrap();
    repo.insert_subscription(own(first), 10).await.unwrap();
    let elsewhere = || SubscriptionSpec::post(make.client_url());
    let create = elsewhere().action_url(Action::Create, "http://rs3.example/b");
    let update = elsewhere().action_url(Action::Update, "http://rs3.example/a/{id}");
    let refused = [
        (SubscriptionSpec::post("http://rs3.example/a/{id}"), "endpoint.url"),
        (SubscriptionSpec::post("HTTP://RS3.example:80/%61/{ id }"), "endpoint.url"),
        (SubscriptionSpec::post("http://rs3.example/b"), "endpoint.url"),
        (create, "endpoint.actions.create.url"),
        (update, "endpoint.actions.update.url"),
    ];
    for (spec, field) in refused {
        let subscription = own(spec.build().unwrap());
        refuse(field, repo.insert_subscription(subscription.clone(), 10).await);
        assert_eq!(repo.subscription(subscription.id).await.unwrap(), None, "nothing is stored");
    }
    for url in ["http://rs3.example/a/{other}", "https://rs3.example/b", "http://rs3.example/b/"] {
        let subscription = make.subscription_to(resource, url);
        repo.insert_subscription(subscription, 10).await.unwrap();
    }
    let of_another = make.subscription_to(make.id(), "http://rs3.example/b");
    repo.insert_subscription(of_another, 10).await.unwrap();
}

/// RS3: a replacement may not take another's URL either, and frees the one it leaves.
pub async fn rs3_replacements_keep_urls_apart(repo: Repo) {
    let make = Make::new("rs3_replace");
    let resource = make.id();
    let urls = ["http://rs3.example/1", "http://rs3.example/2", "http://rs3.example/3"];
    let spec = |url: &str| SubscriptionSpec::post(url).build().unwrap();
    let insert = async |url: &str| {
        let subscription = make.subscription_to(resource, url);
        let id = subscription.id;
        repo.insert_subscription(subscription, 10).await.map(|_| id)
    };
    let first = insert(urls[0]).await.unwrap();
    let second = insert(urls[1]).await.unwrap();

    let before = stored(&repo, second).await;
    let mut taking = before.clone();
    taking.spec = spec(urls[0]);
    refuse("endpoint.url", repo.replace_subscription(before.generation, taking).await);
    assert_eq!(stored(&repo, second).await, before, "nothing changed");

    replace(&repo, &before, |new| new.status = SubscriptionStatus::Active).await;
    let before = stored(&repo, second).await;
    replace(&repo, &before, |new| new.spec = spec(urls[2])).await;
    refuse("endpoint.url", insert(urls[2]).await);
    let third = insert(urls[1]).await.expect("the URL it left is free");

    replace(&repo, &stored(&repo, first).await, |new| new.status = SubscriptionStatus::Deleting)
        .await;
    insert(urls[0]).await.expect("a deleting one blocks nothing");
    repo.remove_subscription(first).await.unwrap();
    refuse("endpoint.url", insert(urls[0]).await);
    repo.remove_subscription(third).await.unwrap();
    insert(urls[1]).await.expect("a removed one blocks nothing");
}

/// RS3: of inserts, or of replacements, of one URL at once one takes place.
pub async fn rs3_a_url_has_one_winner(repo: Repo) {
    let make = Make::new("rs3_race");
    for _ in 0..6 {
        let (resource, url) = (make.id(), make.client_url());
        let rivals: Vec<_> = (0..8).map(|_| make.subscription_to(resource, &url)).collect();
        let inserted = race(|racer| {
            let (port, rival) = (repo.port(), rivals[racer].clone());
            async move { port.insert_subscription(rival, 10).await }
        })
        .await;
        one_wins(inserted);

        let (resource, url) = (make.id(), make.client_url());
        let rivals: Vec<_> = (0..8).map(|_| make.subscription(resource)).collect();
        for rival in &rivals {
            repo.insert_subscription(rival.clone(), 10).await.unwrap();
        }
        let replaced = race(|racer| {
            let (port, mut rival) = (repo.port(), rivals[racer].clone());
            rival.spec = SubscriptionSpec::post(&url).build().unwrap();
            async move { port.replace_subscription(Generation::new(1), rival).await }
        })
        .await;
        one_wins(replaced);
    }
}

/// RS4: every partition somebody sits in is named, in order, once the insert returned.
pub async fn rs4_names_every_partition_with_members(repo: Repo) {
    let make = Make::new("rs4");
    let resource = make.id();
    for _ in 0..7 {
        let (_, partition) = seat(&repo, make.subscription(resource), 2).await;
        let named = repo.partitions(resource).await.unwrap();
        assert!(named.contains(&partition), "{partition} is not in {named:?}");
        assert!(named.is_sorted(), "{named:?}");
    }
}

/// RS5: a partition has exactly its members, but for deleting ones, as they stand.
pub async fn rs5_gives_members_as_they_stand(repo: Repo) {
    let make = Make::new("rs5");
    let resources: [ResourceId; 2] = [make.id(), make.id()];
    let mut expected: BTreeMap<(ResourceId, PartitionId), BTreeSet<_>> = BTreeMap::new();
    use SubscriptionStatus::{Active, Deleting, Paused, Preparing, Suspended};
    let statuses = [Preparing, Active, Paused, Suspended, Deleting, Active, Deleting];
    for (index, status) in statuses.into_iter().cycle().take(14).enumerate() {
        let mut subscription = make.subscription(resources[index % 2]);
        let lanes = 1 + (index % 3) as u16;
        let mode = if index % 4 == 1 { Mode::Passive } else { Mode::Active };
        let spec = SubscriptionSpec::post(make.client_url()).concurrency(4).lanes(lanes.into());
        let spec = spec.mode(mode);
        let filtered = index % 3 == 1;
        let spec = if filtered { spec.filter("document.a == 1") } else { spec };
        subscription.spec = spec.build().unwrap();
        let resource = subscription.resource;
        let (id, partition) = seat(&repo, subscription, 3).await;
        // Some are replaced more often, so that generations differ.
        let replacements = if status == Preparing { 0 } else { 1 + index as u64 % 3 };
        let slot = (replacements > 0 && index % 2 == 0).then_some(index as u32 * 1_000);
        for _ in 0..replacements {
            let old = stored(&repo, id).await;
            replace(&repo, &old, |new| (new.status, new.slot) = (status, slot)).await;
        }
        let members = expected.entry((resource, partition)).or_default();
        if status != Deleting {
            members.insert((
                id,
                1 + replacements,
                status.as_str(),
                lanes,
                slot,
                (mode == Mode::Passive, filtered),
            ));
        }
    }
    for ((resource, partition), expected) in expected {
        let members = repo.members(resource, partition).await.unwrap();
        assert_eq!(members.len(), expected.len());
        let as_they_stand = members.into_iter().map(|member| {
            let (generation, status) = (member.generation.get(), member.status.as_str());
            let passive = member.mode == Mode::Passive;
            let marks = (passive, member.filtered);
            (member.subscription, generation, status, member.lanes, member.slot, marks)
        });
        assert_eq!(as_they_stand.collect::<BTreeSet<_>>(), expected);
    }
}

/// The stored subscription, which must be there.
pub(super) async fn stored(repo: &Repo, id: SubscriptionId) -> Subscription {
    repo.subscription(id).await.unwrap().expect("the subscription is there")
}

/// Changes a subscription that nobody else changes.
pub(super) async fn replace(
    repo: &Repo,
    old: &Subscription,
    change: impl FnOnce(&mut Subscription),
) {
    let mut new = old.clone();
    change(&mut new);
    let replaced = repo.replace_subscription(old.generation, new).await.unwrap();
    assert!(matches!(replaced, Replaced::Done(_)), "{replaced:?}");
}

/// Inserts a subscription; gives its id and where it sits.
pub(super) async fn seat(
    repo: &Repo,
    subscription: Subscription,
    limit: u32,
) -> (SubscriptionId, PartitionId) {
    let id = subscription.id;
    repo.insert_subscription(subscription, limit).await.unwrap();
    (id, stored(repo, id).await.partition)
}

fn refuse<T: std::fmt::Debug>(field: &str, answer: flare_core::Result<T>) {
    let error = answer.expect_err("the URL is taken");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(error.field(), Some(field));
}

fn one_wins<T: std::fmt::Debug>(answers: Vec<flare_core::Result<T>>) {
    let (winners, losers): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(winners.len(), 1, "{winners:?}");
    losers.into_iter().for_each(|it| refuse("endpoint.url", it));
}
