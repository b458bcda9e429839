//! Takes what commits say on the schema's channel (`NOTIFY`); has the pulse ring for the queues that they name. Nothing
//! depends on it: whatever is not heard is found by a poll.

use std::time::Duration;

use flare_core::{Error, Result};
use tracing::{debug, info, warn};

use crate::connection::Database;
use crate::pulse::Pulse;

/// Says that somebody listens: senders say something for so long.
const SAY_SO: &str = "INSERT INTO flare.listening AS l (one, until) \
     SELECT true, flare.now() + 300 * 1000000000::bigint \
     ON CONFLICT (one) DO UPDATE SET until = greatest(l.until, excluded.until)";
/// How often that is said.
const SAY_SO_EVERY: Duration = Duration::from_secs(60);
/// How long to wait before listening again, once that has failed.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Listens until a pooler is met, behind which nothing is heard.
pub(crate) async fn hear(database: &Database, pulse: &Pulse) {
    let mut pause = PAUSE;
    loop {
        let mut listened = false;
        let Err(error) = listen(database, pulse, &mut listened).await else {
            return say_pooled();
        };
        if listened {
            pause = PAUSE;
        }
        say_lost(&error, listened || pause == PAUSE);
        database.clock.sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Listens for as long as the connection lasts; comes to an end without an error where there is nothing to be heard.
async fn listen(database: &Database, pulse: &Pulse, listened: &mut bool) -> Result<()> {
    let Some(mut channel) = database.listen().await? else { return Ok(()) };
    let heard = |said: &str| pulse.hear(said);
    channel.run(SAY_SO, &heard).await?;
    *listened = true;
    info!("listens for what other processes send");
    // What was sent before is not said again.
    pulse.ring_all();
    loop {
        channel.hear(SAY_SO_EVERY, &heard).await?;
        channel.run(SAY_SO, &heard).await?;
    }
}

/// Says why nothing is heard.
pub(crate) fn say_pooled() {
    warn!(
        "notify has no effect here: a pooler may be in between, and hands out connections that do not listen; \
         what other processes send is found by polling"
    );
}

fn say_lost(error: &Error, is_new: bool) {
    if is_new {
        warn!(%error, "does not listen for what other processes send, which is found by polling until it does again");
    } else {
        debug!(%error, "could not listen, will retry");
    }
}
