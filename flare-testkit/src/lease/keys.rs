//! L9 and L10: whom a key belongs to, and that deleting nothing is nothing.

use flare_core::port::{Expect, Lease, Written};

use crate::Subject;

/// A key belongs to the lease it was last written with: it outlives the others, and ends with it.
pub async fn l9_a_write_binds_to_its_lease_alone(subject: Subject<dyn Lease>) {
    let (first, second) = (subject.long_lease().await, subject.long_lease().await);
    subject.bind("l9/key", "first", first).await;
    subject.bind("l9/key", "second", second).await;
    let entry = subject.read("l9/key").await.expect("it was written");
    assert_eq!(entry.lease, Some(second));
    subject.end(first).await;
    assert_eq!(subject.read("l9/key").await, Some(entry), "it is not the first lease's any more");
    subject.end(second).await;
    assert_eq!(subject.read("l9/key").await, None, "it is the second lease's");
}

/// A key written without a lease stays, whatever it was bound to before.
pub async fn l9_a_write_without_lease_sets_free(subject: Subject<dyn Lease>) {
    let lease = subject.long_lease().await;
    subject.bind("l9/key", "bound", lease).await;
    subject.put("l9/key", "free").await;
    let entry = subject.read("l9/key").await.expect("it was written");
    assert_eq!(entry.lease, None);
    subject.end(lease).await;
    assert_eq!(subject.read("l9/key").await, Some(entry));
}

/// Deleting what is not there is no error, the second time as little as the first.
pub async fn l10_deleting_nothing_is_no_error(subject: Subject<dyn Lease>) {
    subject.put("l10/key", "here").await;
    for key in ["l10/key", "l10/key", "l10/never"] {
        let result = subject.delete(key, Expect::Anything).await;
        assert!(matches!(result, Ok(Written::At(_))), "{result:?}");
    }
}

/// Deleting what is not there makes no revision.
pub async fn l10_deleting_nothing_makes_no_revision(subject: Subject<dyn Lease>) {
    // Others may use the same store, and make revisions of their own: not every time, though.
    for _ in 0..50 {
        let before = subject.revision().await;
        let told = subject.remove("l10/never").await;
        if subject.revision().await == before {
            assert_eq!(told, before, "the store's revision as it was");
            return;
        }
    }
    panic!("deleting what is not there made a revision every time");
}
