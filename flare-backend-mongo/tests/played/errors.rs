//! What the port says when the server, or the way to it, fails: against a server that does so
//! when told to.

use std::sync::Arc;
use std::time::Duration;

use crate::wire_stub::{Gate, Reply, WireStub};
use flare_backend_mongo::{MongoConfig, MongoLease, MongoRepository};
use flare_core::model::{
    Applied, Content, DocumentChange, DocumentKey, DocumentUrl, Epoch, Present, ResourceId,
    Revision, Round, RowEffect, RowKey, SubscriptionId, Timestamp, Version,
};
use flare_core::port::{
    Clock, DocumentStore, DocumentWrite, Lease, RowStore, RowUpdate, StoreRevision, SystemClock,
    Write, Written,
};
use flare_core::{Error, ErrorKind};
use mongodb::bson::{Document, doc};

/// The command of every write.
const WRITE: &str = "findAndModify";

async fn connect(stub: &WireStub) -> MongoLease {
    let config = MongoConfig::new(stub.uri()).timeout(Duration::from_secs(5));
    MongoLease::connect(config).await.expect("the stub is set up")
}

async fn write(lease: &MongoLease) -> Result<Written, Error> {
    lease.write(Write::new("key", "value")).await
}

/// What a write becomes when the server does this.
async fn write_meets(reply: Reply) -> Error {
    let stub = WireStub::start();
    let lease = connect(&stub).await;
    stub.next(WRITE, reply);
    let error = write(&lease).await.expect_err("the stub made it fail");
    assert_eq!(error.operation(), "write");
    assert_eq!(error.backend(), Some("mongodb"));
    assert_eq!(stub.heard(WRITE), 1, "a write is sent once");
    works_again(&lease).await;
    error
}

/// Nothing has to be started anew.
async fn works_again(lease: &MongoLease) {
    let written = write(lease).await.expect("the stub does its work again");
    assert_eq!(written, Written::At(StoreRevision::new(7)));
}

async fn refused_with(code: i32) -> Error {
    let error = write_meets(Reply::refusal(code, "said the server")).await;
    assert!(error.detail().contains("said the server"), "{error}");
    error
}

#[tokio::test]
async fn missing_rights_are_denied() {
    let error = refused_with(13).await;
    assert_eq!(error.to_string(), "write (mongodb): denied: said the server (code 13)");
    assert!(!error.is_temporary());
    assert_eq!(refused_with(18).await.kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn a_refused_sign_in_is_denied() {
    let stub = WireStub::start();
    for _ in 0..3 {
        stub.next("saslStart", Reply::refusal(18, "Authentication failed."));
    }
    let uri = format!("mongodb://{}/?directConnection=true", stub.address());
    let config = MongoConfig::new(uri).credentials("me", "s3cret").timeout(Duration::from_secs(5));
    let error = MongoLease::connect(config).await.expect_err("the stub refuses");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
}

#[tokio::test]
async fn a_full_disk_is_busy() {
    let error = refused_with(14031).await;
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.is_temporary());
}

#[tokio::test]
async fn what_does_not_fit_is_too_large() {
    let error = refused_with(10334).await;
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(!error.is_temporary());
}

#[tokio::test]
async fn a_server_that_gives_up_has_timed_out() {
    assert_eq!(refused_with(50).await.kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn a_fail_over_passes() {
    let error = refused_with(10107).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.is_temporary());
}

#[tokio::test]
async fn codes_nobody_knows_are_faults_unless_the_server_says_they_pass() {
    let error = refused_with(424_242).await;
    assert_eq!(error.kind(), ErrorKind::Internal);
    let passing = doc! {
        "ok": 0, "code": 424_242, "errmsg": "later",
        "errorLabels": ["SystemOverloadedError", "RetryableError"],
    };
    let stub = WireStub::start();
    let lease = connect(&stub).await;
    for _ in 0..10 {
        stub.next(WRITE, Reply::With(passing.clone()));
    }
    let error = write(&lease).await.expect_err("the stub made it fail");
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
}

#[tokio::test]
async fn a_write_that_most_members_do_not_have_in_time_is_open() {
    let error = write_meets(Reply::With(doc! {
        "ok": 1,
        "value": { "_id": "state", "revision": 7_i64, "last": [{ "outcome": "done" }] },
        "writeConcernError": {
            "code": 64, "codeName": "WriteConcernTimeout", "errmsg": "waiting for replication timed out",
        },
    }))
    .await;
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_made_anew() {
    let error = write_meets(Reply::CutOff).await;
    assert_eq!(error.kind(), ErrorKind::Timeout, "nobody knows what happened: {error}");
    assert!(error.is_temporary());
}

#[tokio::test]
async fn garbage_is_an_error_and_no_more() {
    write_meets(Reply::Garbage).await;
}

#[tokio::test]
async fn answers_of_another_make_are_corrupt() {
    for answer in [
        doc! { "ok": 1, "value": { "_id": "state" } },
        doc! { "ok": 1, "value": { "_id": "state", "revision": "seven" } },
        doc! { "ok": 1, "value": { "_id": "state", "revision": 7_i64, "last": 1 } },
        doc! { "ok": 1, "value": { "_id": "state", "revision": 7_i64, "last": [{ "outcome": "?" }] } },
        doc! { "ok": 1, "value": { "_id": "state", "revision": 7_i64, "last": [] } },
        doc! { "ok": 1, "value": null },
    ] {
        let error = write_meets(Reply::With(answer)).await;
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "it is real time that must not pass")]
async fn silence_ends_in_time() {
    let stub = WireStub::start();
    let config = MongoConfig::new(stub.uri()).timeout(Duration::from_millis(500));
    let lease = MongoLease::connect(config).await.expect("the stub is set up");
    stub.next(WRITE, Reply::Silence);
    let began = std::time::Instant::now();
    let error = write(&lease).await.expect_err("there is no answer");
    assert_eq!(error.to_string(), "write (mongodb): timeout: no answer within 500ms");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    works_again(&lease).await;
}

#[tokio::test]
async fn old_servers_are_unsupported() {
    for wire_version in [6, 13] {
        let stub = WireStub::of_wire_version(wire_version);
        let config = MongoConfig::new(stub.uri()).timeout(Duration::from_secs(2));
        let error = MongoLease::connect(config).await.expect_err("it is too old");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{wire_version}: {error}");
        let words = error.detail();
        assert!(words.contains("wire version"), "{words}");
    }
    let stub = WireStub::of_wire_version(17);
    works_again(&connect(&stub).await).await;
}

#[tokio::test]
async fn addresses_that_are_none_are_invalid() {
    for uri in [
        "http://me:s3cret@127.0.0.1:27017",
        "mongodb://",
        "mongodb://me:s3cret@127.0.0.1/?tlsColour=blue",
        "mongodb://me:s3cret@127.0.0.1/?tls=perhaps",
        "mongodb://me:s3cret@127.0.0.1:port/",
    ] {
        let error = MongoLease::connect(MongoConfig::new(uri)).await.expect_err("it is none");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{uri}: {error}");
        assert_eq!((error.operation(), error.field()), ("connect", Some("uri")));
        assert!(!error.detail().is_empty());
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    }
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let config = MongoConfig::new(format!("mongodb://{address}")).timeout(Duration::from_secs(1));
    let error = MongoLease::connect(config).await.expect_err("nobody listens");
    // The driver's time for finding a server is the call's: either may notice first.
    match error.kind() {
        ErrorKind::Unavailable => assert!(error.detail().contains("refused"), "{error}"),
        kind => assert_eq!(kind, ErrorKind::Timeout, "{error}"),
    }
    assert!(error.is_temporary());
}

/// A watch on a stub whose changes are hardly ever polled for.
async fn watched(stub: &WireStub) -> tokio::task::JoinHandle<()> {
    let config = MongoConfig::new(stub.uri())
        .timeout(Duration::from_secs(5))
        .poll_every(Duration::from_secs(3600));
    let lease = MongoLease::connect(config).await.expect("the stub is set up");
    let mut watch = lease.watch("", StoreRevision::new(7));
    tokio::spawn(async move { drop(futures::StreamExt::next(&mut watch).await) })
}

/// Waits until a command has come so often.
async fn heard(stub: &WireStub, command: &str, times: usize) {
    let clock = SystemClock::new();
    let deadline = clock.now() + Duration::from_secs(10);
    while stub.heard(command) < times {
        assert!(clock.now() < deadline, "{command} came {} times", stub.heard(command));
        clock.sleep_until(clock.now() + Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_change_stream_makes_those_who_watch_look() {
    let stub = WireStub::start();
    let gate = Arc::new(Gate::default());
    let token = doc! { "_data": "1" };
    let batch = |name: &str, events: Vec<Document>| {
        let mut cursor =
            doc! { "id": 5_i64, "ns": "flare.flare_lease", "postBatchResumeToken": &token };
        cursor.insert(name, events);
        Reply::With(doc! { "ok": 1, "cursor": cursor })
    };
    let event = doc! {
        "_id": &token,
        "operationType": "update",
        "ns": { "db": "flare", "coll": "flare_lease" },
        "documentKey": { "_id": "state" },
        "updateDescription": { "updatedFields": {}, "removedFields": [], "truncatedArrays": [] },
    };
    let Reply::With(told) = batch("nextBatch", vec![event]) else { unreachable!() };
    stub.next("$changeStream", batch("firstBatch", Vec::new()))
        .next("getMore", Reply::Once(Arc::clone(&gate), told))
        .next("getMore", Reply::Silence);
    let watch = watched(&stub).await;
    // The watch has looked, and the poller, which will not again.
    heard(&stub, "aggregate", 2).await;
    heard(&stub, "getMore", 1).await;
    assert_eq!(stub.heard("aggregate"), 2);
    gate.open();
    heard(&stub, "aggregate", 3).await;
    watch.abort();
}

#[tokio::test]
async fn a_server_without_change_streams_is_asked_for_them_once() {
    let stub = WireStub::start();
    let watch = watched(&stub).await;
    heard(&stub, "aggregate", 2).await;
    heard(&stub, "$changeStream", 1).await;
    assert_eq!(stub.heard("$changeStream"), 1);
    watch.abort();
}

async fn repository(stub: &WireStub) -> MongoRepository {
    let config = MongoConfig::new(stub.uri()).timeout(Duration::from_secs(5));
    MongoRepository::connect(config).await.expect("the stub is set up")
}

fn document(id: u8) -> DocumentUrl {
    DocumentUrl::parse(&format!("http://api.example/{id}")).expect("a URL")
}

/// Has two rows tried again later, in one batch of statements.
async fn retry_two(stub: &WireStub) -> Vec<Result<Applied, Error>> {
    let retry = |id: u8| RowUpdate {
        key: RowKey::new(SubscriptionId::from_bytes([1; 16]), document(id)),
        round: Round::ZERO,
        effect: RowEffect::Retry {
            version: Version::live(Revision::new(1)),
            present: Present::No,
            attempts: 1,
            due: Timestamp::EPOCH,
            first_failure: None,
        },
    };
    let store = repository(stub).await;
    let applied = store.apply_rows(Epoch::new(1), vec![retry(1), retry(2)]).await;
    assert_eq!(stub.heard("bulkWrite"), 1, "a batch is sent once");
    applied
}

#[tokio::test]
async fn a_write_of_a_batch_that_is_refused_fails_alone() {
    let stub = WireStub::start();
    stub.next(
        "bulkWrite",
        Reply::With(doc! {
            "ok": 1,
            "cursor": { "id": 0_i64, "ns": "admin.$cmd.bulkWrite", "firstBatch": [
                { "ok": 0.0, "idx": 0, "n": 0, "code": 14031, "errmsg": "no space left" },
                { "ok": 1.0, "idx": 1, "n": 1, "nModified": 1 },
            ] },
            "nErrors": 1, "nMatched": 1, "nModified": 1, "nInserted": 0, "nUpserted": 0,
            "nDeleted": 0,
        }),
    );
    let [full, stored] = &retry_two(&stub).await[..] else { panic!("two answers") };
    let full = full.as_ref().expect_err("the stub's disk is full");
    assert_eq!(full.kind(), ErrorKind::Busy);
    assert!(full.to_string().contains("no space left"), "{full}");
    assert_eq!(stored.as_ref().ok(), Some(&Applied::Done));
}

#[tokio::test]
async fn a_batch_that_is_refused_fails_as_a_whole() {
    let stub = WireStub::start();
    stub.next("bulkWrite", Reply::refusal(13, "not authorized on flare"));
    for answer in retry_two(&stub).await {
        let error = answer.expect_err("the stub refuses");
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("not authorized on flare"), "{error}");
    }
}

#[tokio::test]
async fn a_batch_whose_answer_is_lost_is_open() {
    let stub = WireStub::start();
    stub.next("bulkWrite", Reply::CutOff);
    for answer in retry_two(&stub).await {
        let error = answer.expect_err("the answer was cut off");
        assert!(error.is_temporary(), "{error}");
    }
}

/// Puts two documents in one statement.
async fn put_two(stub: &WireStub) -> Vec<Result<DocumentChange, Error>> {
    let put = |id: u8| {
        let key = DocumentKey::new(ResourceId::from_bytes([1; 16]), document(id));
        let content = Content::from_stored("{}".into());
        DocumentWrite::put(key, Revision::new(1), content)
    };
    let store = repository(stub).await;
    let written = store.write_documents(vec![put(1), put(2)]).await;
    assert_eq!(stub.heard("update"), 1, "a statement is sent once");
    written.into_iter().map(|written| written.map(|outcome| outcome.change)).collect()
}

#[tokio::test]
async fn a_record_that_cannot_be_made_fails_alone() {
    let stub = WireStub::start();
    stub.next("update", Reply::With(doc! { "ok": 1, "n": 0, "nModified": 0 }));
    let full = doc! { "index": 0, "code": 14031, "errmsg": "no space left" };
    stub.next("insert", Reply::With(doc! { "ok": 1, "n": 1, "writeErrors": [full] }));
    let [full, made] = &put_two(&stub).await[..] else { panic!("two answers") };
    let full = full.as_ref().expect_err("the stub's disk is full");
    assert_eq!(full.kind(), ErrorKind::Busy);
    assert!(full.to_string().contains("no space left"), "{full}");
    assert_eq!(made.as_ref().ok(), Some(&DocumentChange::Created));
}

#[tokio::test]
async fn a_statement_that_is_refused_fails_as_a_whole() {
    let stub = WireStub::start();
    stub.next("update", Reply::refusal(13, "not authorized on flare"));
    for answer in put_two(&stub).await {
        let error = answer.expect_err("the stub refuses");
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("not authorized on flare"), "{error}");
    }
}

#[tokio::test]
async fn a_statement_whose_answer_is_lost_is_open() {
    let stub = WireStub::start();
    stub.next("update", Reply::CutOff);
    for answer in put_two(&stub).await {
        let error = answer.expect_err("the answer was cut off");
        assert!(error.is_temporary(), "{error}");
    }
}
