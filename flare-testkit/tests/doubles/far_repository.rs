//! A far repository counts the documents that were read for as long as they are held, and is
//! otherwise the one behind it.

use std::sync::Arc;

use crate::memory_repository::InMemory;
use flare_core::model::{
    ChangeRule, Content, DocumentKey, DocumentUrl, NewResource, Resource, ResourceId, Timestamp,
};
use flare_core::port::{DocumentStore, DocumentWrite, ResourceStore};
use flare_testkit::{FarRepository, Subject};

// It keeps every clause: each call goes where it should.
flare_testkit::repository_suite!(InMemory::behind(|inner| { Arc::new(FarRepository::new(inner)) }));

#[tokio::test]
async fn what_was_read_counts_until_the_last_of_it_is_dropped() {
    let (subject, ()) = Subject::open(InMemory::behind(|inner| inner)).await;
    let far = FarRepository::new(subject.port());
    let new = NewResource::new("http://far.example/{id}").change_field("rev");
    let (endpoint, change) = new.check().unwrap();
    let id = ResourceId::from_bytes([1; 16]);
    far.insert_resource(Resource::new(id, endpoint, change, Timestamp::EPOCH)).await.unwrap();
    let rule = ChangeRule::new("rev", None).unwrap();
    let (revision, content) = Content::parse(&rule, r#"{"rev":1}"#.into()).unwrap();
    let key = DocumentKey::new(id, DocumentUrl::parse("http://far.example/1").unwrap());
    let write = DocumentWrite::put(key.clone(), revision, content);
    far.write_documents(vec![write]).await.pop().unwrap().unwrap();
    assert_eq!(far.held(), 0, "nothing was read");
    let read = far.documents(vec![key.clone(), key.clone()]).await.unwrap();
    assert_eq!((far.held(), far.most_held()), (18, 18));
    let kept = read[0].as_ref().unwrap().content.as_ref().unwrap().bytes().clone();
    drop(read);
    assert_eq!((far.held(), far.most_held(), far.most_held()), (9, 18, 9));
    drop(kept);
    assert_eq!(far.held(), 0);
}
