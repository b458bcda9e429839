//! Clauses RD5 to RD11, RD16 and RD17: how far documents have been spread, finding, counting and removing them.

use std::collections::BTreeSet;
use std::time::Duration;

use flare_core::model::{DocumentKey, DocumentUrl, PartitionId, ResourceId, Timestamp, Version};
use flare_core::port::{ClosePartition, Closed, OpenPartitions, Opened};

use super::make::{
    Make, Repo, all, delete, document, gone, live, mark, now, only, open, put, race,
    stored_version, undispatched, write,
};

/// RD5: an open set is stored at the version named, and stays if there is one.
pub async fn rd5_the_first_open_set_stays(repo: Repo) {
    let make = Make::new("rd5_first");
    let key = make.lone_document();
    write(&repo, put(&key, 1)).await;
    for partitions in [&[1, 2, 3][..], &[1, 2, 3], &[4], &[1]] {
        assert_open(open(&repo, &key, live(1), partitions).await, &[1, 2, 3]);
        assert_eq!(open_set(&repo, &key).await, Some(set(&[1, 2, 3])));
    }
    // Of sets that come at once one is stored, and everybody learns which.
    write(&repo, put(&key, 2)).await;
    let answers = race(|racer| {
        let (port, key) = (repo.port(), key.clone());
        let partitions = vec![PartitionId::new(racer as u32 + 10), PartitionId::new(9)];
        async move {
            let open = OpenPartitions { key, version: live(2), partitions };
            port.open_partitions(vec![open]).await.pop().unwrap().unwrap()
        }
    })
    .await;
    let stored: Vec<u32> = open_set(&repo, &key).await.unwrap().into_iter().collect();
    answers.into_iter().for_each(|answer| assert_open(answer, &stored));
}

/// RD5: at another version, or once dispatched, nothing is opened.
pub async fn rd5_only_the_stored_version_is_opened(repo: Repo) {
    let make = Make::new("rd5_version");
    let key = make.lone_document();
    assert_eq!(open(&repo, &key, live(1), &[1]).await, Opened::Superseded, "never seen");
    assert_eq!(document(&repo, &key).await, None);
    write(&repo, put(&key, 1)).await;
    write(&repo, put(&key, 2)).await;
    for version in [live(1), gone(2), live(3)] {
        assert_eq!(open(&repo, &key, version, &[1]).await, Opened::Superseded, "{version}");
        assert_eq!(open_set(&repo, &key).await, None, "{version}");
    }
    mark(&repo, &key, live(2)).await;
    assert_eq!(open(&repo, &key, live(2), &[1]).await, Opened::Dispatched);
    assert!(!undispatched(&repo, &key).await);
}

/// RD6: each removal takes one partition off; the one that empties the set dispatches.
pub async fn rd6_the_last_removal_dispatches(repo: Repo) {
    let make = Make::new("rd6_last");
    let key = make.lone_document();
    write(&repo, put(&key, 1)).await;
    assert_eq!(close(&repo, &key, live(1), 1).await, Closed::Open, "never opened");
    open(&repo, &key, live(1), &[1, 2, 3]).await;
    let steps: [(u32, &[u32]); 5] =
        [(9, &[1, 2, 3]), (2, &[1, 3]), (2, &[1, 3]), (1, &[3]), (9, &[3])];
    for (partition, left) in steps {
        assert_eq!(close(&repo, &key, live(1), partition).await, Closed::Open);
        assert_eq!(open_set(&repo, &key).await, Some(set(left)), "without {partition}");
        assert!(undispatched(&repo, &key).await);
    }
    for _ in 0..2 {
        assert_eq!(close(&repo, &key, live(1), 3).await, Closed::Dispatched);
        assert_eq!(document(&repo, &key).await.unwrap().dispatched, Some(live(1)));
    }
}

/// RD6: removals at another version change nothing; a newer version stays undispatched.
pub async fn rd6_a_newer_version_stays_undispatched(repo: Repo) {
    let make = Make::new("rd6_newer");
    let key = make.lone_document();
    assert_eq!(close(&repo, &key, live(1), 1).await, Closed::Superseded, "never seen");
    write(&repo, put(&key, 1)).await;
    open(&repo, &key, live(1), &[1, 2]).await;
    close(&repo, &key, live(1), 1).await;
    write(&repo, put(&key, 2)).await;
    assert_eq!(close(&repo, &key, live(1), 2).await, Closed::Superseded);
    assert!(undispatched(&repo, &key).await);
    open(&repo, &key, live(2), &[2]).await;
    for version in [live(1), gone(2), live(3)] {
        assert_eq!(close(&repo, &key, version, 2).await, Closed::Superseded, "{version}");
        assert_eq!(open_set(&repo, &key).await, Some(set(&[2])), "{version}");
        assert!(undispatched(&repo, &key).await, "{version}");
    }
}

/// RD6: removals at once lose nothing, and a put among them is not taken for spread.
pub async fn rd6_removals_at_once_lose_nothing(repo: Repo) {
    let make = Make::new("rd6_race");
    for round in 0..12 {
        let key = make.lone_document();
        write(&repo, put(&key, 1)).await;
        open(&repo, &key, live(1), &[0, 1, 2, 3, 4, 5, 6, 7]).await;
        let with_put = round % 2 == 1;
        let closed = race(|racer| {
            let (port, key) = (repo.port(), key.clone());
            async move {
                if with_put && racer == 3 {
                    port.write_documents(vec![put(&key, 2)]).await.pop().unwrap().unwrap();
                }
                let partition = PartitionId::new(racer as u32);
                let close = ClosePartition { key, version: live(1), partition };
                port.close_partitions(vec![close]).await.pop().unwrap().unwrap()
            }
        })
        .await;
        let dispatched = closed.iter().filter(|closed| **closed == Closed::Dispatched).count();
        assert_eq!(dispatched, usize::from(!with_put), "{closed:?}");
        assert_eq!(undispatched(&repo, &key).await, with_put);
    }
}

/// RD7: marking raises `dispatched`, never beyond what is stored, never down.
pub async fn rd7_marking_only_raises(repo: Repo) {
    let make = Make::new("rd7");
    let key = make.lone_document();
    write(&repo, put(&key, 5)).await;
    for version in [live(3), gone(4)] {
        mark(&repo, &key, version).await;
        assert!(undispatched(&repo, &key).await, "{version} is not the stored one");
    }
    mark(&repo, &key, live(5)).await;
    for version in [live(5), live(3), gone(4)] {
        mark(&repo, &key, version).await;
        assert!(!undispatched(&repo, &key).await, "{version} takes nothing back");
    }
    mark(&repo, &key, live(9)).await;
    write(&repo, put(&key, 6)).await;
    assert!(undispatched(&repo, &key).await, "a mark in advance counts for nothing");
    write(&repo, put(&key, 9)).await;
    assert!(undispatched(&repo, &key).await, "not even for its own version");

    let unseen = make.lone_document();
    let _ = only(repo.mark_dispatched(vec![(unseen.clone(), live(1))]).await);
    assert_eq!(document(&repo, &unseen).await, None, "a mark makes no document");
}

/// RD8: everything undispatched that was stored by then is found, and all of it counted.
pub async fn rd8_finds_and_counts_what_is_undispatched(repo: Repo) {
    let make = Make::new("rd8");
    let resources: [ResourceId; 2] = [make.id(), make.id()];
    let keys: Vec<_> = (0..40).map(|index| make.document(resources[index % 2])).collect();
    let start = now(&repo).await;
    repo.pass_ticks(2).await;
    for (index, key) in keys.iter().enumerate() {
        write(&repo, put(key, 1)).await;
        match index % 4 {
            0 => mark(&repo, key, live(1)).await,
            1 => drop(open(&repo, key, live(1), &[4, 2]).await),
            2 => drop(write(&repo, delete(key, None)).await),
            _ => {}
        }
    }
    write(&repo, delete(&make.document(resources[0]), Some(1))).await;
    repo.pass_ticks(2).await;
    let middle = now(&repo).await;
    repo.pass_ticks(2).await;
    let late = make.document(resources[1]);
    write(&repo, put(&late, 1)).await;

    assert!(all(repo.undispatched(start)).await.is_empty());
    let mut found = BTreeSet::new();
    for item in all(repo.undispatched(middle)).await {
        assert!(start < item.updated_at && item.updated_at <= middle);
        let index = keys.iter().position(|key| *key == item.key).expect("one of those put");
        let expected = if index % 4 == 2 { gone(1) } else { live(1) };
        assert_eq!(item.version, expected);
        let open = item.open.map(|open| set_of(&open));
        assert_eq!(open, (index % 4 == 1).then(|| set(&[2, 4])));
        assert!(found.insert(index), "each once");
    }
    assert_eq!(found, (0..40).filter(|index| index % 4 != 0).collect());
    let exact = document(&repo, &late).await.unwrap().updated_at;
    assert_eq!(all(repo.undispatched(exact)).await.len(), 31, "at the time named, too");

    assert_eq!(repo.count_undispatched(None).await.unwrap(), 31);
    assert_eq!(repo.count_undispatched(Some(resources[0])).await.unwrap(), 10);
    assert_eq!(repo.count_undispatched(Some(resources[1])).await.unwrap(), 21);
    assert_eq!(repo.count_undispatched(Some(make.id())).await.unwrap(), 0);
}

/// RD9: only the very version named is removed, and only once dispatched.
pub async fn rd9_removes_only_the_version_named(repo: Repo) {
    let make = Make::new("rd9");
    let key = make.lone_document();
    assert!(!repo.remove_document(&key, live(1)).await.unwrap(), "never seen");
    write(&repo, put(&key, 1)).await;
    write(&repo, delete(&key, None)).await;
    assert!(!repo.remove_document(&key, gone(1)).await.unwrap(), "undispatched");
    mark(&repo, &key, gone(1)).await;
    for version in [live(1), gone(0), live(2)] {
        assert!(!repo.remove_document(&key, version).await.unwrap(), "{version}");
    }
    assert_eq!(stored_version(&repo, &key).await, Some(gone(1)));
    assert!(repo.remove_document(&key, gone(1)).await.unwrap());
    assert_eq!(document(&repo, &key).await, None);
    assert!(!repo.remove_document(&key, gone(1)).await.unwrap(), "removed already");
}

/// RD10: a scan has every live document, in an order that never changes.
pub async fn rd10_scans_live_documents_in_one_order(repo: Repo) {
    let make = Make::new("rd10_scan");
    let keys = make.documents(17);
    let resource = keys[0].resource;
    for key in &keys {
        write(&repo, put(key, 1)).await;
    }
    write(&repo, put(&make.lone_document(), 1)).await;
    write(&repo, delete(&keys[3], None)).await;
    let scan = async |after: Option<DocumentUrl>| {
        let heads = all(repo.scan_documents(resource, after)).await;
        heads.into_iter().map(|head| (head.key.url, head.version)).collect::<Vec<_>>()
    };
    let urls = |heads: &[(DocumentUrl, Version)]| -> Vec<DocumentUrl> {
        heads.iter().map(|(url, _)| url.clone()).collect()
    };
    let first = scan(None).await;
    let live_ones = keys.iter().enumerate().filter(|(index, _)| *index != 3);
    let expected: BTreeSet<_> = live_ones.map(|(_, key)| key.url.clone()).collect();
    assert_eq!(first.len(), expected.len(), "each once");
    assert_eq!(urls(&first).into_iter().collect::<BTreeSet<_>>(), expected);

    // Neither updates nor newcomers nor removals move anybody.
    write(&repo, put(&keys[5], 2)).await;
    write(&repo, put(&make.document(resource), 1)).await;
    let (gone_url, _) = first[6].clone();
    write(&repo, delete(&DocumentKey::new(resource, gone_url.clone()), None)).await;
    for (index, (url, _)) in first.iter().enumerate() {
        let then = scan(Some(url.clone())).await;
        let old: Vec<_> = urls(&then).into_iter().filter(|url| expected.contains(url)).collect();
        let mut rest = urls(&first[index + 1..]);
        rest.retain(|url| *url != gone_url);
        assert_eq!(old, rest, "after {url}");
        for (url, version) in then {
            assert_eq!(version, if url == keys[5].url { live(2) } else { live(1) });
        }
    }
}

/// RD10: tombstones are found once dispatched, if they were stored by then.
pub async fn rd10_finds_dispatched_tombstones(repo: Repo) {
    let make = Make::new("rd10_tombstones");
    let keys = make.documents(5);
    let start = now(&repo).await;
    repo.pass_ticks(2).await;
    for key in &keys[..4] {
        write(&repo, put(key, 1)).await;
    }
    for key in &keys[..2] {
        write(&repo, delete(key, None)).await;
    }
    mark(&repo, &keys[0], gone(1)).await;
    mark(&repo, &keys[2], live(1)).await;
    write(&repo, delete(&keys[4], Some(8))).await;
    repo.pass_ticks(2).await;
    let middle = now(&repo).await;
    repo.pass_ticks(2).await;
    let late = make.lone_document();
    write(&repo, delete(&late, Some(3))).await;

    let found = async |until: Timestamp| {
        let heads = all(repo.tombstones(None, until)).await;
        heads.into_iter().map(|head| (head.key, head.version)).collect::<BTreeSet<_>>()
    };
    assert_eq!(found(start).await, BTreeSet::new());
    let early = BTreeSet::from([(keys[0].clone(), gone(1)), (keys[4].clone(), gone(8))]);
    assert_eq!(found(middle).await, early);
    let exact = document(&repo, &late).await.unwrap().updated_at;
    let mut everything = early;
    everything.insert((late, gone(3)));
    assert_eq!(found(exact).await, everything);
}

/// RD10: tombstones come earliest first, after a time if one is named.
pub async fn rd10_tombstones_come_by_their_time(repo: Repo) {
    let make = Make::new("rd10_order");
    let mut times = Vec::new();
    for key in make.documents(4).iter().rev() {
        write(&repo, delete(key, Some(1))).await;
        times.push(document(&repo, key).await.unwrap().updated_at);
        repo.pass_ticks(2).await;
    }
    let found = async |after, until| {
        let heads = all(repo.tombstones(after, until)).await;
        heads.into_iter().map(|head| head.updated_at).collect::<Vec<_>>()
    };
    assert_eq!(found(None, times[3]).await, times);
    for (index, time) in times.iter().enumerate() {
        assert_eq!(found(Some(*time), times[3]).await, times[index + 1..], "after {time}");
        assert_eq!(found(None, *time).await, times[..=index], "until {time}");
    }
}

/// RD11: a resource's documents go bit by bit, whatever their state, until none is left.
pub async fn rd11_removes_documents_bit_by_bit(repo: Repo) {
    let make = Make::new("rd11");
    let keys = make.documents(8);
    let stays = make.lone_document();
    for key in keys.iter().chain([&stays]) {
        write(&repo, put(key, 1)).await;
    }
    mark(&repo, &keys[0], live(1)).await;
    open(&repo, &keys[1], live(1), &[1]).await;
    write(&repo, delete(&keys[2], None)).await;
    let mut removed = 0;
    loop {
        let count = repo.remove_documents(keys[0].resource, 3).await.unwrap();
        assert!(count <= 3, "{count} are more than asked for");
        removed += count;
        let mut left = 0;
        for key in &keys {
            left += u64::from(document(&repo, key).await.is_some());
        }
        assert_eq!(removed + left, 8);
        if count == 0 {
            assert_eq!(left, 0, "zero means that none is left");
            break;
        }
    }
    assert_eq!(stored_version(&repo, &stays).await, Some(live(1)));
}

/// RD16: live documents are counted, of one resource, dispatched or not.
pub async fn rd16_counts_what_is_live(repo: Repo) {
    let make = Make::new("rd16");
    let keys = make.documents(6);
    let count = async || repo.count_documents(keys[0].resource).await.unwrap();
    assert_eq!(count().await, 0);
    for key in keys.iter().chain([&make.lone_document()]) {
        write(&repo, put(key, 1)).await;
    }
    assert_eq!(count().await, 6);
    write(&repo, delete(&keys[0], None)).await;
    write(&repo, delete(&keys[1], None)).await;
    mark(&repo, &keys[0], gone(1)).await;
    assert_eq!(count().await, 4, "dispatched or not");
    write(&repo, put(&keys[0], 2)).await;
    assert_eq!(count().await, 5);
    repo.remove_documents(keys[0].resource, 100).await.unwrap();
    assert_eq!(count().await, 0);
}

/// RD17: of that what a port can show. How documents are put beside Flare is the backend's own.
pub async fn rd17_what_is_announced_was_not_put_beside(repo: Repo) {
    let make = Make::new("rd17");
    let keys = make.documents(4);
    for key in &keys {
        write(&repo, put(key, 1)).await;
    }
    write(&repo, put(&keys[0], 2)).await;
    write(&repo, delete(&keys[1], None)).await;
    mark(&repo, &keys[2], live(1)).await;
    open(&repo, &keys[3], live(1), &[4, 2]).await;
    for limit in [1, 100] {
        let taken = repo.take_puts_beside(limit, Duration::ZERO).await.unwrap();
        assert_eq!(taken, []);
    }
}

async fn close(repo: &Repo, key: &DocumentKey, version: Version, partition: u32) -> Closed {
    let partition = PartitionId::new(partition);
    let close = ClosePartition { key: key.clone(), version, partition };
    only(repo.close_partitions(vec![close]).await).unwrap()
}

async fn open_set(repo: &Repo, key: &DocumentKey) -> Option<BTreeSet<u32>> {
    document(repo, key).await.unwrap().open.map(|open| set_of(&open))
}

fn assert_open(answer: Opened, partitions: &[u32]) {
    match answer {
        Opened::Open(open) => assert_eq!(set_of(&open), set(partitions)),
        other => panic!("{other:?} instead of {partitions:?}"),
    }
}

fn set(partitions: &[u32]) -> BTreeSet<u32> {
    partitions.iter().copied().collect()
}

fn set_of(partitions: &[PartitionId]) -> BTreeSet<u32> {
    partitions.iter().map(|partition| partition.get()).collect()
}
