//! Clauses RA1 to RA3: what operators and nodes did.

use std::time::Duration;

use flare_core::model::{Actor, AuditAction, AuditEntry, AuditSubject, Timestamp};
use flare_core::port::Page;

use super::make::{LONG_AGO, Make, Repo, race};

/// Something that was done so many milliseconds after [`LONG_AGO`].
fn entry(make: &Make, millis: u64, subject: &AuditSubject) -> AuditEntry {
    let at = LONG_AGO + Duration::from_millis(millis);
    AuditEntry::new(make.id(), at, Actor::named("ops"), AuditAction::Paused, subject.clone())
}

async fn all(repo: &Repo) -> Vec<AuditEntry> {
    let listing = repo.list_audit(None, Page::new(1_000, 0)).await.unwrap();
    assert_eq!(listing.unreadable, []);
    assert_eq!(listing.total, listing.items.len() as u64);
    listing.items
}

/// RA1: an entry comes back as it was stored, with whatever it has.
pub async fn ra1_entries_come_back_exactly(repo: Repo) {
    let make = Make::new("ra1_exactly");
    let odd = "ops.$ {}\" 😀";
    let subjects = [
        AuditSubject::subscription(make.id()),
        AuditSubject::resource(make.id()),
        AuditSubject::consumer(make.id()),
        AuditSubject::node(make.id()),
        AuditSubject::slot(u32::MAX),
        AuditSubject::sign_in(odd),
    ];
    let actors = [Actor::Host, Actor::named(odd), Actor::node("")];
    let other = AuditAction::of("painted");
    let actions = AuditAction::KNOWN.iter().chain([&other]);
    let mut entries = Vec::new();
    for (number, action) in actions.enumerate() {
        let subject = &subjects[number % subjects.len()];
        let mut entry = entry(&make, number as u64, subject);
        entry.at = entry.at + Duration::from_nanos(1);
        entry.actor = actors[number % actors.len()].clone();
        entry.action = action.clone();
        if number % 2 == 0 {
            entry = entry.with_detail(format!("{odd}\u{0}\n{number}")).with_count(i64::MAX as u64);
        }
        entries.push(entry);
    }
    repo.insert_audit(entries.clone()).await.unwrap();
    repo.insert_audit(Vec::new()).await.unwrap();
    entries.reverse();
    assert_eq!(all(&repo).await, entries);
}

/// RA1: what is there stays as it was first stored, and holds up nothing beside it.
pub async fn ra1_an_entry_stays_as_it_was_first_stored(repo: Repo) {
    let make = Make::new("ra1_first");
    let slot = AuditSubject::slot(1);
    let first: Vec<AuditEntry> = (0..3).map(|step| entry(&make, step, &slot)).collect();
    repo.insert_audit(vec![first[1].clone()]).await.unwrap();
    let mut again = first[1].clone();
    again.action = AuditAction::Resumed;
    repo.insert_audit(vec![first[0].clone(), again.clone(), first[2].clone()]).await.unwrap();
    repo.insert_audit(vec![again]).await.unwrap();
    let wanted: Vec<AuditEntry> = first.into_iter().rev().collect();
    assert_eq!(all(&repo).await, wanted);

    // Of many at once that are made again after an answer was lost, each is there once.
    let batch: Vec<AuditEntry> = (3..23).map(|step| entry(&make, step, &slot)).collect();
    race(|_| {
        let (port, batch) = (repo.port(), batch.clone());
        async move { port.insert_audit(batch).await.unwrap() }
    })
    .await;
    let wanted: Vec<AuditEntry> = batch.into_iter().rev().chain(wanted).collect();
    assert_eq!(all(&repo).await, wanted);
}

/// RA2: entries come newest first, by id, page by page, with their total.
pub async fn ra2_lists_the_newest_first(repo: Repo) {
    let make = Make::new("ra2_newest");
    assert_eq!(repo.list_audit(None, Page::new(30, 0)).await.unwrap().total, 0);
    // Their times are no order: two nodes tell them a little apart.
    let made: Vec<AuditEntry> =
        (0..7).map(|step| entry(&make, 100 - step, &AuditSubject::slot(1))).collect();
    for index in [3, 0, 6, 1, 5, 2, 4] {
        repo.insert_audit(vec![made[index].clone()]).await.unwrap();
    }
    for (limit, offset) in [(30, 0), (2, 0), (2, 2), (3, 4), (3, 6), (2, 7), (2, 1_000), (1, 3)] {
        let listing = repo.list_audit(None, Page::new(limit, offset)).await.unwrap();
        let wanted = made.iter().rev().skip(offset as usize).take(limit as usize);
        assert_eq!(listing.items, wanted.cloned().collect::<Vec<_>>(), "{limit} after {offset}");
        assert_eq!(listing.total, 7);
    }
}

/// RA2: those of one subject are those of exactly that.
pub async fn ra2_lists_those_of_one_subject(repo: Repo) {
    let make = Make::new("ra2_subject");
    let subjects =
        ["slot/1", "slot/12", "node/1", "sign-in/a%", "sign-in/a", "sign-in/A", "sign-in/ä"]
            .map(|text| text.parse::<AuditSubject>().unwrap());
    let made: Vec<AuditEntry> =
        (0..21_usize).map(|step| entry(&make, step as u64, &subjects[step % 7])).collect();
    repo.insert_audit(made.clone()).await.unwrap();
    for subject in &subjects {
        let mut wanted: Vec<_> = made.iter().filter(|it| it.subject == *subject).cloned().collect();
        wanted.reverse();
        let listing = repo.list_audit(Some(subject), Page::new(30, 0)).await.unwrap();
        assert_eq!((listing.items, listing.total), (wanted.clone(), 3), "{subject}");
        let second = repo.list_audit(Some(subject), Page::new(1, 1)).await.unwrap();
        assert_eq!((second.items, second.total), (vec![wanted[1].clone()], 3), "{subject}");
    }
    let none = repo.list_audit(Some(&AuditSubject::slot(2)), Page::new(30, 0)).await.unwrap();
    assert_eq!((none.items, none.total), (vec![], 0));
}

/// RA3: the smallest ids go first, so many at a time, until the newest are left.
pub async fn ra3_keeps_the_newest(repo: Repo) {
    let make = Make::new("ra3_newest");
    let made: Vec<AuditEntry> =
        (0..10).map(|step| entry(&make, 100 - step, &AuditSubject::slot(1))).collect();
    repo.insert_audit(made.clone()).await.unwrap();
    let left = |from: usize| made[from..].iter().rev().cloned().collect::<Vec<_>>();
    for (keep, limit, removed, from) in [
        (10, 100, 0, 0),
        (u64::MAX, 100, 0, 0),
        (4, 0, 0, 0),
        (4, 2, 2, 2),
        (4, 3, 3, 5),
        (4, 3, 1, 6),
        (4, 3, 0, 6),
    ] {
        let did = repo.trim_audit(keep, LONG_AGO, limit).await.unwrap();
        assert_eq!(did, removed, "keep {keep}, at most {limit}");
        assert_eq!(all(&repo).await, left(from), "keep {keep}, at most {limit}");
    }
    assert_eq!(repo.trim_audit(0, Timestamp::EPOCH, 100).await.unwrap(), 4);
    assert_eq!(all(&repo).await, []);
}

/// RA3: what is from before the time goes, and what is of that time stays.
pub async fn ra3_forgets_what_is_old(repo: Repo) {
    let make = Make::new("ra3_old");
    let steps = [5, 1, 9, 3, 7, 3];
    let made: Vec<AuditEntry> =
        steps.iter().map(|step| entry(&make, *step, &AuditSubject::slot(1))).collect();
    repo.insert_audit(made.clone()).await.unwrap();
    let left = |ids: &[usize]| ids.iter().rev().map(|at| made[*at].clone()).collect::<Vec<_>>();
    let before = |millis: u64| LONG_AGO + Duration::from_millis(millis);
    for (millis, keep, limit, removed, stay) in [
        (1, 100, 100, 0, &[0, 1, 2, 3, 4, 5][..]),
        (3, 100, 100, 1, &[0, 2, 3, 4, 5]),
        (6, 100, 2, 2, &[2, 4, 5]),
        (6, 100, 2, 1, &[2, 4]),
        // One is too old, though it is the newest, and the other one too many.
        (9, 1, 100, 2, &[]),
    ] {
        let did = repo.trim_audit(keep, before(millis), limit).await.unwrap();
        let found = (did, all(&repo).await);
        assert_eq!(found, (removed, left(stay)), "before {millis}, keep {keep}");
    }
}
