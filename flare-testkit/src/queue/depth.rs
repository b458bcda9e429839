//! Q14: how much is in a queue. Approximate figures have time to settle, exact ones have none.

use flare_core::port::{Outgoing, Queue, QueueDepth, QueueName, Settlement};

use super::bench::{LONG, numbered};
use crate::Subject;

/// The depth must be this: at once, or once the queue has been idle if it is approximate.
async fn is(subject: &Subject<dyn Queue>, queue: &QueueName, expected: QueueDepth) {
    let figures = |depth: &QueueDepth| (depth.ready, depth.delayed, depth.in_flight);
    settles(subject, queue, expected, |depth| figures(depth) == figures(&expected)).await;
}

async fn settles(
    subject: &Subject<dyn Queue>,
    queue: &QueueName,
    expected: QueueDepth,
    is_right: impl Fn(&QueueDepth) -> bool,
) {
    for _ in 0..=2 * LONG {
        let depth = subject.depth(queue).await.expect("an existing queue can be counted");
        if is_right(&depth) {
            return;
        }
        assert!(depth.approximate, "{depth:?} instead of {expected:?}, and said to be exact");
        subject.pass_ticks(1).await;
    }
    panic!("the figures never settled to {expected:?}");
}

/// Messages that could be received are ready.
pub async fn q14_depth_counts_what_waits(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    is(&subject, &queue, QueueDepth::exact(0, 0, 0)).await;
    subject.put(&queue, numbered(12)).await;
    is(&subject, &queue, QueueDepth::exact(12, 0, 0)).await;
}

/// Messages whose delay has not passed are delayed. An ordered queue whose figures are approximate may
/// count them as ready: it may look at a delay only once it is that message's turn (SQS, FIFO).
pub async fn q14_depth_counts_what_is_delayed(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let delay = subject.ticks(10 * LONG).min(subject.facts().max_delay);
    subject.put(&queue, [Outgoing::new("later").delay(delay), Outgoing::new("now")]).await;
    let (ordered, expected) = (subject.facts().ordered, QueueDepth::exact(1, 1, 0));
    let unseen = |depth: &QueueDepth| {
        ordered && depth.approximate && depth.ready + depth.delayed == 2 && depth.in_flight == 0
    };
    let told = |depth: &QueueDepth| (depth.ready, depth.delayed, depth.in_flight) == (1, 1, 0);
    settles(&subject, &queue, expected, |depth| told(depth) || unseen(depth)).await;
}

/// Messages received and not settled are in flight.
pub async fn q14_depth_counts_what_is_in_flight(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, numbered(2)).await;
    let visibility = subject.ticks(10 * LONG).min(subject.facts().max_delay);
    subject.collect(&queue, 2, visibility).await;
    subject.put(&queue, [Outgoing::new("more")]).await;
    is(&subject, &queue, QueueDepth::exact(1, 0, 2)).await;
}

/// Messages settled as done are not counted.
pub async fn q14_depth_forgets_what_is_done(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("done")]).await;
    let message = subject.next(&queue, subject.long()).await;
    subject.finish(&queue, message.receipt, Settlement::Done).await;
    is(&subject, &queue, QueueDepth::exact(0, 0, 0)).await;
}
