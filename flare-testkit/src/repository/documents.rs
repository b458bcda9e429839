//! Clauses RD1 to RD4, RD12 and RD13: what a put, delete or leave does to a document.

use bytes::Bytes;
use flare_core::ErrorKind;
use flare_core::model::{Content, DocumentChange, DocumentKey, Revision, TraceContext, Version};
use flare_core::port::{DocumentWrite, WriteOutcome};

use DocumentChange::{Created, Deleted, Stale, Unchanged, Updated};

use super::make::{
    Make, Repo, content, delete, document, gone, live, mark, open, put, race, stored_version,
    undispatched, write,
};

/// RD1: of any number of concurrent writes of one revision exactly one is a change.
pub async fn rd1_one_revision_changes_once(repo: Repo) {
    let make = Make::new("rd1_race");
    for _ in 0..8 {
        let key = make.lone_document();
        let writes: [(DocumentWrite, DocumentChange, Version); 4] = [
            (put(&key, 1), Created, live(1)),
            (put(&key, 2), Updated, live(2)),
            (delete(&key, Some(2)), Deleted, gone(2)),
            (put(&key, 3), Created, live(3)),
        ];
        for (write, change, version) in writes {
            let outcomes = race(|_| {
                let (port, write) = (repo.port(), write.clone());
                async move { port.write_documents(vec![write]).await.pop().unwrap().unwrap() }
            })
            .await;
            let changes = outcomes.iter().filter(|outcome| outcome.change == change).count();
            assert_eq!(changes, 1, "{write:?}: {outcomes:?}");
            let others = outcomes.iter().filter(|outcome| outcome.change == Unchanged).count();
            assert_eq!(others, outcomes.len() - 1, "{write:?}: {outcomes:?}");
            assert!(outcomes.iter().all(|outcome| outcome.version == Some(version)));
        }
    }
}

/// RD1: puts, by every kind of thing that may be stored.
pub async fn rd1_puts_follow_the_table(repo: Repo) {
    let make = Make::new("rd1_puts");
    let cases = [
        (None, 5, Created, live(5)),
        (Some(live(5)), 6, Updated, live(6)),
        (Some(live(5)), 5, Unchanged, live(5)),
        (Some(live(5)), 4, Stale, live(5)),
        (Some(gone(5)), 4, Stale, gone(5)),
        (Some(gone(5)), 5, Stale, gone(5)),
        (Some(gone(5)), 6, Created, live(6)),
        (Some(live(i64::MIN)), i64::MAX, Updated, live(i64::MAX)),
        (Some(live(i64::MAX)), i64::MIN, Stale, live(i64::MAX)),
        (Some(live(9_007_199_254_740_992)), 9_007_199_254_740_993, Updated, live((1 << 53) + 1)),
    ];
    for (stored, revision, change, then) in cases {
        for tombstone_alone in [false, true] {
            let key = make.lone_document();
            prepare(&repo, &key, stored, tombstone_alone).await;
            let outcome = write(&repo, put(&key, revision)).await;
            let case = format!("put {revision} over {stored:?}, alone: {tombstone_alone}");
            expect(&repo, &key, outcome, change, Some(then), &case).await;
        }
    }
}

/// RD1: deletes, by every kind of thing that may be stored.
pub async fn rd1_deletes_follow_the_table(repo: Repo) {
    let make = Make::new("rd1_deletes");
    let cases = [
        (None, None, Unchanged, None),
        (None, Some(5), Unchanged, Some(gone(5))),
        (Some(live(5)), None, Deleted, Some(gone(5))),
        (Some(live(5)), Some(5), Deleted, Some(gone(5))),
        (Some(live(5)), Some(7), Deleted, Some(gone(7))),
        (Some(live(5)), Some(4), Stale, Some(live(5))),
        (Some(gone(5)), None, Unchanged, Some(gone(5))),
        (Some(gone(5)), Some(5), Unchanged, Some(gone(5))),
        (Some(gone(5)), Some(7), Unchanged, Some(gone(7))),
        (Some(gone(5)), Some(4), Stale, Some(gone(5))),
        (Some(live(i64::MIN)), None, Deleted, Some(gone(i64::MIN))),
    ];
    for (stored, named, change, then) in cases {
        for tombstone_alone in [false, true] {
            let key = make.lone_document();
            prepare(&repo, &key, stored, tombstone_alone).await;
            let outcome = write(&repo, delete(&key, named)).await;
            let case = format!("delete {named:?} over {stored:?}, alone: {tombstone_alone}");
            expect(&repo, &key, outcome, change, then, &case).await;
        }
    }
}

/// RD1: leaves, by every kind of thing that may be stored.
pub async fn rd1_leaves_follow_the_table(repo: Repo) {
    let make = Make::new("rd1_leaves");
    let cases = [
        (None, live(5), Unchanged, None),
        (Some(live(5)), live(5), Deleted, Some(gone(5))),
        (Some(live(5)), live(4), Unchanged, Some(live(5))),
        (Some(live(5)), live(6), Unchanged, Some(live(5))),
        (Some(live(5)), gone(5), Unchanged, Some(live(5))),
        (Some(gone(5)), live(5), Unchanged, Some(gone(5))),
        (Some(gone(5)), live(6), Unchanged, Some(gone(5))),
        (Some(live(i64::MIN)), live(i64::MIN), Deleted, Some(gone(i64::MIN))),
    ];
    for (stored, at, change, then) in cases {
        let key = make.lone_document();
        prepare(&repo, &key, stored, false).await;
        if let Some(stored) = stored {
            mark(&repo, &key, stored).await;
        }
        let outcome = write(&repo, DocumentWrite::leave(key.clone(), at)).await;
        assert_eq!(outcome.undispatched, change == Deleted, "leave {at} over {stored:?}");
        let case = format!("leave {at} over {stored:?}");
        expect(&repo, &key, outcome, change, then, &case).await;
    }
}

/// RD1: whatever order writes come in, the stored version only rises, up to the greatest.
pub async fn rd1_the_version_never_goes_down(repo: Repo) {
    let make = Make::new("rd1_rises");
    for round in 0..4_u64 {
        let key = make.lone_document();
        let seen = race(|racer| {
            let (port, key) = (repo.port(), key.clone());
            async move {
                let mut random = fastrand::Rng::with_seed(round * 100 + racer as u64);
                let mut seen = Vec::new();
                for _ in 0..12 {
                    let revision = random.i64(1..40);
                    let write = match random.bool() {
                        true => put(&key, revision),
                        false => delete(&key, Some(revision)),
                    };
                    let wanted = match &write.operation {
                        flare_core::port::Operation::Put { .. } => live(revision),
                        _ => gone(revision),
                    };
                    let outcome = port.write_documents(vec![write]).await.pop().unwrap().unwrap();
                    seen.push((wanted, outcome.version.unwrap()));
                }
                seen
            }
        })
        .await;
        for own in &seen {
            let versions: Vec<_> = own.iter().map(|(_, version)| *version).collect();
            assert!(versions.is_sorted(), "round {round}: {versions:?}");
        }
        let greatest = seen.iter().flatten().map(|(wanted, _)| *wanted).max();
        assert_eq!(stored_version(&repo, &key).await, greatest, "round {round}");
    }
}

/// RD2: content is stored byte for byte.
pub async fn rd2_content_is_kept_byte_for_byte(repo: Repo) {
    let make = Make::new("rd2_bytes");
    let megabyte = format!(r#"{{"rev":1,"x":"{}"}}"#, "é".repeat(1 << 19));
    let texts = [
        r#"{"rev":9007199254740993,"big":123456789012345678901234567890,"x":1.10,"y":1e400}"#,
        "{\"z\":1,\"a\":2,\t\"rev\" : 3 , \r\n \"m\":{\"b\":[ ],\"a\":{ }}}",
        r#"{"a.b":1,"$set":{"$x.y":null},"":0,"_id":"x","rev":1,"__proto__":[]}"#,
        r#"{"rev":1,"emoji":"😀 \ud83d\ude00 \u0000 \/","dup":1,"dup":2}"#,
        "{}",
        &megabyte,
    ];
    for text in texts.iter().filter(|text| text.len() <= repo.facts().max_content) {
        let key = make.lone_document();
        write(&repo, DocumentWrite::put(key.clone(), Revision::new(1), content(text))).await;
        let stored = document(&repo, &key).await.unwrap().content.unwrap();
        assert!(stored.as_bytes() == text.as_bytes(), "{}", &text[..text.len().min(80)]);
    }
}

/// RD2: an equal or older revision never replaces content; a delete keeps the last known one.
pub async fn rd2_only_newer_content_replaces(repo: Repo) {
    let make = Make::new("rd2_newer");
    let key = make.lone_document();
    let put_text = |revision, text: &str| {
        DocumentWrite::put(key.clone(), Revision::new(revision), content(text))
    };
    let steps = [
        (put_text(5, r#"{"a":5}"#), r#"{"a":5}"#),
        (put_text(5, r#"{"b":5}"#), r#"{"a":5}"#),
        (put_text(4, r#"{"c":4}"#), r#"{"a":5}"#),
        (put_text(6, r#"{"d":6}"#), r#"{"d":6}"#),
        (delete(&key, None), r#"{"d":6}"#),
        (delete(&key, Some(9)), r#"{"d":6}"#),
        (put_text(9, r#"{"e":9}"#), r#"{"d":6}"#),
        (put_text(10, r#"{"f":1}"#), r#"{"f":1}"#),
        (DocumentWrite::leave(key.clone(), live(10)), r#"{"f":1}"#),
    ];
    for (step, text) in steps {
        write(&repo, step.clone()).await;
        let stored = document(&repo, &key).await.unwrap().content;
        assert_eq!(stored, Some(content(text)), "after {step:?}");
    }
    let unseen = make.lone_document();
    write(&repo, delete(&unseen, Some(3))).await;
    write(&repo, put(&unseen, 3)).await;
    assert_eq!(document(&repo, &unseen).await.unwrap().content, None);
}

/// RD3: a change that notifies leaves `dispatched` as it was, so the document is undispatched.
pub async fn rd3_changes_leave_the_document_undispatched(repo: Repo) {
    let make = Make::new("rd3_changes");
    let key = make.lone_document();
    let steps = [
        (put(&key, 1), live(1)),
        (put(&key, 2), live(2)),
        (delete(&key, None), gone(2)),
        (put(&key, 3), live(3)),
        (delete(&key, Some(7)), gone(7)),
    ];
    let mut dispatched = None;
    for (step, version) in steps {
        assert!(write(&repo, step.clone()).await.undispatched, "{step:?}");
        assert_eq!(document(&repo, &key).await.unwrap().dispatched, dispatched, "{step:?}");
        assert!(write(&repo, step.clone()).await.undispatched, "repeated, {step:?}");
        mark(&repo, &key, version).await;
        dispatched = Some(version);
        assert!(!write(&repo, step.clone()).await.undispatched, "dispatched, {step:?}");
        assert_eq!(document(&repo, &key).await.unwrap().dispatched, dispatched, "{step:?}");
    }
}

/// RD3: a tombstone nobody is told of keeps a dispatched document dispatched, and only that.
pub async fn rd3_silent_tombstones_keep_it_as_it_was(repo: Repo) {
    let make = Make::new("rd3_silent");
    let unseen = make.lone_document();
    assert!(!write(&repo, delete(&unseen, Some(5))).await.undispatched);
    assert!(!undispatched(&repo, &unseen).await, "never seen");
    assert!(!write(&repo, delete(&unseen, Some(6))).await.undispatched);
    assert!(!undispatched(&repo, &unseen).await, "raised");

    let told = make.lone_document();
    write(&repo, put(&told, 1)).await;
    write(&repo, delete(&told, None)).await;
    assert!(write(&repo, delete(&told, Some(4))).await.undispatched);
    assert!(undispatched(&repo, &told).await, "raised while undispatched");
    mark(&repo, &told, gone(4)).await;
    assert!(!write(&repo, delete(&told, Some(5))).await.undispatched);
    assert!(!undispatched(&repo, &told).await, "raised once dispatched");
    assert!(write(&repo, put(&told, 6)).await.undispatched, "and then put again");
}

/// RD3: any stored change forgets the open set; what stores nothing does not.
pub async fn rd3_changes_forget_the_open_set(repo: Repo) {
    let make = Make::new("rd3_open");
    let key = make.lone_document();
    let steps = [
        (put(&key, 1), true, live(1)),
        (put(&key, 1), false, live(1)),
        (put(&key, 0), false, live(1)),
        (put(&key, 2), true, live(2)),
        (delete(&key, Some(1)), false, live(2)),
        (delete(&key, Some(2)), true, gone(2)),
        (delete(&key, None), false, gone(2)),
        (delete(&key, Some(5)), true, gone(5)),
        (put(&key, 6), true, live(6)),
    ];
    for (step, forgets, version) in steps {
        write(&repo, step.clone()).await;
        let open_set = document(&repo, &key).await.unwrap().open;
        assert_eq!(open_set.is_none(), forgets, "after {step:?}: {open_set:?}");
        open(&repo, &key, version, &[1, 2]).await;
    }
}

/// RD4: writes of one key in one batch take effect in their order.
pub async fn rd4_a_batch_keeps_its_order(repo: Repo) {
    let make = Make::new("rd4");
    let (one, other) = (make.lone_document(), make.lone_document());
    let batch = vec![
        (put(&one, 1), Created, Some(live(1))),
        (put(&other, 9), Created, Some(live(9))),
        (put(&one, 2), Updated, Some(live(2))),
        (delete(&one, None), Deleted, Some(gone(2))),
        (put(&one, 3), Created, Some(live(3))),
        (delete(&other, None), Deleted, Some(gone(9))),
    ];
    assert!(batch.len() <= repo.facts().max_batch, "a batch may well be that long");
    let outcomes =
        repo.write_documents(batch.iter().map(|(write, ..)| write.clone()).collect()).await;
    assert_eq!(outcomes.len(), batch.len());
    for ((write, change, version), outcome) in batch.into_iter().zip(outcomes) {
        let outcome = outcome.unwrap();
        assert_eq!((outcome.change, outcome.version), (change, version), "{write:?}");
    }
    let stored = document(&repo, &one).await.unwrap();
    assert_eq!((stored.version, stored.content), (live(3), Some(content(r#"{"rev":3}"#))));
}

/// RD12: a document the store can never hold is refused as such, alone, and nothing of it stored.
pub async fn rd12_too_large_is_refused(repo: Repo) {
    let make = Make::new("rd12");
    let limit = repo.facts().max_content;
    if limit > 64 << 20 {
        return; // Nobody has that much to spare for a test.
    }
    let sized = |key: &DocumentKey, size: usize| {
        let content = Content::from_stored(Bytes::from(vec![b' '; size]));
        DocumentWrite::put(key.clone(), Revision::new(1), content)
    };
    let [over, at, small] = [make.lone_document(), make.lone_document(), make.lone_document()];
    let batch = vec![sized(&over, limit + 1), put(&small, 1)];
    let outcomes = repo.write_documents(batch).await;
    let error = outcomes[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(outcomes[1].is_ok(), "the other item of the batch is stored");
    assert!(document(&repo, &over).await.is_none());
    write(&repo, sized(&at, limit)).await;
    assert_eq!(stored_version(&repo, &at).await, Some(live(1)));
}

/// RD13: the trace a version came with is kept with that version.
pub async fn rd13_a_version_keeps_its_trace(repo: Repo) {
    let make = Make::new("rd13");
    let trace = |number: u8| -> TraceContext {
        format!("00-{number:032x}-00f067aa0ba902b7-01").parse().unwrap()
    };
    let (key, unseen) = (make.lone_document(), make.lone_document());
    let steps = [
        (&key, put(&key, 1).trace(Some(trace(1))), Some(trace(1))),
        (&key, put(&key, 1).trace(Some(trace(2))), Some(trace(1))),
        (&key, put(&key, 0).trace(None), Some(trace(1))),
        (&key, put(&key, 2).trace(None), None),
        (&key, put(&key, 3).trace(Some(trace(3))), Some(trace(3))),
        (&key, delete(&key, None).trace(Some(trace(4))), Some(trace(4))),
        (&key, delete(&key, None).trace(Some(trace(5))), Some(trace(4))),
        (&key, delete(&key, Some(8)).trace(Some(trace(6))), Some(trace(6))),
        (&unseen, delete(&unseen, Some(1)).trace(Some(trace(7))), Some(trace(7))),
    ];
    for (key, step, expected) in steps {
        write(&repo, step.clone()).await;
        assert_eq!(document(&repo, key).await.unwrap().trace, expected, "after {step:?}");
    }
}

/// Brings a document to `version`; a tombstone either after a put or alone.
async fn prepare(repo: &Repo, key: &DocumentKey, version: Option<Version>, tombstone_alone: bool) {
    let Some(version) = version else { return };
    let revision = version.revision().get();
    if !(version.is_gone() && tombstone_alone) {
        write(repo, put(key, revision)).await;
    }
    if version.is_gone() {
        write(repo, delete(key, Some(revision))).await;
    }
}

async fn expect(
    repo: &Repo,
    key: &DocumentKey,
    outcome: WriteOutcome,
    change: DocumentChange,
    then: Option<Version>,
    case: &str,
) {
    assert_eq!((outcome.change, outcome.version), (change, then), "{case}");
    assert_eq!(stored_version(repo, key).await, then, "{case}");
}
