//! A faulty repository fails when its plan says so, and is otherwise the one behind it.

use std::sync::Arc;

use crate::memory_repository::InMemory;
use flare_core::ErrorKind;
use flare_core::model::{Content, DocumentKey, DocumentUrl, ResourceId, Revision, Timestamp};
use flare_core::port::{DocumentStore, DocumentWrite, Repository};
use flare_testkit::{FaultPlan, FaultyRepository, Subject};
use futures::TryStreamExt;

// Without faults it keeps every clause: each call goes where it should.
flare_testkit::repository_suite!(InMemory::behind(|inner| {
    Arc::new(FaultyRepository::new(inner, FaultPlan::seeded(1)))
}));

/// A repository, and the same behind a plan.
async fn pair(plan: FaultPlan) -> (Subject<dyn Repository>, FaultyRepository) {
    let (subject, ()) = Subject::open(InMemory::behind(|inner| inner)).await;
    let faulty = FaultyRepository::new(subject.port(), plan);
    (subject, faulty)
}

fn puts(count: usize) -> Vec<DocumentWrite> {
    let put = |index| {
        let url = DocumentUrl::parse(&format!("http://faulty.example/{index}")).unwrap();
        let key = DocumentKey::new(ResourceId::from_bytes([1; 16]), url);
        DocumentWrite::put(key, Revision::new(1), Content::from_stored("{}".into()))
    };
    (0..count).map(put).collect()
}

#[tokio::test]
async fn before_has_no_effect_and_after_has() {
    let (real, faulty) = pair(FaultPlan::seeded(1).with_before(1.0)).await;
    let error = faulty.write_documents(puts(1)).await.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(real.count_undispatched(None).await.unwrap(), 0);

    let (real, faulty) = pair(FaultPlan::seeded(1).with_after(1.0)).await;
    let error = faulty.write_documents(puts(1)).await.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(real.count_undispatched(None).await.unwrap(), 1);
}

#[tokio::test]
async fn batches_fail_item_by_item_too() {
    let (real, faulty) = pair(FaultPlan::seeded(3).with_before(0.3).with_after(0.3)).await;
    let mut partly = 0;
    for round in 0..40 {
        let writes: Vec<_> = puts(10 * (round + 1)).split_off(10 * round);
        let keys: Vec<_> = writes.iter().map(|write| write.key.clone()).collect();
        let answers = faulty.write_documents(writes).await;
        assert_eq!(answers.len(), 10);
        partly +=
            u32::from(answers.iter().any(Result::is_ok) && answers.iter().any(Result::is_err));
        let stored = real.documents(keys).await.unwrap();
        for (answer, stored) in answers.iter().zip(stored) {
            match answer {
                Ok(_) => assert!(stored.is_some()),
                Err(error) if error.kind() == ErrorKind::Unavailable => assert!(stored.is_none()),
                // Whether it is stored is just what nobody can know.
                Err(error) => assert_eq!(error.kind(), ErrorKind::Timeout),
            }
        }
    }
    assert!(partly > 0, "some batches fail in part");
}

#[tokio::test]
async fn scans_break_on_their_way() {
    let (real, faulty) = pair(FaultPlan::seeded(5).with_before(1.0)).await;
    real.write_documents(puts(20)).await;
    let mut lengths = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let mut scan = faulty.undispatched(Timestamp::MAX);
        let mut length = 0;
        let error = loop {
            match scan.try_next().await {
                Ok(found) => length += usize::from(found.is_some()),
                Err(error) => break error,
            }
            assert!(length < 20, "it never ends well");
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        lengths.insert(length);
    }
    assert!(lengths.len() > 2, "at different places: {lengths:?}");
}
