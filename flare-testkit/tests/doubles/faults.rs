//! The doubles do what they are told, the same way every time.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::ErrorKind;
use flare_core::model::{
    Action, DocumentUrl, Method, Revision, SubscriptionId, Timestamp, Version,
};
use flare_core::port::{
    Delivery, DeliveryOutcome, DeliveryRequest, FailureKind, Lease, Outgoing, Queue, QueueName,
    Receive, Reply, Settlement, StoreRevision, Write,
};
use flare_testkit::{FaultPlan, FaultyLease, FaultyQueue, ManualClock, RecordingDelivery};
use futures::StreamExt;

const QUEUE: QueueName = QueueName::Partition;
const MINUTE: Duration = Duration::from_secs(60);

fn clock() -> ManualClock {
    ManualClock::new(Timestamp::EPOCH)
}

fn request(url: &str) -> DeliveryRequest {
    DeliveryRequest::new(
        SubscriptionId::from_bytes([1; 16]),
        DocumentUrl::parse("http://api.example.com/users/42").unwrap(),
        Version::live(Revision::new(1)),
        Action::Create,
        Method::Post,
        url,
    )
}

async fn queue(plan: FaultPlan) -> FaultyQueue {
    let memory = MemoryBackend::with_clock(Arc::new(clock())).queue();
    memory.create(&QUEUE).await.unwrap();
    FaultyQueue::new(memory, plan)
}

fn batch() -> Vec<Outgoing> {
    (0..100).map(|number| Outgoing::new(format!("{number:02}"))).collect()
}

/// What comes out for a hundred messages.
async fn through(queue: &FaultyQueue) -> Vec<String> {
    for result in queue.send(&QUEUE, batch()).await {
        result.unwrap();
    }
    let received = queue.receive(&QUEUE, Receive::new(1000, MINUTE)).await.unwrap();
    received.iter().map(|message| String::from_utf8_lossy(&message.payload).into()).collect()
}

#[tokio::test]
async fn a_faulty_queue_loses_doubles_and_shuffles_by_its_seed() {
    let run = async |seed| {
        let faulty = queue(FaultPlan::seeded(seed)).await;
        through(&faulty.losing(0.2).duplicating(0.2).reordering(1.0)).await
    };
    let (one, other) = (run(1).await, run(2).await);
    assert_eq!(one, run(1).await);
    assert_ne!(one, other);
    assert!(!one.is_sorted());
    let mut distinct = one.clone();
    distinct.sort();
    distinct.dedup();
    assert!(distinct.len() < 100 && distinct.len() < one.len());
}

#[tokio::test]
async fn a_faulty_queue_heals() {
    let faulty = queue(FaultPlan::seeded(1).with_before(1.0)).await.losing(1.0);
    let refused = faulty.depth(&QUEUE).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    faulty.plan().heal();
    assert_eq!(through(&faulty).await.len(), 100);
    assert_eq!(faulty.plan().injected(), 1);
}

#[tokio::test]
async fn a_faulty_queue_gives_receipts_back_after_the_effect() {
    let faulty = queue(FaultPlan::seeded(1)).await;
    faulty.send(&QUEUE, vec![Outgoing::new("x")]).await.remove(0).unwrap();
    let message = faulty.receive(&QUEUE, Receive::new(1, MINUTE)).await.unwrap().remove(0);
    let token = message.receipt.token().to_owned();
    drop(faulty.plan().clone().with_after(1.0));
    let settled = faulty.settle(&QUEUE, vec![(message.receipt, Settlement::Done)]).await.remove(0);
    let unsettled = settled.unwrap_err();
    assert_eq!(unsettled.error.kind(), ErrorKind::Timeout);
    assert_eq!(unsettled.receipt.token(), token);
    faulty.plan().heal();
    let again = faulty.settle(&QUEUE, vec![(unsettled.receipt, Settlement::Done)]).await.remove(0);
    assert_eq!(again.unwrap_err().error.kind(), ErrorKind::Lost, "the effect took place");
}

#[tokio::test]
async fn a_faulty_queue_delays_and_purges() {
    let faulty = queue(FaultPlan::seeded(3)).await.delaying(1.0, MINUTE);
    assert!(through(&faulty).await.is_empty());
    assert_eq!(faulty.depth(&QUEUE).await.unwrap().delayed, 100);
    faulty.purge_all().await.unwrap();
    assert_eq!(faulty.depth(&QUEUE).await.unwrap().delayed, 0);
}

#[tokio::test]
async fn a_faulty_lease_ends_leases_and_watches() {
    let memory = MemoryBackend::with_clock(Arc::new(clock())).lease();
    let faulty = FaultyLease::new(memory, FaultPlan::seeded(1)).expiring(1.0).dropping_watches(1.0);
    let grant = faulty.grant(MINUTE).await.unwrap();
    faulty.write(Write::new("key", "value").lease(grant.id)).await.unwrap();
    let events: Vec<_> = faulty.watch("", StoreRevision::default()).collect().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(faulty.keep_alive(grant.id).await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(faulty.get("key").await.unwrap(), None);
    faulty.plan().heal();
    let grant = faulty.grant(MINUTE).await.unwrap();
    faulty.keep_alive(grant.id).await.unwrap();
    faulty.expire(grant.id).await.unwrap();
    assert_eq!(faulty.keep_alive(grant.id).await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn a_faulty_lease_is_late() {
    let clock = clock();
    let memory = MemoryBackend::with_clock(Arc::new(clock.clone())).lease();
    let faulty = FaultyLease::new(memory, FaultPlan::seeded(1));
    let faulty = faulty.delaying(1.0, MINUTE, Arc::new(clock.clone()));
    let (granted, ()) = tokio::join!(faulty.grant(MINUTE), clock.advance(MINUTE));
    granted.unwrap();
    assert_eq!(faulty.plan().injected(), 1);
}

#[tokio::test]
async fn a_recording_delivery_answers_as_told_and_remembers() {
    let clock = clock();
    let delivery = RecordingDelivery::new(Arc::new(clock.clone()))
        .answering(|request| DeliveryOutcome::answered(request.url.len() as u16))
        .keeping(3);
    delivery.answer("/set", DeliveryOutcome::answered(201));
    delivery.answer_next("/set", DeliveryOutcome::answered(202));
    let mut statuses = Vec::new();
    for url in ["/set", "/set", "/set", "/else"] {
        clock.advance(Duration::from_secs(1)).await;
        match delivery.attempt(request(url)).await.reply {
            Reply::Answered { status, .. } => statuses.push(status),
            reply => panic!("{reply:?}"),
        }
    }
    assert_eq!(statuses, [202, 201, 201, 5]);
    let kept = delivery.wait_for(4).await;
    let kept: Vec<_> = kept.iter().map(|made| (made.number, made.at.unix_seconds())).collect();
    assert_eq!(kept, [(2, 2), (3, 3), (4, 4)]);
    assert_eq!((delivery.total(), delivery.in_flight()), (4, 0));
}

#[tokio::test]
async fn a_recording_delivery_hangs_until_released_or_out_of_time() {
    let clock = clock();
    let delivery = RecordingDelivery::new(Arc::new(clock.clone()));
    delivery.hang("/slow");
    let release = async {
        delivery.wait_for(1).await;
        assert_eq!(delivery.in_flight(), 1);
        clock.advance(Duration::from_secs(5)).await;
        delivery.release("/slow");
    };
    let (outcome, ()) = tokio::join!(delivery.attempt(request("/slow")), release);
    assert_eq!(outcome, DeliveryOutcome::answered(200).after(Duration::from_secs(5)));
    delivery.hang("/slow");
    let (outcome, ()) = tokio::join!(delivery.attempt(request("/slow")), clock.advance(MINUTE));
    assert!(matches!(outcome.reply, Reply::Failed { kind: FailureKind::Timeout, .. }));
    assert!(outcome.sent);
    assert_eq!((delivery.in_flight(), clock.sleepers()), (0, 0));
}
