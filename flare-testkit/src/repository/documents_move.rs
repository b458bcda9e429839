//! Clauses RD14 and RD15: documents without their content, and where one moved from.

use flare_core::model::{DocumentKey, MovedFrom, PartitionId};
use flare_core::port::{ClosePartition, DocumentWrite};

use super::make::{
    Make, Repo, all, delete, document, gone, live, mark, now, only, open, put, write,
};

/// RD14: a head is the document without its content; one answer per key, in their order.
pub async fn rd14_heads_are_documents_without_content(repo: Repo) {
    let make = Make::new("rd14");
    let [alive, deleted, spreading, unseen] = [(); 4].map(|()| make.lone_document());
    let from = MovedFrom::new(make.id(), live(7));
    write(&repo, put(&alive, 1).moved_from(Some(from))).await;
    write(&repo, put(&deleted, 1)).await;
    write(&repo, delete(&deleted, Some(4))).await;
    mark(&repo, &deleted, gone(4)).await;
    write(&repo, put(&spreading, 1)).await;
    mark(&repo, &spreading, live(1)).await;
    write(&repo, put(&spreading, 2)).await;
    open(&repo, &spreading, live(2), &[3, 4]).await;
    let asked = [&spreading, &unseen, &alive, &deleted, &alive];
    let keys = || asked.iter().map(|key| (*key).clone()).collect::<Vec<_>>();
    let mut expected = repo.documents(keys()).await.unwrap();
    for document in expected.iter_mut().flatten() {
        document.content = None;
    }
    assert_eq!(repo.document_heads(keys()).await.unwrap(), expected);
    assert_eq!(repo.document_heads(Vec::new()).await.unwrap(), []);
}

/// RD15: the note is stored with the change, newest first, and forgotten with its dispatch.
pub async fn rd15_a_move_is_noted_until_it_is_dispatched(repo: Repo) {
    let make = Make::new("rd15_noted");
    let (one, other) = (MovedFrom::new(make.id(), live(7)), MovedFrom::new(make.id(), live(-9)));
    let key = make.lone_document();
    write(&repo, put(&key, 1).moved_from(Some(one))).await;
    assert_eq!(note(&repo, &key).await, Some(one));
    let found = all(repo.undispatched(now(&repo).await)).await;
    let found = found.into_iter().find(|found| found.key == key).unwrap();
    assert_eq!(found.moved_from, Some(one), "whoever finds it undispatched has to know");
    write(&repo, put(&key, 2).moved_from(Some(other))).await;
    assert_eq!(note(&repo, &key).await, Some(other), "the newest note counts");
    mark(&repo, &key, live(2)).await;
    assert_eq!(note(&repo, &key).await, None, "it was dispatched");
    write(&repo, put(&key, 3)).await;
    assert_eq!(note(&repo, &key).await, None, "nothing comes back");

    // The last partition dispatches it too. In one batch, as puts mostly come.
    let keys = make.documents(3);
    let puts = keys.iter().map(|key| put(key, 1).moved_from(Some(one))).collect();
    repo.write_documents(puts).await.into_iter().for_each(|outcome| {
        outcome.unwrap();
    });
    for key in &keys {
        open(&repo, key, live(1), &[1, 2]).await;
        for partition in [1, 2] {
            let close = ClosePartition {
                key: key.clone(),
                version: live(1),
                partition: PartitionId::new(partition),
            };
            only(repo.close_partitions(vec![close]).await).unwrap();
        }
        assert_eq!(note(&repo, key).await, None, "all partitions have spread it");
    }
}

/// RD15: what notes nothing keeps the note, whether or not it stores anything.
pub async fn rd15_what_notes_nothing_keeps_the_note(repo: Repo) {
    let make = Make::new("rd15_kept");
    let from = Some(MovedFrom::new(make.id(), live(7)));
    let key = make.lone_document();
    let steps = [
        (put(&key, 5).moved_from(from), live(5)),
        (put(&key, 5), live(5)),
        (put(&key, 4), live(5)),
        (put(&key, 6), live(6)),
        (delete(&key, Some(3)), live(6)),
        (delete(&key, None), gone(6)),
        (put(&key, 9), live(9)),
        (DocumentWrite::leave(key.clone(), live(9)), gone(9)),
    ];
    for (step, version) in steps {
        write(&repo, step.clone()).await;
        let stored = document(&repo, &key).await.unwrap();
        assert_eq!((stored.version, stored.moved_from), (version, from), "after {step:?}");
    }
    let other = Some(MovedFrom::new(make.id(), live(1)));
    write(&repo, put(&key, 9).moved_from(other)).await;
    assert_eq!(note(&repo, &key).await, from, "what stores nothing notes nothing");
    // Puts of a batch, of which this one replaces what is there.
    let second = make.lone_document();
    write(&repo, put(&second, 1).moved_from(from)).await;
    repo.write_documents(vec![put(&second, 2), put(&make.lone_document(), 1)]).await;
    assert_eq!(note(&repo, &second).await, from, "after a batch");
}

async fn note(repo: &Repo, key: &DocumentKey) -> Option<MovedFrom> {
    document(repo, key).await.unwrap().moved_from
}
