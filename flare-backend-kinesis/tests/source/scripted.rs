//! What AWS does and the emulator does not: closed shards that are still listed, iterators that expire, throttling.

use std::time::Duration;

use flare_core::ErrorKind;
use flare_core::model::Checkpoint;
use flare_core::port::{SourceMessage, SourceSettlement};
use flare_testkit::Trials;
use serde_json::{Value, json};

use crate::support::{Asked, Script, open};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn shard(id: &str, parent: Option<&str>, ending: Option<&str>) -> Value {
    let mut shard = json!({
        "ShardId": id,
        "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "9"},
        "SequenceNumberRange": {"StartingSequenceNumber": "1"},
    });
    if let Some(parent) = parent {
        shard["ParentShardId"] = json!(parent);
    }
    if let Some(ending) = ending {
        shard["SequenceNumberRange"]["EndingSequenceNumber"] = json!(ending);
    }
    shard
}

/// A record whose body is `0`.
fn record(number: &str) -> Value {
    json!({
        "SequenceNumber": number,
        "Data": "MA==",
        "PartitionKey": "a",
        "ApproximateArrivalTimestamp": 1_700_000_000.25,
    })
}

/// An iterator that says what it was asked by: shard, type, number.
fn iterator(asked: &Asked) -> (u16, Value) {
    let part = |name: &str| asked.body[name].as_str().unwrap_or("-").to_owned();
    let parts = ["ShardId", "ShardIteratorType", "StartingSequenceNumber"].map(part);
    (200, json!({"ShardIterator": parts.join("/")}))
}

fn refusal(code: &str) -> (u16, Value) {
    (400, json!({"__type": code, "message": "no"}))
}

async fn children_are_read_once_their_closed_parent_is_settled(_: String) {
    let script = Script::answering(|asked, _| match asked.target.as_str() {
        "ListShards" => {
            let parent = shard("shardId-0", None, Some("2"));
            let children = ["shardId-1", "shardId-2"].map(|id| shard(id, Some("shardId-0"), None));
            (200, json!({"Shards": [&children[0], parent, &children[1]]}))
        }
        "GetShardIterator" => iterator(asked),
        _ => match asked.body["ShardIterator"].as_str().unwrap() {
            // A shard that is closed ends without a next iterator.
            "shardId-0/TRIM_HORIZON/-" => {
                let records = [record("1"), record("2")];
                (200, json!({"Records": records, "MillisBehindLatest": 0}))
            }
            "shardId-1/TRIM_HORIZON/-" => {
                let next = "shardId-1/next";
                let answer =
                    json!({"Records": [record("3")], "NextShardIterator": next, "MillisBehindLatest": 0});
                (200, answer)
            }
            other => {
                (200, json!({"Records": [], "NextShardIterator": other, "MillisBehindLatest": 0}))
            }
        },
    })
    .await;
    let source = open(&script.url, "orders", "oldest", Vec::new()).await.unwrap();
    let mut of_parent = source.receive(10, PATIENCE).await.unwrap();
    let ids = |messages: &[SourceMessage]| {
        messages.iter().map(|message| message.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&of_parent), ["shardId-0:1", "shardId-0:2"]);
    assert_eq!(of_parent[0].sent_at.map(|at| at.unix_millis()), Some(1_700_000_000_250));
    let last = of_parent.pop().unwrap();
    let first = of_parent.pop().unwrap();
    for message in [first, last] {
        assert!(source.receive(10, Duration::ZERO).await.unwrap().is_empty(), "the parent is open");
        let done = vec![(message.receipt, SourceSettlement::Done)];
        assert!(source.settle(done).await.remove(0).is_ok());
    }
    assert_eq!(ids(&source.receive(10, PATIENCE).await.unwrap()), ["shardId-1:3"]);
    let asked: Vec<_> = script.asked();
    let position = |shard: &str| {
        let at =
            |asked: &Asked| asked.target == "GetShardIterator" && asked.body["ShardId"] == shard;
        asked.iter().position(at)
    };
    assert!(position("shardId-0") < position("shardId-1"));
    let places = source.checkpoints();
    assert_eq!(places[0], Checkpoint::new("shardId-0", "end"));
    assert_eq!(places[1], Checkpoint::new("shardId-1", "oldest"));
    // The next one does not ask the parent again.
    let before = script.asked().len();
    let next = open(&script.url, "orders", "latest", places).await.unwrap();
    assert_eq!(ids(&next.receive(10, PATIENCE).await.unwrap()), ["shardId-1:3"]);
    let asked = script.asked().split_off(before);
    assert!(asked.iter().all(|asked| asked.body["ShardId"] != "shardId-0"), "{asked:?}");
}

async fn an_expired_iterator_is_made_again_behind_the_last_record(_: String) {
    let script = Script::answering(|asked, _| match asked.target.as_str() {
        "ListShards" => (200, json!({"Shards": [shard("shardId-0", None, None)]})),
        "GetShardIterator" => iterator(asked),
        _ => match asked.body["ShardIterator"].as_str().unwrap() {
            "shardId-0/TRIM_HORIZON/-" => {
                let answer = json!({
                    "Records": [record("41")], "NextShardIterator": "old", "MillisBehindLatest": 7,
                });
                (200, answer)
            }
            "old" => refusal("ExpiredIteratorException"),
            "shardId-0/AFTER_SEQUENCE_NUMBER/41" => {
                let answer = json!({
                    "Records": [record("42")], "NextShardIterator": "new", "MillisBehindLatest": 0,
                });
                (200, answer)
            }
            other => {
                (200, json!({"Records": [], "NextShardIterator": other, "MillisBehindLatest": 0}))
            }
        },
    })
    .await;
    let source = open(&script.url, "orders", "oldest", Vec::new()).await.unwrap();
    let first = source.receive(1, PATIENCE).await.unwrap();
    let second = source.receive(1, PATIENCE).await.unwrap();
    assert_eq!((first[0].id.as_str(), second[0].id.as_str()), ("shardId-0:41", "shardId-0:42"));
}

async fn what_is_throttled_is_tried_again_later(_: String) {
    let script = Script::answering(|asked, _| match asked.target.as_str() {
        "ListShards" => (200, json!({"Shards": [shard("shardId-0", None, None)]})),
        "GetShardIterator" => iterator(asked),
        _ => refusal("ProvisionedThroughputExceededException"),
    })
    .await;
    let source = open(&script.url, "orders", "oldest", Vec::new()).await.unwrap();
    let error = source.receive(1, PATIENCE).await.expect_err("it is too much");
    assert_eq!((error.kind(), error.is_temporary()), (ErrorKind::Busy, true), "{error}");
    let asked = script.asked().iter().filter(|asked| asked.target == "GetRecords").count();
    assert_eq!(asked, 2, "as often as the settings say");
}

async fn every_page_of_the_list_is_read_and_a_time_begins_where_it_says(_: String) {
    let script = Script::answering(|asked, _| match asked.target.as_str() {
        "ListShards" if asked.body["NextToken"] == "more" => {
            assert_eq!(asked.body["StreamName"], Value::Null, "the token says it");
            (200, json!({"Shards": [shard("shardId-1", None, None)]}))
        }
        "ListShards" => {
            (200, json!({"Shards": [shard("shardId-0", None, None)], "NextToken": "more"}))
        }
        "GetShardIterator" => iterator(asked),
        _ => {
            let next = &asked.body["ShardIterator"];
            (200, json!({"Records": [], "NextShardIterator": next, "MillisBehindLatest": 0}))
        }
    })
    .await;
    let from = "2023-11-14T22:13:20.5Z";
    let source = open(&script.url, "orders", from, Vec::new()).await.unwrap();
    assert!(source.receive(1, Duration::ZERO).await.unwrap().is_empty());
    for id in ["shardId-0", "shardId-1"] {
        let asked = script.asked().into_iter();
        let mut asked =
            asked.filter(|it| it.target == "GetShardIterator" && it.body["ShardId"] == id);
        let body = asked.next().unwrap().body;
        assert_eq!(body["ShardIteratorType"], "AT_TIMESTAMP");
        assert_eq!(body["Timestamp"].as_f64(), Some(1_700_000_000.5));
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("scripted")
        .test(
            "children_are_read_once_their_closed_parent_is_settled",
            children_are_read_once_their_closed_parent_is_settled,
        )
        .test(
            "an_expired_iterator_is_made_again_behind_the_last_record",
            an_expired_iterator_is_made_again_behind_the_last_record,
        )
        .test("what_is_throttled_is_tried_again_later", what_is_throttled_is_tried_again_later)
        .test(
            "every_page_of_the_list_is_read_and_a_time_begins_where_it_says",
            every_page_of_the_list_is_read_and_a_time_begins_where_it_says,
        )
}
