//! What the emulator can show of a stream's life: shards that are split, beginnings, a stream that is deleted.

use std::sync::Arc;
use std::time::Duration;

use flare_core::ErrorKind;
use flare_core::port::{Clock, Source, SourceMessage, SourceSettlement, SystemClock};
use flare_testkit::Trials;

use crate::support::{Scratch, open};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// So many messages, settled as done; what they say, sorted.
async fn settled(source: &Arc<dyn Source>, count: usize) -> Vec<String> {
    let mut said = Vec::new();
    while said.len() < count {
        let messages = source.receive(count - said.len(), PATIENCE).await.unwrap();
        assert!(!messages.is_empty(), "only {said:?} came");
        let body = |message: &SourceMessage| String::from_utf8(message.body.to_vec()).unwrap();
        said.extend(messages.iter().map(body));
        let done = messages.into_iter().map(|it| (it.receipt, SourceSettlement::Done)).collect();
        assert!(source.settle(done).await.into_iter().all(|it| it.is_ok()));
    }
    said.sort();
    said
}

/// The emulator forgets a shard with all that is in it when it is split, so what was in it has to be read before.
async fn what_comes_after_a_split_is_read_by_this_source_and_by_the_next(endpoint: String) {
    let scratch = Scratch::new(&endpoint, 1).await;
    let source = open(&endpoint, &scratch.stream, "oldest", Vec::new()).await.unwrap();
    scratch.put("a", "0").await;
    assert_eq!(settled(&source, 1).await, ["0"]);
    let before = source.checkpoints();
    let split = scratch.client.split_shard().stream_name(&scratch.stream);
    let middle = (u128::MAX / 2).to_string();
    let split = split.shard_to_split("shardId-000000000000").new_starting_hash_key(middle);
    split.send().await.unwrap();
    for number in 1..9 {
        scratch.put(&format!("key-{number}"), number.to_string()).await;
    }
    let all: Vec<String> = (1..9).map(|number| number.to_string()).collect();
    assert_eq!(settled(&source, 8).await, all);
    let places = source.checkpoints();
    assert_eq!(places.len(), 2, "the parent is done and no longer kept: {places:?}");
    // A node that knows of nothing but the parent, even if consumers begin with the latest.
    let next = open(&endpoint, &scratch.stream, "latest", before).await.unwrap();
    assert_eq!(settled(&next, 8).await, all);
    let next = open(&endpoint, &scratch.stream, "oldest", places).await.unwrap();
    assert!(next.receive(10, Duration::ZERO).await.unwrap().is_empty());
}

async fn the_latest_is_what_comes_once_it_is_open_also_for_the_next(endpoint: String) {
    let scratch = Scratch::new(&endpoint, 1).await;
    scratch.put("a", "old").await;
    // Places in time are of whole milliseconds: what came in the same one is not told from what comes.
    let clock = SystemClock::new();
    clock.sleep_until(clock.now() + Duration::from_millis(2)).await;
    let source = open(&endpoint, &scratch.stream, "latest", Vec::new()).await.unwrap();
    assert!(source.receive(10, Duration::ZERO).await.unwrap().is_empty());
    let places = source.checkpoints();
    source.close().await;
    scratch.put("a", "new").await;
    let next = open(&endpoint, &scratch.stream, "latest", places).await.unwrap();
    assert_eq!(settled(&next, 1).await, ["new"]);
}

async fn a_stream_that_is_deleted_ends_the_source(endpoint: String) {
    let scratch = Scratch::new(&endpoint, 1).await;
    let source = open(&endpoint, &scratch.stream, "oldest", Vec::new()).await.unwrap();
    assert!(source.receive(1, Duration::ZERO).await.unwrap().is_empty());
    scratch.client.delete_stream().stream_name(&scratch.stream).send().await.unwrap();
    let error = source.receive(1, PATIENCE).await.expect_err("the stream is gone");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let again = scratch.client.create_stream().stream_name(&scratch.stream).shard_count(1);
    again.send().await.unwrap();
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("resharding")
        .test(
            "what_comes_after_a_split_is_read_by_this_source_and_by_the_next",
            what_comes_after_a_split_is_read_by_this_source_and_by_the_next,
        )
        .test(
            "the_latest_is_what_comes_once_it_is_open_also_for_the_next",
            the_latest_is_what_comes_once_it_is_open_also_for_the_next,
        )
        .test("a_stream_that_is_deleted_ends_the_source", a_stream_that_is_deleted_ends_the_source)
}
