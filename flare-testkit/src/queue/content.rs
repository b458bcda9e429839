//! Q13: a payload is bytes, and stays as it is.

use bytes::Bytes;
use flare_core::port::{Outgoing, Queue};

use super::bench::payloads;
use super::facts::MOST_BYTES;
use crate::Subject;

/// Every byte there is, bytes that are no text, and no bytes at all come back.
pub async fn q13_any_bytes_come_back(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let mut sent = vec![
        Bytes::new(),
        Bytes::from_iter(0..=u8::MAX),
        Bytes::from_static(b"\xff\xfe\x00\r\n<&>\"\\"),
        Bytes::from_static("ü €\u{1f525}\u{fffe}".as_bytes()),
        Bytes::from_static(b" spaces kept \t"),
    ];
    subject.put(&queue, sent.iter().cloned().map(Outgoing::new)).await;
    let messages = subject.collect(&queue, sent.len(), subject.long()).await;
    sent.sort();
    assert_eq!(payloads(&messages), sent);
}

/// The largest payload the facts allow comes back, byte for byte.
pub async fn q13_the_largest_payload_comes_back(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let size = subject.facts().max_payload.min(MOST_BYTES);
    // No byte value is rarer than another, so that nothing is saved by escaping.
    let payload: Bytes = (0..size).map(|index| (index * 31 % 251) as u8).collect();
    subject.put(&queue, [Outgoing::new(payload.clone())]).await;
    let message = subject.next(&queue, subject.long()).await;
    assert!(message.payload == payload, "{} of {size} bytes came", message.payload.len());
}
