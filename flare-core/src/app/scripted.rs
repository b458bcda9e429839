//! Takes a test's script of slots granted and taken away; gives the lanes what a cluster would say.
//! No part of the interface: a host has its slots by lease.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use crate::error::Result;
use crate::model::Takeover;
use crate::ownership::{SlotChange, Term, Trust};
use crate::pipeline::context::Context;
use crate::pipeline::stage::chain;
use crate::pipeline::stop::Stop;

/// What happens to the slots of a runtime.
#[doc(hidden)]
#[derive(Debug)]
pub enum Script {
    /// They are this runtime's, under a fresh epoch.
    Grant(Vec<u32>),
    /// They are to be given up; the sender is dropped when they are.
    Release(Vec<u32>, oneshot::Sender<()>),
    /// They are another node's.
    Lose(Vec<u32>),
}

/// Plays a script until it ends or the runtime does.
pub(super) async fn follow(
    mut script: mpsc::Receiver<Script>,
    context: Arc<Context>,
    changes: mpsc::Sender<SlotChange>,
    mut stop: Stop,
) {
    loop {
        let next = tokio::select! {
            biased;
            () = stop.requested() => return,
            next = script.recv() => next,
        };
        let change = match next {
            Some(Script::Grant(slots)) => grant(&context, slots).await,
            Some(Script::Release(slots, done)) => {
                let slots = slots.into_iter().collect();
                Ok(SlotChange::Releasing { slots, until: Duration::MAX, done: Arc::new(done) })
            }
            Some(Script::Lose(slots)) => {
                Ok(SlotChange::Lost { slots: slots.into_iter().collect() })
            }
            // Whatever is held stays so.
            None => return stop.requested().await,
        };
        match change {
            Ok(change) => drop(changes.send(change).await),
            Err(error) => warn!(error = %chain(&error), "could not draw an epoch"),
        }
    }
}

async fn grant(context: &Context, slots: Vec<u32>) -> Result<SlotChange> {
    let drawn = context.repository.next_epoch().await?;
    let takeover = Takeover { epoch: drawn.epoch, at: drawn.at };
    let term = Term::new(takeover, Trust::unlimited(context.all_slots()));
    Ok(SlotChange::Granted { slots: slots.into_iter().collect(), term })
}
