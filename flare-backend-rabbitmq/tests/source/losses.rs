//! Connections that break and brokers that crash in the middle of a batch lose no message.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_backend_rabbitmq::RabbitMqConfig;
use flare_core::ErrorKind;
use flare_core::port::{Clock, Source, SourceMessage, SourceSettlement, SystemClock};
use flare_testkit::Trials;

use crate::support::own_broker::OwnBroker;
use crate::support::{Proxy, Scratch, open};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn numbers(messages: &[SourceMessage]) -> Vec<u32> {
    let number = |message: &SourceMessage| {
        std::str::from_utf8(&message.body).unwrap().parse::<u32>().unwrap()
    };
    messages.iter().map(number).collect()
}

async fn publish(scratch: &Scratch, numbers: std::ops::Range<u32>) {
    scratch.publish(numbers.map(|number| Bytes::from(number.to_string()))).await;
}

/// So many messages, however many receives that takes.
async fn collect(source: &Arc<dyn Source>, count: usize) -> Vec<SourceMessage> {
    let mut messages = Vec::new();
    while messages.len() < count {
        let more = source.receive(count - messages.len(), PATIENCE).await.unwrap();
        assert!(!more.is_empty(), "only {} of {count} came", messages.len());
        messages.extend(more);
    }
    messages
}

fn as_done(messages: Vec<SourceMessage>) -> Vec<(flare_core::port::Receipt, SourceSettlement)> {
    messages.into_iter().map(|message| (message.receipt, SourceSettlement::Done)).collect()
}

/// Receives and settles until all of these have come, through whatever errors are temporary; gives all that came.
async fn until_all(source: &Arc<dyn Source>, missing: &mut BTreeSet<u32>) -> Vec<u32> {
    let (clock, mut came) = (SystemClock::new(), Vec::new());
    let end = clock.monotonic() + PATIENCE * 3;
    while !missing.is_empty() {
        assert!(clock.monotonic() < end, "{missing:?} never came");
        match source.receive(50, Duration::from_secs(1)).await {
            Ok(messages) => {
                let said = numbers(&messages);
                let settled = source.settle(as_done(messages)).await;
                for (number, settled) in said.into_iter().zip(settled) {
                    came.push(number);
                    if settled.is_ok() {
                        missing.remove(&number);
                    }
                }
            }
            Err(error) => {
                assert!(error.is_temporary(), "{error}");
                clock.sleep(Duration::from_millis(100)).await;
            }
        }
    }
    came
}

async fn a_connection_that_breaks_mid_batch_costs_receipts_only(uri: String) {
    for kind in ["classic", "quorum"] {
        let scratch = Scratch::new(&uri, kind).await;
        let proxy = Proxy::to(&uri).await;
        let source = open(RabbitMqConfig::new(proxy.uri(&uri)), &scratch.queue).await.unwrap();
        publish(&scratch, 0..20).await;
        let mut messages = collect(&source, 10).await;
        let held = messages.split_off(5);
        assert!(source.settle(as_done(messages)).await.into_iter().all(|it| it.is_ok()));
        proxy.set_cut(true);
        let error = source.receive(20, Duration::ZERO).await;
        // What had been prefetched may be handed out before the loss is noticed.
        let (late, error) = match error {
            Ok(late) => (late, source.receive(1, PATIENCE).await.expect_err("it is cut")),
            Err(error) => (Vec::new(), error),
        };
        assert!(error.is_temporary(), "{error}");
        for settled in source.settle(as_done(held.into_iter().chain(late).collect())).await {
            assert_eq!(settled.unwrap_err().error.kind(), ErrorKind::Lost);
        }
        proxy.set_cut(false);
        let mut missing: BTreeSet<u32> = (5..20).collect();
        let came = until_all(&source, &mut missing).await;
        assert!(came.iter().all(|number| *number >= 5), "what was done came again: {came:?}");
    }
}

/// Of a classic queue: a quorum queue of a lone RabbitMQ 3.10 that was killed has no leader for minutes, and the
/// broker's own log says that consuming from it timed out. Its source says so, as a temporary error.
async fn a_broker_that_crashes_mid_batch_loses_nothing(_: String) {
    let broker = OwnBroker::start("flare-rabbitmq-crash").await;
    let scratch = Scratch::new(&broker.uri, "classic").await;
    let source = open(RabbitMqConfig::new(&broker.uri), &scratch.queue).await.unwrap();
    publish(&scratch, 0..100).await;
    let mut messages = collect(&source, 50).await;
    let held = messages.split_off(30);
    assert!(source.settle(as_done(messages)).await.into_iter().all(|it| it.is_ok()));
    broker.run("kill").await;
    let away = source.receive(200, Duration::ZERO).await;
    let away = match away {
        Ok(_) => source.receive(1, PATIENCE).await.expect_err("it is dead"),
        Err(error) => error,
    };
    assert!(away.is_temporary(), "{away}");
    broker.run("start").await;
    for settled in source.settle(as_done(held)).await {
        assert_eq!(settled.unwrap_err().error.kind(), ErrorKind::Lost);
    }
    // What was done may come again: what a crash leaves of acknowledgements is the broker's matter.
    until_all(&source, &mut (30..100).collect()).await;
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("losses")
        .test(
            "a_connection_that_breaks_mid_batch_costs_receipts_only",
            a_connection_that_breaks_mid_batch_costs_receipts_only,
        )
        .test(
            "a_broker_that_crashes_mid_batch_loses_nothing",
            a_broker_that_crashes_mid_batch_loses_nothing,
        )
}
