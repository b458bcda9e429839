//! Clauses RU6 to RU9: what is written to a record that cannot be read, or only in part.

use flare_core::model::{
    Applied, Job, JobKind, LaneId, LaneState, Present, RecordName, ResourceState, RowEffect,
    SubscriptionId, SubscriptionStatus, Timestamp,
};
use flare_core::port::{Page, Replaced};

use super::super::make::{
    LONG_AGO, Make, apply, delete, document, epochs, live, mark, must_apply, only, open, put,
    spread, write,
};
use super::reading::subscriptions;
use super::{Spoiling, Spoilt, UNREADABLE, every, insist, repo};

/// RU6: what cannot be read can be marked as deleting, moved and removed.
pub async fn ru6_what_cannot_be_read_can_be_deleted(subject: Spoilt) {
    let (repo, make) = (repo(&subject), Make::new("ru6"));
    for (round, how) in UNREADABLE.into_iter().enumerate() {
        let stored = subscriptions(&repo, &make, make.id()).await;
        let (id, of) = (stored[1].id, stored[1].resource);
        let name = RecordName::Subscription(id);
        subject.spoil(name.clone(), how).await;
        assert!(repo.discard_subscription(id).await.unwrap());
        assert!(!repo.discard_subscription(id).await.unwrap(), "it is marked already");
        assert!(insist(&repo.subscription(id).await.unwrap_err(), &name, how).deleted);
        let listing = repo.list_subscriptions(of, Page::new(10, 0)).await.unwrap();
        assert_eq!((listing.items.len(), listing.unreadable.len(), listing.total), (2, 0, 2));
        let members = repo.members(of, stored[0].partition).await.unwrap();
        assert!(members.iter().all(|member| member.subscription != id), "it is told nothing");
        let url = stored[1].spec.urls().remove(0);
        let heir = repo.insert_subscription(make.subscription_to(of, &url), 10).await.unwrap();
        assert_eq!(heir.spec.urls(), [url], "its url is free");
        let document = make.document(of);
        spread(&repo, id, &document, live(1)).await;
        subject.spoil(RecordName::Row(row_key(id, &document.url)), how).await;
        assert_eq!(repo.remove_rows(id, 10).await.unwrap(), 1);
        repo.remove_subscription(id).await.unwrap();
        assert_eq!(repo.subscription(id).await.unwrap(), None);

        let readable = &stored[0];
        assert!(repo.discard_subscription(readable.id).await.unwrap());
        let marked = repo.subscription(readable.id).await.unwrap().unwrap();
        assert_eq!(marked.status, SubscriptionStatus::Deleting);
        assert_eq!(marked.generation, readable.generation.next());
        assert!(!repo.discard_subscription(make.id()).await.unwrap(), "there is none");

        use ResourceState::{Active, Deleted, Deleting};
        let resource = make.resource(&format!("/{round}/{{id}}"));
        repo.insert_resource(resource.clone()).await.unwrap();
        let document = make.document(resource.id);
        write(&repo, put(&document, 1)).await;
        subject.spoil(RecordName::Document(document), how).await;
        let name = RecordName::Resource(resource.id);
        subject.spoil(name.clone(), how).await;
        assert!(!repo.move_resource(resource.id, Deleting, Deleted).await.unwrap());
        assert!(repo.move_resource(resource.id, Active, Deleting).await.unwrap());
        assert!(repo.move_resource(resource.id, Deleting, Deleted).await.unwrap());
        assert!(insist(&repo.resource(resource.id).await.unwrap_err(), &name, how).deleted);
        let heir = make.resource(&format!("/{round}/{{id}}"));
        repo.insert_resource(heir).await.unwrap();
        assert_eq!(repo.remove_documents(resource.id, 10).await.unwrap(), 1);
        repo.remove_resource(resource.id).await.unwrap();
        assert_eq!(repo.resource(resource.id).await.unwrap(), None);
    }
}

fn row_key(
    subscription: SubscriptionId,
    url: &flare_core::model::DocumentUrl,
) -> flare_core::model::RowKey {
    flare_core::model::RowKey::new(subscription, url.clone())
}

/// RU7: whatever is written, a field that nobody here knows is still there.
pub async fn ru7_unknown_fields_are_kept(subject: Spoilt) {
    let (repo, make) = (repo(&subject), Make::new("ru7"));
    let add = async |name: &RecordName| subject.spoil(name.clone(), Spoiling::UnknownField).await;
    let kept = async |name: &RecordName| {
        assert!(subject.has_unknown_field(name.clone()).await, "{} {name}", name.kind());
    };
    let stored = subscriptions(&repo, &make, make.id()).await;
    let name = RecordName::Subscription(stored[0].id);
    add(&name).await;
    let mut next = repo.subscription(stored[0].id).await.unwrap().unwrap();
    for status in [SubscriptionStatus::Paused, SubscriptionStatus::Active] {
        next.status = status;
        let Replaced::Done(done) =
            repo.replace_subscription(next.generation, next.clone()).await.unwrap()
        else {
            panic!("nobody else replaces it");
        };
        next = done;
        kept(&name).await;
    }
    repo.discard_subscription(next.id).await.unwrap();
    kept(&name).await;

    let resource = make.resource("/{id}");
    repo.insert_resource(resource.clone()).await.unwrap();
    let name = RecordName::Resource(resource.id);
    add(&name).await;
    repo.move_resource(resource.id, ResourceState::Active, ResourceState::Deleting).await.unwrap();
    kept(&name).await;

    let key = make.lone_document();
    write(&repo, put(&key, 1)).await;
    let name = RecordName::Document(key.clone());
    add(&name).await;
    open(&repo, &key, live(1), &[0, 1]).await;
    mark(&repo, &key, live(1)).await;
    write(&repo, put(&key, 2)).await;
    let others: Vec<_> = make.documents(2);
    let batch = vec![put(&others[0], 1), put(&key, 3), put(&others[1], 1)];
    assert!(repo.write_documents(batch).await.iter().all(Result::is_ok));
    kept(&name).await;
    write(&repo, delete(&key, None)).await;
    kept(&name).await;
    assert!(document(&repo, &key).await.unwrap().version.is_gone());

    let (document, key) = make.row(&repo, 1).await;
    let name = RecordName::Row(key.clone());
    add(&name).await;
    let epoch = epochs(&repo).await[0];
    spread(&repo, key.subscription, &document, live(2)).await;
    let settle = RowEffect::Settle { version: live(2), present: Present::Yes, not_before: None };
    must_apply(&repo, epoch, &key, settle.clone()).await;
    assert_eq!(apply(&repo, epoch, &key, settle).await, Applied::Overtaken);
    kept(&name).await;

    let lane = LaneId::new(stored[1].id, 0);
    only(repo.store_lanes(epoch, vec![LaneState::new(lane)]).await).unwrap();
    let name = RecordName::Lane(lane);
    add(&name).await;
    let mut state = repo.lanes(lane.subscription).await.unwrap().items.remove(0);
    state.delivered += 1;
    only(repo.store_lanes(epoch, vec![state]).await).unwrap();
    kept(&name).await;

    let job = Job::new(make.id(), JobKind::Backfill, "x", LONG_AGO);
    repo.insert_job(job.clone()).await.unwrap();
    let name = RecordName::Job(job.id);
    add(&name).await;
    repo.advance_job(epoch, job.id, Some("1".to_owned()), LONG_AGO).await.unwrap();
    kept(&name).await;
}

/// RU8: a damaged job holds nothing; one that a newer version does holds its place.
pub async fn ru8_a_damaged_job_holds_nothing(subject: Spoilt) {
    let (repo, make) = (repo(&subject), Make::new("ru8"));
    for how in UNREADABLE {
        let job = || Job::new(make.id(), JobKind::Expire, format!("{how:?}"), LONG_AGO);
        let held = job();
        assert!(repo.insert_job(held.clone()).await.unwrap());
        subject.spoil(RecordName::Job(held.id), how).await;
        let heir = job();
        let taken = repo.insert_job(heir.clone()).await.unwrap();
        assert_eq!(taken, how == Spoiling::Damaged, "{how:?}");
        assert!(!repo.insert_job(job()).await.unwrap(), "there is one now");
        let due = every(repo.due_jobs(Timestamp::MAX, 100)).await;
        let due = due.into_iter().filter_map(Result::ok).any(|it| it.id == heir.id);
        assert_eq!(due, taken);
    }
}

/// RU9: nothing is written to a document that needs a newer format; others of the batch are.
pub async fn ru9_writes_respect_a_newer_document(subject: Spoilt) {
    let (repo, make) = (repo(&subject), Make::new("ru9"));
    for how in UNREADABLE {
        let keys = make.documents(3);
        for key in &keys {
            write(&repo, put(key, 5)).await;
        }
        let name = RecordName::Document(keys[1].clone());
        subject.spoil(name.clone(), how).await;
        let batch = keys.iter().map(|key| put(key, 6)).collect();
        let mut answers = repo.write_documents(batch).await;
        let spoilt = answers.remove(1);
        for (answer, key) in answers.into_iter().zip([&keys[0], &keys[2]]) {
            assert_eq!(answer.unwrap().version, Some(live(6)));
            assert_eq!(document(&repo, key).await.unwrap().version, live(6));
        }
        if how == Spoiling::Newer {
            insist(&spoilt.unwrap_err(), &name, how);
            for attempt in [put(&keys[1], 4), put(&keys[1], 7), delete(&keys[1], None)] {
                insist(&only(repo.write_documents(vec![attempt]).await).unwrap_err(), &name, how);
            }
            insist(&repo.documents(vec![keys[1].clone()]).await.unwrap_err(), &name, how);
        } else if spoilt.is_ok() {
            assert_eq!(document(&repo, &keys[1]).await.unwrap().version, live(6), "it is mended");
        }
    }
}
