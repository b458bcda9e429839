//! Clauses RU1 to RU5: what is read around a record that cannot be.

use std::time::Duration;

use flare_core::Result;
use flare_core::model::{
    Actor, AuditAction, AuditEntry, AuditSubject, DocumentKey, Epoch, Job, JobKind, LaneId,
    LaneState, RecordName, ResourceId, RowKey, Subscription, SubscriptionId, Timestamp,
};
use flare_core::port::{Page, PendingQuery, SlotQuery};

use super::super::make::{
    LONG_AGO, Make, Repo, delete, epochs, live, mark, only, put, row, spread, write,
};
use super::{Spoiling, Spoilt, UNREADABLE, assert_named, every, insist, readable, repo};

/// Three subscriptions of one resource, oldest first.
pub(super) async fn subscriptions(repo: &Repo, make: &Make, of: ResourceId) -> Vec<Subscription> {
    let mut stored = Vec::new();
    for _ in 0..3 {
        stored.push(repo.insert_subscription(make.subscription(of), 10).await.unwrap());
    }
    stored
}

async fn documents(repo: &Repo, make: &Make) -> Vec<DocumentKey> {
    let keys = make.documents(3);
    for key in &keys {
        write(repo, put(key, 1)).await;
    }
    keys
}

/// Three pending rows of one subscription, due one after the other.
async fn rows(repo: &Repo, make: &Make, subject: &Spoilt) -> Vec<RowKey> {
    let (subscription, resource) = (make.id(), make.id());
    let mut keys = Vec::new();
    for _ in 0..3 {
        let document = make.document(resource);
        spread(repo, subscription, &document, live(1)).await;
        keys.push(RowKey::new(subscription, document.url));
        subject.pass_ticks(1).await;
    }
    keys
}

/// RU1: a record that cannot be read is an error that names it, whichever way it is asked for; one
/// with a field nobody knows is read.
pub async fn ru1_a_record_is_read_whole_or_not_at_all(subject: Spoilt) {
    let (repo, make) = (repo(&subject), Make::new("ru1"));
    for how in UNREADABLE {
        let stored = subscriptions(&repo, &make, make.id()).await;
        let name = RecordName::Subscription(stored[1].id);
        subject.spoil(name.clone(), how).await;
        let error = repo.subscription(stored[1].id).await.unwrap_err();
        let known = insist(&error, &name, how);
        assert_eq!((known.resource, known.deleted), (Some(stored[1].resource), false));
        let next = repo.subscription(stored[2].id).await.unwrap();
        assert_eq!(next.as_ref(), Some(&stored[2]));

        let path = if how == Spoiling::Newer { "/newer/{id}" } else { "/damaged/{id}" };
        let resource = make.resource(path);
        repo.insert_resource(resource.clone()).await.unwrap();
        let name = RecordName::Resource(resource.id);
        subject.spoil(name.clone(), how).await;
        assert!(!insist(&repo.resource(resource.id).await.unwrap_err(), &name, how).deleted);

        let keys = documents(&repo, &make).await;
        let name = RecordName::Document(keys[1].clone());
        subject.spoil(name.clone(), how).await;
        insist(&repo.documents(keys.clone()).await.unwrap_err(), &name, how);
        let others = repo.documents(vec![keys[0].clone(), keys[2].clone()]).await.unwrap();
        assert!(others.iter().all(Option::is_some));

        let keys = rows(&repo, &make, &subject).await;
        let name = RecordName::Row(keys[1].clone());
        subject.spoil(name.clone(), how).await;
        insist(&repo.rows(keys.clone()).await.unwrap_err(), &name, how);
        let others = repo.rows(vec![keys[0].clone(), keys[2].clone()]).await.unwrap();
        assert!(others.iter().all(Option::is_some));
    }
    let stored = subscriptions(&repo, &make, make.id()).await;
    subject.spoil(RecordName::Subscription(stored[0].id), Spoiling::UnknownField).await;
    let read = repo.subscription(stored[0].id).await.unwrap().unwrap();
    assert_eq!((read.id, read.spec.urls()), (stored[0].id, stored[0].spec.urls()));
    let keys = rows(&repo, &make, &subject).await;
    let before = row(&repo, &keys[0]).await;
    subject.spoil(RecordName::Row(keys[0].clone()), Spoiling::UnknownField).await;
    assert_eq!(row(&repo, &keys[0]).await, before);
}

/// Whether what was read is one of these subscriptions.
fn is_one_of(read: &Result<Subscription>, stored: &[Subscription]) -> bool {
    let id = match read {
        Ok(subscription) => Some(subscription.id),
        Err(error) => error.unreadable().and_then(|unreadable| match unreadable.record {
            RecordName::Subscription(id) => Some(id),
            _ => None,
        }),
    };
    stored.iter().any(|it| Some(it.id) == id)
}

/// RU2: a scan gives all that can be read; a limit counts those alone.
pub async fn ru2_scans_go_on(subject: Spoilt) {
    let (repo, make) = (repo(&subject), Make::new("ru2"));
    for how in UNREADABLE {
        let stored = subscriptions(&repo, &make, make.id()).await;
        let spoilt = [RecordName::Subscription(stored[1].id)];
        subject.spoil(spoilt[0].clone(), how).await;
        let after = SubscriptionId::from_bytes(
            (u128::from_be_bytes(*stored[0].id.as_bytes()) - 1).to_be_bytes(),
        );
        let all = every(repo.scan_subscriptions(Some(after))).await;
        assert_eq!(all.len(), 3, "it is one of them");
        let found: Vec<_> = readable(all, &spoilt, how).into_iter().map(|it| it.id).collect();
        assert_eq!(found, [stored[0].id, stored[2].id]);
        let all = every(repo.subscriptions_in(SlotQuery::new([0], 1), None)).await;
        let all: Vec<_> = all.into_iter().filter(|it| is_one_of(it, &stored)).collect();
        assert_eq!(all.len(), 3, "it is one of them");
        let mut found: Vec<_> = readable(all, &spoilt, how).into_iter().map(|it| it.id).collect();
        found.sort();
        assert_eq!(found, [stored[0].id, stored[2].id]);

        let keys = documents(&repo, &make).await;
        let spoilt = [RecordName::Document(keys[1].clone())];
        subject.spoil(spoilt[0].clone(), how).await;
        let all = every(repo.undispatched(Timestamp::MAX)).await;
        let mut found: Vec<DocumentKey> =
            all.into_iter().filter_map(|it| it.ok().map(|it| it.key)).collect();
        found.retain(|key| keys.contains(key));
        found.sort();
        assert_eq!(found, [keys[0].clone(), keys[2].clone()]);
        let all = every(repo.scan_documents(keys[0].resource, None)).await;
        let mut found: Vec<_> = readable(all, &spoilt, how).into_iter().map(|it| it.key).collect();
        found.sort();
        assert_eq!(found, [keys[0].clone(), keys[2].clone()]);

        let gone = documents(&repo, &make).await;
        for key in &gone {
            let version = write(&repo, delete(key, None)).await.version.unwrap();
            mark(&repo, key, version).await;
        }
        subject.spoil(RecordName::Document(gone[1].clone()), how).await;
        let all = every(repo.tombstones(None, Timestamp::MAX)).await;
        let mut found: Vec<_> = all.into_iter().filter_map(|it| Some(it.ok()?.key)).collect();
        found.retain(|key| gone.contains(key));
        found.sort();
        assert_eq!(found, [gone[0].clone(), gone[2].clone()]);

        let keys = rows(&repo, &make, &subject).await;
        let spoilt = [RecordName::Row(keys[0].clone())];
        subject.spoil(spoilt[0].clone(), how).await;
        for limit in [1, 2, 3] {
            let all =
                every(repo.pending_rows(PendingQuery::new(keys[0].subscription, limit))).await;
            let found: Vec<_> = readable(all, &spoilt, how).into_iter().map(|it| it.key).collect();
            assert_eq!(found, keys[1..3][..limit.min(2)], "at most {limit}");
        }

        let subscription = stored[0].id;
        let epoch = epochs(&repo).await[0];
        for shard in 0..3 {
            let state = LaneState::new(LaneId::new(subscription, shard));
            only(repo.store_lanes(epoch, vec![state]).await).unwrap();
        }
        let spoilt = [RecordName::Lane(LaneId::new(subscription, 1))];
        subject.spoil(spoilt[0].clone(), how).await;
        let its = |it: &Result<LaneState>| match it {
            Ok(state) => state.lane.subscription == subscription,
            Err(error) => error.unreadable().is_some_and(|it| it.record == spoilt[0]),
        };
        let all: Vec<_> = every(repo.scan_lanes()).await.into_iter().filter(its).collect();
        assert_eq!(all.len(), 3, "it is one of them");
        let mut found: Vec<_> =
            readable(all, &spoilt, how).into_iter().map(|it| it.lane.shard).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 2]);

        let due = |step: u64| LONG_AGO + Duration::from_millis(step);
        let mut jobs = Vec::new();
        for step in 0..4 {
            let subject = format!("{how:?} {step}");
            let mut job = Job::new(make.id(), JobKind::Backfill, subject, LONG_AGO);
            job.due = due(step);
            assert!(repo.insert_job(job.clone()).await.unwrap());
            jobs.push(job);
        }
        let spoilt = [RecordName::Job(jobs[0].id), RecordName::Job(jobs[1].id)];
        for name in &spoilt {
            subject.spoil(name.clone(), how).await;
        }
        for limit in [1, 2, 3] {
            let all = every(repo.due_jobs(due(9), limit)).await;
            let found = readable(all, &spoilt, how);
            assert_eq!(found, jobs[2..][..limit.min(2)], "at most {limit}");
        }
        let epoch = epochs(&repo).await[2];
        for job in &jobs[2..] {
            repo.finish_job(epoch, job.id).await.unwrap();
        }
        // Out of the way of the next round.
        for job in &jobs[..2] {
            _ = repo.finish_job(Epoch::new(u64::from(u32::MAX)), job.id).await;
        }
    }
}

/// RU3: a list gives it apart, in its place.
pub async fn ru3_lists_give_it_apart(subject: Spoilt) {
    let (repo, make) = (repo(&subject), Make::new("ru3"));
    // Before any of them is spoilt: what a damaged one holds is RU8's to say.
    let jobs = ["0", "1"].map(|it| Job::new(make.id(), JobKind::Queue, it, Timestamp::EPOCH));
    for job in &jobs {
        assert!(repo.insert_job(job.clone()).await.unwrap());
    }
    for (round, how) in UNREADABLE.into_iter().enumerate() {
        let of: ResourceId = make.id();
        let stored = subscriptions(&repo, &make, of).await;
        let name = RecordName::Subscription(stored[1].id);
        subject.spoil(name.clone(), how).await;
        let pages = [
            (Page::new(10, 0), vec![0, 2], 1),
            (Page::new(1, 0), vec![0], 0),
            (Page::new(1, 1), vec![], 1),
            (Page::new(2, 1), vec![2], 1),
            (Page::new(1, 2), vec![2], 0),
        ];
        for (page, readable, unreadable) in pages {
            let listing = repo.list_subscriptions(of, page).await.unwrap();
            let found: Vec<_> = listing.items.iter().map(|it| it.id).collect();
            let wanted: Vec<_> = readable.iter().map(|at: &usize| stored[*at].id).collect();
            assert_eq!((found, listing.total), (wanted, 3), "{page:?}");
            assert_eq!(listing.unreadable.len(), unreadable, "{page:?}");
            for it in &listing.unreadable {
                assert_named(it, &name, how);
                assert_eq!(it.resource, Some(of));
            }
        }

        let resource = make.resource(&format!("/lists/{round}/{{id}}"));
        repo.insert_resource(resource.clone()).await.unwrap();
        let name = RecordName::Resource(resource.id);
        let before = repo.list_resources(Page::new(100, 0)).await.unwrap();
        subject.spoil(name.clone(), how).await;
        let listing = repo.list_resources(Page::new(100, 0)).await.unwrap();
        assert_eq!(listing.total, before.total);
        assert_eq!(listing.items.len() + 1, before.items.len());
        assert_named(listing.unreadable.last().unwrap(), &name, how);

        let subscription = stored[0].id;
        let epoch = epochs(&repo).await[0];
        for shard in 0..3 {
            let state = LaneState::new(LaneId::new(subscription, shard));
            only(repo.store_lanes(epoch, vec![state]).await).unwrap();
        }
        let name = RecordName::Lane(LaneId::new(subscription, 1));
        subject.spoil(name.clone(), how).await;
        let document = make.document(of);
        for it in &stored {
            spread(&repo, it.id, &document, live(1)).await;
        }
        let row = RecordName::Row(RowKey::new(stored[1].id, document.url.clone()));
        subject.spoil(row.clone(), how).await;
        let rows = repo.rows_of(vec![document.clone()], None, 10).await.unwrap();
        assert_eq!((rows.items.len(), rows.total), (2, 3));
        assert_named(&rows.unreadable[0], &row, how);
        let rows = repo.rows_of(vec![document], None, 2).await.unwrap();
        assert_eq!((rows.items.len(), rows.unreadable.len(), rows.total), (1, 1, 2));

        let lanes = repo.lanes(subscription).await.unwrap();
        let shards: Vec<u16> = lanes.items.iter().map(|it| it.lane.shard).collect();
        assert_eq!(shards, [0, 2]);
        assert_named(&lanes.unreadable[0], &name, how);

        let job = &jobs[round];
        let slot = AuditSubject::slot(u32::try_from(round).unwrap());
        let entry = AuditEntry::new(
            make.id(),
            Timestamp::EPOCH,
            Actor::Host,
            AuditAction::Pinned,
            slot.clone(),
        );
        repo.insert_audit(vec![entry.clone()]).await.unwrap();
        let names = (RecordName::Job(job.id), RecordName::Audit(entry.id));
        subject.spoil(names.0.clone(), how).await;
        subject.spoil(names.1.clone(), how).await;
        let found = repo.list_jobs(Page::new(100, 0)).await.unwrap();
        assert_eq!((found.total, found.items.len()), (2, 1 - round));
        assert_named(&found.unreadable[round], &names.0, how);
        let entries = repo.list_audit(Some(&slot), Page::new(100, 0)).await.unwrap();
        assert_eq!((entries.items, entries.total), (vec![], 1));
        assert_named(&entries.unreadable[0], &names.1, how);
    }
}

/// RU4: documents of a resource that cannot be read match nothing else, and others match without it.
pub async fn ru4_only_its_own_documents_match_nothing(subject: Spoilt) {
    let make = Make::new("ru4");
    let repo = repo(&subject);
    for (round, how) in UNREADABLE.into_iter().enumerate() {
        let general = make.resource(&format!("/{round}/{{kind}}/{{id}}"));
        let special = make.resource(&format!("/{round}/users/{{id}}"));
        let elsewhere = make.resource(&format!("/{round}/{{a}}/{{b}}/{{c}}"));
        for resource in [&general, &special, &elsewhere] {
            repo.insert_resource(resource.clone()).await.unwrap();
        }
        let name = RecordName::Resource(special.id);
        subject.spoil(name.clone(), how).await;
        let url = |path: &str| make.url(&format!("/{round}{path}"));
        let (user, item, deep) = (url("/users/1"), url("/items/1"), url("/users/1/x"));
        insist(&repo.match_resources(vec![user.clone()]).await.unwrap_err(), &name, how);
        let batch = vec![item.clone(), user, deep.clone()];
        insist(&repo.match_resources(batch).await.unwrap_err(), &name, how);
        let others = repo.match_resources(vec![item, deep]).await.unwrap();
        assert_eq!(others, [vec![general], vec![elsewhere]]);

        // One that is less specific is in nobody's way.
        let other = format!("/other-{round}");
        let [general, special] =
            ["{id}", "1"].map(|id| make.resource(&format!("{other}/{id}/{{more}}")));
        for resource in [&general, &special] {
            repo.insert_resource(resource.clone()).await.unwrap();
        }
        subject.spoil(RecordName::Resource(general.id), how).await;
        let url = make.url(&format!("{other}/1/x"));
        assert_eq!(repo.match_resources(vec![url]).await.unwrap(), [vec![special]]);
    }
}

/// RU5: a subscription that cannot be read is told of, by whoever can.
pub async fn ru5_its_rows_are_made_all_the_same(subject: Spoilt) {
    let (repo, make) = (repo(&subject), Make::new("ru5"));
    for how in UNREADABLE {
        let stored = subscriptions(&repo, &make, make.id()).await;
        let (resource, partition) = (stored[0].resource, stored[0].partition);
        let before = repo.members(resource, partition).await.unwrap();
        subject.spoil(RecordName::Subscription(stored[1].id), how).await;
        assert_eq!(repo.partitions(resource).await.unwrap(), [partition]);
        let mut members = repo.members(resource, partition).await.unwrap();
        members.sort_by_key(|member| member.subscription);
        let ids = |members: &[flare_core::port::Member]| {
            members.iter().map(|it| (it.subscription, it.generation)).collect::<Vec<_>>()
        };
        assert_eq!(ids(&members), ids(&before));
    }
}
