//! Clauses RR19 to RR22: documents that are spread to everyone in one call.

use std::collections::BTreeSet;

use flare_core::model::{
    DocumentKey, DocumentUrl, Present, ResourceId, Row, RowEffect, RowKey, SubscriptionId,
    SubscriptionStatus, Version,
};
use flare_core::port::{DocumentsSpread, Replaced, SpreadAnswer, SpreadDocuments};

use super::make::{
    Make, Repo, delete, document, epochs, find_row, gone, live, mark, must_apply, put, row,
    undispatched, write,
};

/// RR19: everyone is told of what still has to be spread, at the generation they have, and of nothing else.
pub async fn rr19_everyone_is_told_of_what_is_owed(repo: Repo) {
    let make = Make::new("rr19_told");
    let resource = make.id();
    let [active, paused, deleting] = [
        subscribe(&make, &repo, resource, SubscriptionStatus::Active).await,
        subscribe(&make, &repo, resource, SubscriptionStatus::Paused).await,
        subscribe(&make, &repo, resource, SubscriptionStatus::Deleting).await,
    ];
    subscribe(&make, &repo, make.id(), SubscriptionStatus::Active).await;
    let keys: Vec<DocumentKey> = (0..6).map(|_| make.document(resource)).collect();
    let [fresh, raised, spread_before, overtaken, deleted, unseen] = &keys[..] else { return };
    for key in [fresh, raised, spread_before, overtaken, deleted] {
        write(&repo, put(key, 1)).await;
    }
    mark(&repo, spread_before, live(1)).await;
    mark(&repo, raised, live(1)).await;
    write(&repo, put(raised, 3)).await;
    write(&repo, put(overtaken, 2)).await;
    write(&repo, delete(deleted, None)).await;
    let named = [live(1), live(3), live(1), live(1), gone(1), live(1)];
    let request = SpreadDocuments::new(resource, versions(&keys, &named), 100);
    let mut former = Vec::new();
    for round in 0..2 {
        let done = done(repo.spread_documents(request.clone()).await.unwrap());
        assert_eq!(done.taken, keys.len());
        let told: BTreeSet<_> = done.members.iter().map(|it| it.subscription).collect();
        assert_eq!(told, BTreeSet::from([active, paused]));
        let spread: BTreeSet<DocumentUrl> = done.spread.into_iter().collect();
        assert_eq!(spread, [fresh, raised, deleted].map(|key| key.url.clone()).into());
        assert_eq!(done.written, [], "no rows were asked for");
        let mut rows = Vec::new();
        for id in [active, paused] {
            for (key, wanted) in [(fresh, live(1)), (raised, live(3)), (deleted, gone(1))] {
                let made = row(&repo, &RowKey::new(id, key.url.clone())).await;
                assert_eq!((made.wanted, made.settled, &made.document), (wanted, None, key));
                assert_eq!(
                    made.generation,
                    repo.subscription(id).await.unwrap().unwrap().generation
                );
                rows.push(made);
            }
        }
        for key in [spread_before, overtaken, unseen] {
            let key = RowKey::new(active, key.url.clone());
            assert_eq!(find_row(&repo, &key).await, None, "{}", key.url);
        }
        let key = RowKey::new(deleting, fresh.url.clone());
        assert_eq!(find_row(&repo, &key).await, None, "it is told nothing any more");
        if round == 1 {
            assert_eq!(rows, former, "repeating it changes nothing");
        }
        former = rows;
        repo.pass_ticks(1).await;
    }
    assert_eq!(document(&repo, unseen).await, None);
}

/// RR19: as many documents are taken as fit into the rows that may be written.
pub async fn rr19_takes_as_many_as_fit(repo: Repo) {
    let make = Make::new("rr19_fit");
    let resource = make.id();
    for _ in 0..2 {
        subscribe(&make, &repo, resource, SubscriptionStatus::Active).await;
    }
    let keys: Vec<DocumentKey> = (0..3).map(|_| make.document(resource)).collect();
    for key in &keys {
        write(&repo, put(key, 1)).await;
    }
    for (most_rows, taken) in [(2, 1), (3, 1), (5, 2), (6, 3), (9, 3)] {
        let request = SpreadDocuments::new(resource, versions(&keys, &[live(1); 3]), most_rows);
        let done = done(repo.spread_documents(request).await.unwrap());
        let first: BTreeSet<_> = keys[..taken].iter().map(|key| key.url.clone()).collect();
        assert_eq!(done.taken, taken, "of {most_rows} rows");
        assert_eq!(done.spread.into_iter().collect::<BTreeSet<_>>(), first);
    }
    let alone = make.lone_document();
    write(&repo, put(&alone, 1)).await;
    let request =
        SpreadDocuments::new(alone.resource, versions(std::slice::from_ref(&alone), &[live(1)]), 1);
    let done = done(repo.spread_documents(request.dispatching(true)).await.unwrap());
    assert_eq!((done.taken, done.members, done.spread), (1, Vec::new(), vec![alone.url.clone()]));
    assert!(!undispatched(&repo, &alone).await, "there is nobody to tell");
}

/// RR20: where the caller has more to decide nothing is written.
pub async fn rr20_several_partitions_are_left_apart(repo: Repo) {
    let make = Make::new("rr20");
    let resource = make.id();
    let mut members = Vec::new();
    for _ in 0..3 {
        members.push(repo.insert_subscription(make.subscription(resource), 1).await.unwrap().id);
    }
    let together = make.id();
    for _ in 0..2 {
        members.push(subscribe(&make, &repo, together, SubscriptionStatus::Active).await);
    }
    // Several partitions; and a partition with more members than rows may be written.
    for (resource, most_rows) in [(resource, 100), (together, 1)] {
        let key = make.document(resource);
        write(&repo, put(&key, 1)).await;
        let request = SpreadDocuments::new(
            resource,
            versions(std::slice::from_ref(&key), &[live(1)]),
            most_rows,
        );
        let request = request.dispatching(true).giving(1_000);
        assert_eq!(repo.spread_documents(request).await.unwrap(), SpreadAnswer::Apart);
        assert!(undispatched(&repo, &key).await);
        for id in &members {
            assert_eq!(find_row(&repo, &RowKey::new(*id, key.url.clone())).await, None);
        }
    }
}

/// RR21: what is spread is dispatched if that is asked for, and nothing else is.
pub async fn rr21_dispatches_what_it_spreads_if_asked_to(repo: Repo) {
    let make = Make::new("rr21");
    let resource = make.id();
    subscribe(&make, &repo, resource, SubscriptionStatus::Active).await;
    let keys: Vec<DocumentKey> = (0..3).map(|_| make.document(resource)).collect();
    for key in &keys {
        write(&repo, put(key, 1)).await;
    }
    write(&repo, put(&keys[1], 2)).await;
    let request = SpreadDocuments::new(resource, versions(&keys, &[live(1); 3]), 2);
    done(repo.spread_documents(request.clone()).await.unwrap());
    for key in &keys {
        assert!(undispatched(&repo, key).await, "nobody asked");
    }
    done(repo.spread_documents(request.dispatching(true)).await.unwrap());
    assert!(!undispatched(&repo, &keys[0]).await);
    assert!(undispatched(&repo, &keys[1]).await, "a newer version has yet to be spread");
    assert!(undispatched(&repo, &keys[2]).await, "it was not taken");
}

/// RR22: rows and documents are given as they are once they are written, within the content allowed.
pub async fn rr22_gives_what_was_written(repo: Repo) {
    let make = Make::new("rr22");
    let resource = make.id();
    let told = subscribe(&make, &repo, resource, SubscriptionStatus::Active).await;
    let keys: Vec<DocumentKey> = (0..3).map(|_| make.document(resource)).collect();
    let all = versions(&keys, &[live(2); 3]);
    for key in &keys {
        write(&repo, put(key, 1)).await;
    }
    let first = SpreadDocuments::new(resource, versions(&keys, &[live(1); 3]), 100);
    done(repo.spread_documents(first).await.unwrap());
    let epoch = epochs(&repo).await[0];
    for key in &keys {
        let row = RowKey::new(told, key.url.clone());
        let effect =
            RowEffect::Settle { version: live(1), present: Present::Yes, not_before: None };
        must_apply(&repo, epoch, &row, effect).await;
        write(&repo, put(key, 2)).await;
    }
    let size = document(&repo, &keys[0]).await.unwrap().content.unwrap().as_bytes().len();
    for (room, given) in [(10 * size, 3), (1, 0), (size, 1), (2 * size + 1, 2)] {
        let request = SpreadDocuments::new(resource, all.clone(), 100).giving(room);
        let done = done(repo.spread_documents(request).await.unwrap());
        assert_eq!((done.spread.len(), done.written.len()), (3, given), "of {room} bytes");
        for written in done.written {
            let stored: Row =
                row(&repo, &RowKey::new(told, written.document.key.url.clone())).await;
            assert_eq!((stored.wanted, stored.settled), (live(2), Some(live(1))));
            assert_eq!(written.rows, [stored]);
            let stored = document(&repo, &written.document.key).await.unwrap();
            assert_eq!(written.document.version, live(2));
            assert_eq!(written.document.content, stored.content);
        }
    }
}

fn versions(keys: &[DocumentKey], versions: &[Version]) -> Vec<(DocumentUrl, Version)> {
    keys.iter().map(|key| key.url.clone()).zip(versions.iter().copied()).collect()
}

fn done(answer: SpreadAnswer) -> DocumentsSpread {
    match answer {
        SpreadAnswer::Done(done) => done,
        SpreadAnswer::Apart => panic!("there is one partition, and room for its rows"),
    }
}

async fn subscribe(
    make: &Make,
    repo: &Repo,
    resource: ResourceId,
    status: SubscriptionStatus,
) -> SubscriptionId {
    let stored = repo.insert_subscription(make.subscription(resource), 100).await.unwrap();
    let mut next = stored.clone();
    next.status = status;
    let replaced = repo.replace_subscription(stored.generation, next).await.unwrap();
    assert!(matches!(replaced, Replaced::Done(_)));
    stored.id
}
