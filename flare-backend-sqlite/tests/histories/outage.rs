//! Takes a history; cuts its machine's power now and then, and lets it go on on whatever the disk has.

use std::sync::Arc;
use std::time::Duration;

use flare_core::port::Clock;

use crate::MemoryBackend;
use crate::history::{History, live};

/// How long a machine takes to do anything while it starts.
const MOMENT: Duration = Duration::from_millis(300);

/// Lives one history on a machine that loses its power; panics if it breaks a promise.
pub(crate) fn run(seed: u64, log: bool) {
    let mut history = History::new(seed, log).wishing();
    history.memory.lasting();
    history.outage = Some(cut_power);
    live(history);
}

/// Nothing runs on the old stores any more. What clients took may have to be told again: the rows that said so
/// may be as they were before, and whoever is told knows it by its id. Nothing else that anybody was answered may be
/// gone, as the history goes on to check.
fn cut_power(history: &mut History) {
    let (left, lost) = history.memory.cut(&mut history.random);
    history.note(format_args!("the power goes; {lost} bytes were not on the disk"));
    let clock = history.clock.clone();
    let moment = || clock.advance_to(clock.now() + MOMENT);
    let memory = MemoryBackend::on(left, Arc::new(clock.clone()), moment);
    history.move_to(memory);
}
