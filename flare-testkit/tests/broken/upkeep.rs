//! An upkeep with one fault fails exactly the clause it breaks; an honest one fails none.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use flare_core::port::{Part, Purpose, Step, StepOutcome, StepProgress, Upkeep};
use flare_core::{Error, ErrorKind, Result};
use flare_testkit::upkeep::CLAUSES;
use flare_testkit::{Fixture, ScriptedUpkeep};
use tokio::task::yield_now;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    TurnsItsPlansAround,
    RepeatsItself,
    TakesWhatWasDone,
    TakesAnyState,
    DoesItAgain,
    FailsInTheCrowd,
    ForgetsTheLast,
    RemovesWhatIsUsed,
    TakesEverything,
    ShrugsAtNonsense,
    MixesPurposes,
    SaysNothing,
    GoesBackwards,
    GoesTooFar,
    WritesOver,
    RefusesWithoutWords,
    LeavesABit,
}

/// A scripted upkeep with one fault.
#[derive(Debug)]
struct Broken {
    inner: Arc<ScriptedUpkeep>,
    fault: Fault,
    plans: AtomicU32,
    busy: AtomicBool,
    taken: Mutex<HashSet<(Purpose, String)>>,
}

impl Broken {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

/// Hears the progress of a step, and passes on something else.
struct Bent<'a>(&'a dyn StepProgress, Fault);

impl StepProgress for Bent<'_> {
    fn advanced(&self, done: u64, total: Option<u64>) {
        match self.1 {
            Fault::SaysNothing => {}
            Fault::GoesBackwards => self.0.advanced(total.unwrap_or_default() - done, total),
            Fault::GoesTooFar => self.0.advanced(done + 1, total),
            _ => self.0.advanced(done, total),
        }
    }
}

#[async_trait]
impl Upkeep for Broken {
    fn part(&self) -> Part {
        self.inner.part()
    }

    fn backend(&self) -> &'static str {
        self.inner.backend()
    }

    async fn plan(&self, purpose: Purpose) -> Result<Vec<Step>> {
        let mut steps = self.inner.plan(purpose).await?;
        let turn = self.plans.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        match self.fault {
            Fault::TurnsItsPlansAround if turn => steps.reverse(),
            Fault::RepeatsItself => steps.extend(steps.first().cloned()),
            _ => {}
        }
        Ok(steps)
    }

    async fn apply(
        &self,
        purpose: Purpose,
        step: &Step,
        progress: &dyn StepProgress,
    ) -> Result<StepOutcome> {
        let first = self.taken.lock().unwrap().insert((purpose, step.id.clone()));
        let mut step = step.clone();
        if self.is(Fault::TakesAnyState) {
            step.id = step.id.trim_end_matches(" and more").to_owned();
        }
        if self.is(Fault::FailsInTheCrowd) {
            if self.busy.swap(true, Ordering::SeqCst) {
                return Err(
                    Error::new(ErrorKind::Conflict, "apply").with_detail("somebody is faster")
                );
            }
            // Long enough for the others to come by.
            for _ in 0..1_000 {
                yield_now().await;
            }
        }
        if self.is(Fault::MixesPurposes) {
            for other in Purpose::ALL.into_iter().filter(|other| *other != purpose) {
                if self.inner.plan(other).await?.contains(&step) {
                    return self.inner.apply(other, &step, progress).await;
                }
            }
        }
        let forgotten = self.is(Fault::ForgetsTheLast)
            && self.inner.plan(purpose).await?.iter().map(|step| &step.id).eq([&step.id]);
        if forgotten {
            // Whoever does it again is told that it was done.
            return Ok(if first { StepOutcome::Done } else { StepOutcome::NotNeeded });
        }
        let outcome = self.inner.apply(purpose, &step, &Bent(progress, self.fault)).await;
        self.busy.store(false, Ordering::SeqCst);
        let removed = purpose == Purpose::Cleanup && matches!(outcome, Ok(StepOutcome::Done));
        if removed && self.is(Fault::RemovesWhatIsUsed) {
            self.inner.add(Purpose::Setup, Step::create("again", "somebody removed it"));
        }
        match outcome {
            Ok(StepOutcome::NotNeeded) if self.is(Fault::TakesWhatWasDone) && first => {
                Ok(StepOutcome::Done)
            }
            Ok(StepOutcome::NotNeeded) if self.is(Fault::DoesItAgain) && !first => {
                Ok(StepOutcome::Done)
            }
            Err(_) if self.is(Fault::TakesEverything) => Ok(StepOutcome::Done),
            Err(_) if self.is(Fault::ShrugsAtNonsense) => Ok(StepOutcome::NotNeeded),
            outcome => outcome,
        }
    }

    async fn backup(&self, to: &Path, progress: &dyn StepProgress) -> Result<()> {
        let unsupported = Error::new(ErrorKind::Unsupported, "backup");
        match self.fault {
            Fault::WritesOver => {
                drop(std::fs::remove_file(to));
                self.inner.backup(to, progress).await
            }
            Fault::RefusesWithoutWords => Err(unsupported),
            Fault::LeavesABit => {
                self.inner.backup(to, progress).await?;
                Err(unsupported.with_detail("it came to nothing: use something else"))
            }
            _ => self.inner.backup(to, progress).await,
        }
    }
}

struct Scripted(Fault);

#[async_trait]
impl Fixture for Scripted {
    type Port = dyn Upkeep;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Upkeep>, ()) {
        let inner = Arc::new(ScriptedUpkeep::new(Part::Repository, "scripted"));
        let table = Step::create("table", "rows are kept there");
        inner.add(Purpose::Setup, Step::update("rows", "format 2").planned_from(1).amount(1_000));
        inner.add(Purpose::Setup, table.clone());
        inner.add(Purpose::Fixup, table);
        inner.add(Purpose::Fixup, Step::update("index", "it is wrong").planned_from("unique"));
        inner.add(Purpose::Cleanup, Step::delete("one", "it is nobody's"));
        inner.add(Purpose::Cleanup, Step::delete("other", "it is nobody's"));
        let broken = Broken {
            inner,
            fault: self.0,
            plans: AtomicU32::default(),
            busy: AtomicBool::default(),
            taken: Mutex::default(),
        };
        (Arc::new(broken), ())
    }
}

fn noticed(fault: Fault) -> Vec<&'static str> {
    crate::support::failing(CLAUSES, move || Scripted(fault)).into_iter().collect()
}

crate::support::faults! {
    an_honest_upkeep_fails_nothing: None => [];
    u1_turning_its_plans_around: TurnsItsPlansAround => ["u1"];
    u1_repeating_itself: RepeatsItself => ["u1", "u4"];
    u2_taking_what_was_done: TakesWhatWasDone => ["u2"];
    u2_taking_any_state: TakesAnyState => ["u2"];
    u3_doing_it_again: DoesItAgain => ["u3"];
    u3_failing_in_the_crowd: FailsInTheCrowd => ["u3"];
    u4_forgetting_the_last: ForgetsTheLast => ["u3", "u4"];
    u5_removing_what_is_used: RemovesWhatIsUsed => ["u5"];
    u6_taking_everything: TakesEverything => ["u2", "u6"];
    u6_shrugging_at_nonsense: ShrugsAtNonsense => ["u6"];
    u6_mixing_purposes: MixesPurposes => ["u6"];
    u7_saying_nothing: SaysNothing => ["u7"];
    u7_going_backwards: GoesBackwards => ["u7"];
    u7_going_too_far: GoesTooFar => ["u7"];
    u8_writing_over: WritesOver => ["u8"];
    u8_refusing_without_words: RefusesWithoutWords => ["u8"];
    u8_leaving_a_bit: LeavesABit => ["u8"];
}
