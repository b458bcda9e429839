//! Takes the stores; is a node of the cluster: a whole service, but for the documents it would own.

use std::error::Error;
use std::io::Read;
use std::time::Duration;

use flare_core::EventKind;
use flare_core::port::{Clock, SystemClock};
use flare_core::{Flare, NodeReport};
use tokio::sync::oneshot;

use crate::stores::Stores;

/// How often a node tells how it is.
const TELL: Duration = Duration::from_millis(500);

/// Works its share until its input ends, then hands everything over and leaves.
pub(crate) async fn run(name: &str, stores: &Stores) -> Result<(), Box<dyn Error>> {
    let (flare, runtime) = stores.flare(name).await?.build()?;
    let telling = tokio::spawn(tell(flare));
    // A service would wait for ctrl-c or SIGTERM here. This one ends with the program that started it.
    let ended = input_ends();
    runtime.run(async { drop(ended.await) }).await?;
    telling.abort();
    Ok(())
}

/// Says when there is no more input. A thread of its own, as reading it cannot be interrupted.
fn input_ends() -> oneshot::Receiver<()> {
    let (end, ended) = oneshot::channel();
    std::thread::spawn(move || {
        // Whatever is wrong with it, there is no more.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = end.send(());
    });
    ended
}

/// Prints how many lanes it works and how many notifications it has delivered, again and again.
async fn tell(flare: Flare) {
    let clock = SystemClock::new();
    let mut events = flare.events();
    let mut delivered = 0_u64;
    let mut next = clock.now() + TELL;
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(event) => {
                    delivered += u64::from(matches!(event.kind, EventKind::Delivered(_)));
                }
                None => return,
            },
            () = clock.sleep_until(next) => {
                let NodeReport { lanes, .. } = flare.node();
                // Only counted here, so that those that were missed count too.
                println!("{lanes} {}", delivered + events.missed());
                next = clock.now() + TELL;
            }
        }
    }
}
