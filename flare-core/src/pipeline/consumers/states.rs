//! Takes ids of consumers; gives what their owners stored of them last. One that cannot be read is no other's cost.

use std::collections::HashMap;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::model::consumer::ConsumerRates;
use crate::model::{ConsumerId, ConsumerState, Timestamp};
use crate::pipeline::context::Context;

/// How long the rates hold that an owner stored last.
const RATES_HOLD: Duration = Duration::from_secs(10);

/// What is stored of consumers; nothing for those of which nothing is.
pub(crate) async fn read_states(
    context: &Context,
    ids: &[ConsumerId],
) -> Result<HashMap<ConsumerId, ConsumerState>> {
    let mut states = HashMap::with_capacity(ids.len());
    for batch in ids.chunks(context.batch_limit()) {
        match read_stored(context, batch, &mut states).await {
            // Which of them it is, the store does not say.
            Err(error) if error.unreadable().is_some() => {
                for id in batch {
                    let read = read_stored(context, std::slice::from_ref(id), &mut states).await;
                    if let Err(error) = read {
                        states.insert(*id, unread_state(context, error)?);
                    }
                }
            }
            read => read?,
        }
    }
    let now = context.time().await?;
    for state in states.values_mut() {
        // An owner writes every second while there is a rate to tell: one that has ended tells none.
        if now.since(Timestamp::from_unix_nanos(state.stored_at)) > RATES_HOLD {
            state.rates = ConsumerRates::default();
        }
    }
    Ok(states)
}

async fn read_stored(
    context: &Context,
    ids: &[ConsumerId],
    states: &mut HashMap<ConsumerId, ConsumerState>,
) -> Result<()> {
    let stored = context.repository.consumer_states(ids.to_vec()).await?;
    states.extend(stored.into_iter().map(|(id, _, state)| (id, state)));
    Ok(())
}

/// What is shown in place of a state that cannot be read: who works the consumer cannot either, and waits.
fn unread_state(context: &Context, error: Error) -> Result<ConsumerState> {
    let Some(unreadable) = error.unreadable() else { return Err(error) };
    context.note_unreadable(unreadable);
    let last_error = format!(
        "what its owner stored of it cannot be read, so nothing is pulled: {error}; deleted and created again it \
         begins where its settings say"
    );
    Ok(ConsumerState { last_error: Some(last_error), ..ConsumerState::default() })
}
