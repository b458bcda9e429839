//! The calls of a queue, and what may answer them in its place.

use std::time::Duration;

use flare_core::port::{
    Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_core::{Error, Result};

use super::calls::intercepted;
use super::{Call, Hooks, Intercepted, around};

intercepted! {
    /// What may answer the calls of a queue; unless it does, they are passed on.
    QueueHooks for dyn Queue {
        /// In place of the facts.
        fn facts(&self, inner: &dyn Queue) -> QueueFacts {
            inner.facts()
        }

        /// The queue that a call reaches, in place of the one it names.
        fn reached(&self, named: &QueueName) -> QueueName {
            named.clone()
        }

        /// In place of the call.
        async fn settle(
            &self,
            inner: &dyn Queue,
            queue: &QueueName,
            settlements: Vec<(Receipt, Settlement)>,
        ) -> Vec<Result<(), Unsettled>> {
            inner.settle(queue, settlements).await
        }
    }

    Queue {
        one {
            fn create(queue: &QueueName) of queue -> ();
            fn delete(queue: &QueueName) of queue -> ();
            fn depth(queue: &QueueName) of queue -> QueueDepth;
            fn receive(queue: &QueueName, request: Receive) of queue -> Vec<Incoming>;
        }
        batch {
            fn send[queue: &QueueName](Outgoing) of queue -> ();
            fn extend[queue: &QueueName](&Receipt)[visibility: Duration] of queue -> ();
        }
        scan { fn list() -> QueueName; }
        also {
            fn facts(&self) -> QueueFacts {
                self.hooks.facts(&*self.inner)
            }

            /// A batch of a kind of its own: each answer that is an error has the receipt with it.
            async fn settle(
                &self,
                queue: &QueueName,
                settlements: Vec<(Receipt, Settlement)>,
            ) -> Vec<Result<(), Unsettled>> {
                let queue = &self.hooks.reached(queue);
                let call = Call::new("settle", settlements.len()).of(queue);
                let tokens = settlements.iter().map(|(receipt, _)| receipt.token().into());
                let tokens: Vec<Box<str>> = tokens.collect();
                let all = |error: Error| {
                    let receipts = tokens.iter().map(|token| Receipt::new(token.clone()));
                    receipts.map(|it| Err(Unsettled::new(error.clone(), it))).collect()
                };
                if let Err(error) = self.hooks.before(&call).await {
                    return all(error);
                }
                let answers = self.hooks.settle(&*self.inner, queue, settlements).await;
                match self.hooks.after(&call).await {
                    Ok(()) => answers,
                    Err(error) => all(error),
                }
            }
        }
    }
}
