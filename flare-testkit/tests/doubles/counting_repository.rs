//! A counting repository counts each call once, whatever it is about, and is otherwise the one
//! behind it.

use std::sync::Arc;
use std::time::Duration;

use crate::memory_repository::InMemory;
use flare_core::model::{DocumentKey, DocumentUrl, ResourceId, Timestamp};
use flare_core::port::{Clock, DocumentStore, RowStore, SubscriptionStore};
use flare_testkit::{CountingRepository, ManualClock, Subject};
use futures::StreamExt;

// It keeps every clause: each call goes where it should.
flare_testkit::repository_suite!(InMemory::behind(|inner| {
    Arc::new(CountingRepository::new(inner))
}));

async fn counting() -> CountingRepository {
    let (subject, ()) = Subject::open(InMemory::behind(|inner| inner)).await;
    CountingRepository::new(subject.port())
}

fn keys(count: usize) -> Vec<DocumentKey> {
    let url = |index| DocumentUrl::parse(&format!("http://counted.example/{index}")).unwrap();
    (0..count).map(|index| DocumentKey::new(ResourceId::from_bytes([1; 16]), url(index))).collect()
}

#[tokio::test]
async fn batches_and_scans_count_once() {
    let repository = counting().await;
    repository.next_epoch().await.unwrap();
    for count in [3, 5, 1] {
        repository.documents(keys(count)).await.unwrap();
    }
    assert_eq!(repository.scan_subscriptions(None).count().await, 0);
    let tally = repository.take();
    let documents = tally.of("documents");
    assert_eq!((documents.calls, documents.items, documents.most), (3, 9, 5));
    assert_eq!(tally.of("scan_subscriptions").calls, 1);
    assert_eq!(tally.total(), 5, "{tally}");
    assert_eq!(repository.tally().total(), 0);
}

#[tokio::test]
async fn a_slow_one_takes_its_time_for_every_call() {
    let clock = ManualClock::new(Timestamp::EPOCH);
    let slow = counting().await.slowed(Duration::from_millis(5), Arc::new(clock.clone()));
    let calls = async {
        slow.documents(keys(100)).await.unwrap();
        assert_eq!(slow.scan_subscriptions(None).count().await, 0);
        clock.now()
    };
    let (done, ()) = tokio::join!(calls, clock.advance(Duration::from_secs(1)));
    assert_eq!(done, Timestamp::EPOCH + Duration::from_millis(10));
}
