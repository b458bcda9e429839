//! U6: what was not planned does not take place.

use flare_core::ErrorKind;
use flare_core::port::{Purpose, Step, Upkeep};

use crate::Subject;

/// A step that no backend ever planned is invalid.
pub async fn u6_a_step_of_nobody_s_is_refused(subject: Subject<dyn Upkeep>) {
    let before = subject.shown().await;
    let nameless = {
        let mut step = Step::create("something", "it has no id");
        step.id.clear();
        step
    };
    for step in [
        Step::create("something of nobody's", "nobody planned it"),
        Step::update("something of nobody's", "nobody planned it").planned_from("nowhere"),
        Step::delete("everything", "nobody planned it"),
        nameless,
    ] {
        for purpose in Purpose::ALL {
            let refused = match subject.apply(purpose, &step, &()).await {
                Err(error) => error.kind(),
                Ok(outcome) => panic!("{purpose} of {:?} was {outcome:?}", step.id),
            };
            assert_eq!(refused, ErrorKind::Invalid, "{purpose} of {:?}", step.id);
        }
    }
    assert_eq!(subject.shown().await, before);
}

/// Removing and bringing back are not mixed up: a step is taken for the purpose it was planned for.
pub async fn u6_a_step_of_another_purpose_does_not_take_place(subject: Subject<dyn Upkeep>) {
    for planned_for in Purpose::ALL {
        for purpose in Purpose::ALL.into_iter().filter(|purpose| *purpose != planned_for) {
            let own = subject.ids(purpose).await;
            let steps = subject.planned(planned_for).await;
            for step in steps.iter().filter(|step| !own.contains(&step.id)) {
                subject.left_alone(purpose, step).await;
            }
        }
    }
}
