//! What leaves for SQS, seen by a server that plays it: repetitions of what was throttled, how many
//! requests there are, and who signs them.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

mod support;

use std::time::Duration;

use flare_backend_sqs::{SqsConfig, SqsQueue};
use flare_core::ErrorKind;
use flare_core::port::{Outgoing, Queue, QueueName, Receive, Settlement};
use futures::TryStreamExt;
use support::{Seen, Stub};

const SLOT: QueueName = QueueName::Slot(1);
const NOTHING: &str = "{}";

fn config(stub: &Stub) -> SqsConfig {
    let config = SqsConfig::new().endpoint(&stub.url).region("us-east-1").prefix("t");
    config.credentials("AKIABASE", "secret").backoff(Duration::from_millis(1))
}

fn refusal(code: &str) -> (u16, String) {
    (400, format!(r#"{{"__type":"com.amazonaws.sqs#{code}","message":"later"}}"#))
}

/// SQS with one queue, which says that everything went well.
fn plays_sqs(seen: &Seen) -> (u16, String) {
    let url = r#""http://sqs/1/t-slot-1""#;
    let body = match seen.target() {
        "GetQueueUrl" => format!(r#"{{"QueueUrl":{url}}}"#),
        "ListQueueTags" => r#"{"Tags":{"flare:prefix":"t"}}"#.to_owned(),
        "SendMessageBatch" => {
            let sent = r#"{"Id":"0","MessageId":"m","MD5OfMessageBody":"3a7ea3c0ee9fc0bd7b0d5ae1e1e5dc6b"}"#;
            format!(r#"{{"Successful":[{sent}],"Failed":[]}}"#)
        }
        "ReceiveMessage" => r#"{"Messages":[{"ReceiptHandle":"r","Body":"bd2FrZQ"}]}"#.to_owned(),
        "DeleteMessageBatch" | "ChangeMessageVisibilityBatch" => {
            r#"{"Successful":[{"Id":"0"}],"Failed":[]}"#.to_owned()
        }
        _ => NOTHING.to_owned(),
    };
    (200, body)
}

#[tokio::test]
async fn what_is_throttled_is_asked_again() {
    for code in ["ThrottlingException", "RequestThrottled"] {
        let stub = Stub::answering(
            move |seen, before| {
                if before < 2 { refusal(code) } else { plays_sqs(seen) }
            },
        );
        let stub = stub.await;
        let queue = SqsQueue::connect(config(&stub).attempts(3)).await.unwrap();
        assert_eq!((queue.requests().other, stub.seen().len()), (3, 3), "{code}");
    }
}

#[tokio::test]
async fn what_stays_throttled_is_busy() {
    // Of the latter two the SDK does not know that they pass.
    let codes = [
        ("ThrottlingException", 2),
        ("RequestThrottled", 2),
        ("KmsThrottled", 1),
        ("OverLimit", 1),
    ];
    for (code, requests) in codes {
        let stub = Stub::answering(move |_, _| refusal(code)).await;
        let error = SqsQueue::connect(config(&stub).attempts(2)).await.unwrap_err();
        assert_eq!((error.kind(), error.is_temporary()), (ErrorKind::Busy, true), "{error}");
        assert_eq!(stub.seen().len(), requests, "{code}");
    }
}

#[tokio::test]
async fn a_send_that_is_repeated_is_the_same_message() {
    let stub = Stub::answering(|seen, before| match seen.target() {
        "SendMessageBatch" if before == 0 => refusal("RequestThrottled"),
        _ => plays_sqs(seen),
    });
    let stub = stub.await;
    let queue = SqsQueue::connect(config(&stub).fifo(true)).await.unwrap();
    for _ in 0..2 {
        queue.send(&SLOT, vec![Outgoing::new("wake")]).await.remove(0).unwrap();
    }
    let seen = stub.seen();
    let sent: Vec<&str> =
        seen.iter().filter(|it| it.target() == "SendMessageBatch").map(|it| &it.body[..]).collect();
    assert_eq!(sent.len(), 3, "two calls, one of them made twice");
    assert_eq!(sent[0], sent[1], "the repetition has the id of what it repeats");
    assert_ne!(sent[1], sent[2], "another call has an id of its own");
    assert!(sent[0].contains("MessageDeduplicationId"), "{}", sent[0]);
}

#[tokio::test]
async fn requests_are_counted_by_kind() {
    let stub = Stub::answering(|seen, _| plays_sqs(seen)).await;
    let queue = SqsQueue::connect(config(&stub)).await.unwrap();
    queue.send(&SLOT, vec![Outgoing::new("wake")]).await.remove(0).unwrap();
    let request = Receive::new(1, Duration::from_secs(30));
    let one = queue.receive(&SLOT, request).await.unwrap().remove(0);
    queue.extend(&SLOT, vec![&one.receipt], Duration::from_secs(30)).await.remove(0).unwrap();
    queue.settle(&SLOT, vec![(one.receipt, Settlement::Done)]).await.remove(0).unwrap();
    let counted = queue.requests();
    let kinds = [counted.send, counted.receive, counted.delete, counted.change];
    // Listed to connect, found once, and asked for its tags once.
    assert_eq!((kinds, counted.other), ([1; 4], 3));
    assert_eq!(counted.total(), u64::try_from(stub.seen().len()).unwrap());
}

#[tokio::test]
async fn a_list_asks_for_pages_and_for_tags_it_does_not_know() {
    let stub = Stub::answering(|seen, _| match seen.target() {
        "ListQueues" if seen.body.contains("NextToken") => {
            (200, r#"{"QueueUrls":["http://sqs/1/t-spread"]}"#.to_owned())
        }
        "ListQueues" => {
            let urls =
                r#"["http://sqs/1/t-slot-1","http://sqs/1/t-x","http://sqs/1/t-dead-letters"]"#;
            (200, format!(r#"{{"QueueUrls":{urls},"NextToken":"2"}}"#))
        }
        _ => plays_sqs(seen),
    });
    let stub = stub.await;
    let queue = SqsQueue::connect(config(&stub)).await.unwrap();
    let mut requests = Vec::new();
    for _ in 0..2 {
        let before = queue.requests().total();
        let mut listed: Vec<QueueName> = queue.list().try_collect().await.unwrap();
        listed.sort();
        assert_eq!(listed, [QueueName::Spread, SLOT]);
        requests.push(queue.requests().total() - before);
    }
    assert_eq!(requests, [4, 2], "two pages, and at first the tags of two queues");
    assert!(stub.seen()[1].body.contains(r#""MaxResults":1000"#), "{}", stub.seen()[1].body);
}

#[tokio::test]
async fn a_session_signs_with_its_token() {
    let stub = Stub::answering(|seen, _| plays_sqs(seen)).await;
    SqsQueue::connect(config(&stub).session_token("of-session")).await.unwrap();
    let seen = stub.seen();
    assert!(seen[0].header("authorization").contains("Credential=AKIABASE/"));
    assert_eq!(seen[0].header("x-amz-security-token"), "of-session");
}

#[tokio::test]
async fn a_role_is_taken_on_and_signs() {
    let sts = Stub::answering(|_, _| {
        let credentials = "<AccessKeyId>ASIAROLE</AccessKeyId>\
            <SecretAccessKey>of-role</SecretAccessKey><SessionToken>token-of-role</SessionToken>\
            <Expiration>2999-01-01T00:00:00Z</Expiration>";
        let user = "<AssumedRoleId>AROA:one</AssumedRoleId>\
            <Arn>arn:aws:sts::123456789012:assumed-role/flare/one</Arn>";
        let result = format!(
            "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
             <AssumeRoleResult><AssumedRoleUser>{user}</AssumedRoleUser>\
             <Credentials>{credentials}</Credentials></AssumeRoleResult></AssumeRoleResponse>"
        );
        (200, result)
    });
    let (sqs, sts) = (Stub::answering(|seen, _| plays_sqs(seen)).await, sts.await);
    let role = config(&sqs).assume_role("arn:aws:iam::123456789012:role/flare");
    let role = role.external_id("of-the-owner").session_name("one").sts_endpoint(&sts.url);
    let queue = SqsQueue::connect(role).await.unwrap();
    queue.send(&SLOT, vec![Outgoing::new("wake")]).await.remove(0).unwrap();
    let asked = sts.seen();
    assert_eq!(asked.len(), 1, "a session is used until it ends");
    assert!(asked[0].header("authorization").contains("Credential=AKIABASE/"));
    for part in [
        "Action=AssumeRole",
        "RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fflare",
        "ExternalId=of-the-owner",
        "RoleSessionName=one",
    ] {
        assert!(asked[0].body.contains(part), "{part} in {}", asked[0].body);
    }
    assert!(sqs.seen().len() >= 2);
    for seen in sqs.seen() {
        assert!(seen.header("authorization").contains("Credential=ASIAROLE/"));
        assert_eq!(seen.header("x-amz-security-token"), "token-of-role");
    }
}

#[tokio::test]
async fn a_role_that_is_refused_is_denied() {
    let sts = Stub::answering(|_, _| {
        let error = "<Error><Type>Sender</Type><Code>AccessDenied</Code>\
            <Message>not you</Message></Error>";
        (403, format!("<ErrorResponse>{error}<RequestId>1</RequestId></ErrorResponse>"))
    });
    let (sqs, sts) = (Stub::answering(|seen, _| plays_sqs(seen)).await, sts.await);
    let role = config(&sqs).assume_role("arn:aws:iam::1:role/flare").sts_endpoint(&sts.url);
    let error = SqsQueue::connect(role).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert_eq!(sqs.seen().len(), 0, "nothing is asked without a signature");
}
