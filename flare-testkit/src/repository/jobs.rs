//! Clauses RJ1 to RJ7: long work that anybody may go on with.

use std::time::Duration;

use flare_core::model::{Applied, Job, JobKind, Timestamp};
use flare_core::port::Page;

use super::make::{LONG_AGO, Make, Repo, all, epochs, race};

/// RJ1: of jobs for one kind and subject one is stored, and stays as it is.
pub async fn rj1_one_job_per_kind_and_subject(repo: Repo) {
    let make = Make::new("rj1");
    for round in 0..8 {
        let subject = format!("subject.$ {round} 😀");
        let rivals: Vec<Job> = (0..8)
            .map(|racer| {
                let mut job = Job::new(make.id(), JobKind::Backfill, &subject, LONG_AGO);
                job.cursor = Some(format!("racer {racer}"));
                job
            })
            .collect();
        let stored = race(|racer| {
            let (port, job) = (repo.port(), rivals[racer].clone());
            async move { port.insert_job(job).await.unwrap() }
        })
        .await;
        assert_eq!(stored.iter().filter(|stored| **stored).count(), 1);
        let winner = stored.iter().position(|stored| *stored).unwrap();
        let found: Vec<Job> = all_due(&repo).await;
        let found: Vec<&Job> = found.iter().filter(|job| job.subject == subject).collect();
        assert_eq!(found, [&rivals[winner]]);
        assert!(!repo.insert_job(rivals[winner].clone()).await.unwrap(), "it is there already");

        let other_kind = Job::new(make.id(), JobKind::Expire, &subject, LONG_AGO);
        assert!(repo.insert_job(other_kind).await.unwrap(), "another kind");
    }
    assert_eq!(all_due(&repo).await.len(), 16);
}

/// RJ2: due jobs come earliest first, by the time named, at most so many.
pub async fn rj2_due_jobs_come_earliest_first(repo: Repo) {
    let make = Make::new("rj2");
    let due = |step: u64| LONG_AGO + Duration::from_millis(step);
    let mut jobs: Vec<Job> = (0..6)
        .map(|step| {
            let mut job = Job::new(make.id(), JobKind::Queue, format!("{step}"), LONG_AGO);
            (job.due, job.cursor) = (due(step), (step % 2 == 0).then(|| "a.$".to_owned()));
            job
        })
        .collect();
    for index in [4, 1, 5, 0, 3, 2] {
        assert!(repo.insert_job(jobs[index].clone()).await.unwrap());
    }
    let cases = [
        (due(100), 100, 6),
        (due(100), 4, 4),
        (due(3), 100, 4),
        (due(3), 2, 2),
        (due(0), 100, 1),
        (LONG_AGO - Duration::from_millis(1), 100, 0),
    ];
    for (due_by, limit, count) in cases {
        let found = all(repo.due_jobs(due_by, limit)).await;
        assert_eq!(found, jobs[..count], "due by {due_by}, at most {limit}");
    }
    // A job that goes on later moves back in the line.
    let first = jobs.remove(0);
    let epoch = epochs(&repo).await[0];
    repo.advance_job(epoch, first.id, None, due(50)).await.unwrap();
    assert_eq!(all(repo.due_jobs(due(49), 100)).await, jobs);
    let ids: Vec<_> = all_due(&repo).await.into_iter().map(|job| job.id).collect();
    assert_eq!(ids.last(), Some(&first.id));
}

/// RJ3: advancing and finishing are fenced; advancing stores cursor, due time and epoch.
pub async fn rj3_work_on_a_job_is_fenced(repo: Repo) {
    let make = Make::new("rj3");
    let [low, middle, high] = epochs(&repo).await;
    let mut expected = Job::new(make.id(), JobKind::RemoveResource, "x", LONG_AGO);
    let id = expected.id;
    assert!(repo.insert_job(expected.clone()).await.unwrap());
    let steps = [
        (middle, Some("a"), Applied::Done),
        (low, Some("b"), Applied::Fenced { epoch: middle }),
        (middle, Some("c"), Applied::Done),
        (high, None, Applied::Done),
        (middle, Some("d"), Applied::Fenced { epoch: high }),
    ];
    for (step, (epoch, cursor, answer)) in steps.into_iter().enumerate() {
        let due = LONG_AGO + Duration::from_nanos(step as u64);
        let cursor = cursor.map(str::to_owned);
        let applied = repo.advance_job(epoch, id, cursor.clone(), due).await.unwrap();
        assert_eq!(applied, answer);
        if answer == Applied::Done {
            (expected.cursor, expected.due, expected.epoch) = (cursor, due, epoch);
        }
        assert_eq!(all_due(&repo).await, [expected.clone()]);
    }
    for epoch in [low, middle] {
        let applied = repo.finish_job(epoch, id).await.unwrap();
        assert_eq!(applied, Applied::Fenced { epoch: high });
        assert_eq!(all_due(&repo).await, [expected.clone()]);
    }
    assert_eq!(repo.finish_job(high, id).await.unwrap(), Applied::Done);
    let nobody = repo.advance_job(high, make.id(), None, LONG_AGO).await.unwrap();
    assert_eq!(nobody, Applied::Missing);
}

/// RJ4: a finished job is gone, and its kind and subject are free.
pub async fn rj4_a_finished_job_is_gone(repo: Repo) {
    let make = Make::new("rj4");
    let epoch = epochs(&repo).await[0];
    for _ in 0..3 {
        let job = Job::new(make.id(), JobKind::Migrate, "x", LONG_AGO);
        assert!(repo.insert_job(job.clone()).await.unwrap(), "free again");
        assert_eq!(repo.finish_job(epoch, job.id).await.unwrap(), Applied::Done);
        assert_eq!(all_due(&repo).await, []);
        assert_eq!(repo.finish_job(epoch, job.id).await.unwrap(), Applied::Missing);
        let advanced = repo.advance_job(epoch, job.id, None, LONG_AGO).await.unwrap();
        assert_eq!(advanced, Applied::Missing);
    }
}

/// RJ5: a job is found by kind and subject, whenever it is due, as it is stored.
pub async fn rj5_finds_a_job_due_or_not(repo: Repo) {
    let make = Make::new("rj5");
    let epoch = epochs(&repo).await[0];
    let mut jobs = Vec::new();
    for (kind, subject) in
        [(JobKind::Reconcile, "x"), (JobKind::Expire, "x"), (JobKind::Expire, "y")]
    {
        let mut job = Job::new(make.id(), kind, subject, LONG_AGO);
        job.due = Timestamp::from_unix_seconds(4_000_000_000);
        assert_eq!(repo.job(kind, subject).await.unwrap(), None, "not asked for yet");
        assert!(repo.insert_job(job.clone()).await.unwrap());
        jobs.push(job);
    }
    for job in &mut jobs {
        assert_eq!(repo.job(job.kind, &job.subject).await.unwrap().as_ref(), Some(&*job));
        // What becomes of the cursor, and of a job that is done, is RJ3's and RJ4's to say.
        (job.epoch, job.due) = (epoch, job.due + Duration::from_secs(1));
        repo.advance_job(epoch, job.id, None, job.due).await.unwrap();
        assert_eq!(repo.job(job.kind, &job.subject).await.unwrap().as_ref(), Some(&*job));
    }
}

/// RJ6: a job is claimed while it is due and nobody later has it, as it is stored then, by one of many.
pub async fn rj6_a_job_is_claimed_as_it_is_stored(repo: Repo) {
    let make = Make::new("rj6");
    let [low, middle, high] = epochs(&repo).await;
    let at = |step: u64| LONG_AGO + Duration::from_millis(step);
    let mut expected = Job::new(make.id(), JobKind::Resync, "x", LONG_AGO);
    let id = expected.id;
    expected.cursor = Some("far".to_owned());
    assert!(repo.insert_job(expected.clone()).await.unwrap());
    (expected.due, expected.epoch) = (at(10), middle);
    let claimed = repo.claim_job(middle, id, LONG_AGO, at(10)).await.unwrap();
    assert_eq!(claimed.as_ref(), Some(&expected), "with its cursor");
    for (epoch, due_by) in [(low, at(10)), (high, at(9))] {
        assert_eq!(repo.claim_job(epoch, id, due_by, at(50)).await.unwrap(), None);
        assert_eq!(all_due(&repo).await, [expected.clone()], "nothing changed");
    }
    (expected.due, expected.epoch) = (at(50), high);
    let claimed = repo.claim_job(high, id, at(10), at(50)).await.unwrap();
    assert_eq!(claimed, Some(expected.clone()));
    assert_eq!(all_due(&repo).await, [expected]);
    assert_eq!(repo.claim_job(high, make.id(), at(99), at(100)).await.unwrap(), None, "unknown");

    for round in 0..8 {
        let job = Job::new(make.id(), JobKind::Queue, format!("{round}"), LONG_AGO);
        assert!(repo.insert_job(job.clone()).await.unwrap());
        let claimed = race(|_| {
            let (port, id) = (repo.port(), job.id);
            async move { port.claim_job(high, id, at(10), at(50)).await.unwrap().is_some() }
        });
        let claimed = claimed.await.into_iter().filter(|claimed| *claimed).count();
        assert_eq!(claimed, 1, "one of many has it");
    }
}

/// RJ7: all jobs, due or not, the oldest first, page by page, with their total.
pub async fn rj7_lists_all_oldest_first(repo: Repo) {
    let make = Make::new("rj7");
    assert_eq!(repo.list_jobs(Page::new(30, 0)).await.unwrap().total, 0);
    let mut jobs: Vec<Job> = (0..7)
        .map(|step| {
            let mut job = Job::new(make.id(), JobKind::Queue, format!("{step}"), LONG_AGO);
            // The later they are made the earlier they are due, and some are not for long.
            job.due = Timestamp::from_unix_seconds(4_000_000_000 - step * 1_000_000_000);
            job.cursor = (step % 2 == 0).then(|| "a.$".to_owned());
            job
        })
        .collect();
    for index in [3, 0, 6, 1, 5, 2, 4] {
        assert!(repo.insert_job(jobs[index].clone()).await.unwrap());
    }
    let epoch = epochs(&repo).await[0];
    (jobs[1].due, jobs[1].epoch) = (LONG_AGO, epoch);
    repo.advance_job(epoch, jobs[1].id, None, LONG_AGO).await.unwrap();
    for (limit, offset) in [(30, 0), (2, 0), (2, 2), (3, 4), (3, 6), (2, 7), (2, 1_000), (1, 3)] {
        let listing = repo.list_jobs(Page::new(limit, offset)).await.unwrap();
        let wanted = jobs.iter().skip(offset as usize).take(limit as usize);
        assert_eq!(listing.items, wanted.cloned().collect::<Vec<_>>(), "{limit} after {offset}");
        assert_eq!(listing.total, 7);
    }
}

async fn all_due(repo: &Repo) -> Vec<Job> {
    all(repo.due_jobs(Timestamp::MAX, 1_000)).await
}
