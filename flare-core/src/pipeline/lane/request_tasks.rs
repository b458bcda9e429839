//! The requests of a lane that are under way, each in a task of its own; gives how they end, those together
//! that end together.

use std::collections::HashMap;

use tokio::task::{Id, JoinError, JoinSet};

use super::machine::{DeadLetterIds, Sent};
use crate::pipeline::context::Context;
use crate::port::{DeliveryOutcome, FailureKind};

/// How a request's task ended.
type EndedTask = Result<(Id, DeliveryOutcome), JoinError>;

/// Requests under way; by which numbers the machine knows them, and of how many documents they tell.
#[derive(Default)]
pub(super) struct RequestTasks {
    tasks: JoinSet<DeliveryOutcome>,
    numbers: HashMap<Id, (u64, usize)>,
}

impl RequestTasks {
    /// Makes a request that tells of so many documents.
    pub(super) fn begin(
        &mut self,
        number: u64,
        documents: usize,
        request: impl Future<Output = DeliveryOutcome> + Send + 'static,
    ) {
        self.numbers.insert(self.tasks.spawn(request).id(), (number, documents));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits for one that ends. What it gives is lost to no other wait that ends first.
    pub(super) async fn next(&mut self) -> Option<EndedTask> {
        self.tasks.join_next_with_id().await
    }

    /// What the machine is told. Whatever else is finished by now is judged, and stored, together with the
    /// first; on a busy machine a turn for other tasks finishes some more.
    pub(super) async fn ended(
        &mut self,
        first: Option<EndedTask>,
        context: &Context,
        random: &mut fastrand::Rng,
    ) -> Vec<Sent> {
        tokio::task::yield_now().await;
        let mut ended: Vec<EndedTask> = first.into_iter().collect();
        ended.extend(std::iter::from_fn(|| self.tasks.try_join_next_with_id()));
        ended.into_iter().filter_map(|it| self.report(it, context, random)).collect()
    }

    fn report(
        &mut self,
        joined: EndedTask,
        context: &Context,
        random: &mut fastrand::Rng,
    ) -> Option<Sent> {
        let (id, outcome) = joined.unwrap_or_else(|error| {
            // A transport that panics may have sent the request.
            let message = format!("the transport panicked: {error}");
            (error.id(), DeliveryOutcome::failed(FailureKind::Broken, message, true))
        });
        let (number, documents) = self.numbers.remove(&id)?;
        let letter = || context.ids.next(context.now()).into();
        let others = (1..documents).map(|_| letter()).collect();
        let dead_letters = DeadLetterIds { first: letter(), others };
        Some(Sent { number, outcome, random: random.f64(), dead_letters })
    }
}
