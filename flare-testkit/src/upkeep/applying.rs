//! U2 to U5: a step takes place once, if it is still as planned, and then nothing is left to do.

use flare_core::port::{Purpose, StepOutcome, Upkeep};
use futures::future::join_all;

use crate::Subject;

/// Callers that apply at once.
const CALLERS: usize = 4;

/// A step that was planned before the same was done for another purpose finds it done.
pub async fn u2_what_another_purpose_has_done_is_not_needed(subject: Subject<dyn Upkeep>) {
    let before = subject.planned(Purpose::Fixup).await;
    subject.finished(Purpose::Setup).await;
    let still = subject.shown().await;
    let still_planned = |id: &String| still.iter().any(|ids| ids.contains(id));
    for step in before.iter().filter(|step| !still_planned(&step.id)) {
        let outcome = subject.applied(Purpose::Fixup, step).await;
        assert_eq!(outcome, StepOutcome::NotNeeded, "{:?} was done by the setup", step.id);
    }
    assert_eq!(subject.shown().await, still);
}

/// A step that was planned from something else than what is there does not take place.
pub async fn u2_a_step_of_another_state_does_not_take_place(subject: Subject<dyn Upkeep>) {
    for purpose in Purpose::ALL {
        for mut step in subject.planned(purpose).await {
            step.id.push_str(" and more");
            subject.left_alone(purpose, &step).await;
        }
    }
}

/// What is applied again finds itself done, whatever was done since.
pub async fn u3_applying_again_is_not_needed(subject: Subject<dyn Upkeep>) {
    for purpose in Purpose::ALL {
        let steps = subject.finished(purpose).await;
        let after = subject.shown().await;
        for step in &steps {
            let outcome = subject.applied(purpose, step).await;
            assert_eq!(outcome, StepOutcome::NotNeeded, "{:?} again", step.id);
        }
        assert_eq!(subject.shown().await, after);
    }
}

/// Callers with the same plan all come through, and the plan is applied then.
pub async fn u3_several_at_once_do_no_harm(subject: Subject<dyn Upkeep>) {
    for purpose in Purpose::ALL {
        let steps = subject.planned(purpose).await;
        let callers = (0..CALLERS).map(|_| {
            let (port, steps) = (subject.port(), steps.clone());
            tokio::spawn(async move {
                for step in &steps {
                    port.apply(purpose, step, &()).await?;
                }
                Ok::<(), flare_core::Error>(())
            })
        });
        for caller in join_all(callers).await {
            caller.expect("no caller panics").expect("no caller fails because of the others");
        }
        assert_eq!(subject.ids(purpose).await, [""; 0], "{purpose} of several is complete");
    }
}

/// An applied plan leaves an empty one, and every step of it took place.
pub async fn u4_what_is_applied_is_not_planned_again(subject: Subject<dyn Upkeep>) {
    for purpose in Purpose::ALL {
        for step in subject.planned(purpose).await {
            let outcome = subject.applied(purpose, &step).await;
            assert_eq!(outcome, StepOutcome::Done, "{:?} was planned just now", step.id);
        }
        assert_eq!(subject.ids(purpose).await, [""; 0], "{purpose} leaves nothing to do");
    }
}

/// A cleanup is no reason for a setup or a fixup.
pub async fn u5_a_cleanup_removes_nothing_that_is_brought_back(subject: Subject<dyn Upkeep>) {
    subject.finished(Purpose::Setup).await;
    subject.finished(Purpose::Fixup).await;
    let [set_up, fixed, _] = subject.shown().await;
    subject.finished(Purpose::Cleanup).await;
    let [set_up_again, fixed_again, _] = subject.shown().await;
    assert_eq!(set_up_again, set_up, "a setup after the cleanup");
    assert_eq!(fixed_again, fixed, "a fixup after the cleanup");
}
