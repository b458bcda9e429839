//! What was planned is applied if it is still planned, in its order; nothing else is.

use std::sync::{Arc, Mutex};

use flare_backend_memory::MemoryBackend;
use flare_core::port::{Part, Purpose, Queue, Step, StepKind, StepOutcome};
use flare_core::upkeep::{Caretaker, Observer, PartPlan, Plan, Report, StepResult};
use flare_core::{Backend, Error, ErrorKind};
use flare_testkit::ScriptedUpkeep;

/// A repository and a queue, each with something to do.
struct House {
    repository: Arc<ScriptedUpkeep>,
    queue: Arc<ScriptedUpkeep>,
    caretaker: Caretaker,
}

impl House {
    fn new() -> Self {
        let repository = Arc::new(ScriptedUpkeep::new(Part::Repository, "mongodb"));
        let queue = Arc::new(ScriptedUpkeep::new(Part::Queue, "sqs"));
        for name in ["rows", "jobs"] {
            repository.add(Purpose::Setup, create(name));
        }
        queue.add(Purpose::Setup, create("spread"));
        // Brought the other way round than they are to be kept.
        let backend = Backend::none().upkeep(queue.clone()).upkeep(repository.clone());
        Self { repository, queue, caretaker: backend.caretaker() }
    }

    async fn plan(&self) -> Plan {
        self.caretaker.plan(Purpose::Setup, &Part::ALL).await.unwrap()
    }

    async fn apply(&self, plan: &Plan) -> Report {
        self.caretaker.apply(plan, &()).await.unwrap()
    }
}

fn create(name: &str) -> Step {
    Step::create(name, "it is missing")
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.steps().map(|(_, step)| step.id.as_str()).collect()
}

/// What became of each step, in short.
fn results(report: &Report) -> Vec<String> {
    let short = |result: &StepResult| match result {
        StepResult::Failed { error } => format!("failed: {error}"),
        result => format!("{result:?}"),
    };
    report.steps.iter().map(|s| format!("{}: {}", s.step.subject, short(&s.result))).collect()
}

#[tokio::test]
async fn a_plan_has_the_parts_in_their_order() {
    let house = House::new();
    let plan = house.plan().await;
    assert_eq!(ids(&plan), ["create rows", "create jobs", "create spread"]);
    let parts: Vec<_> = plan.parts.iter().map(|part| (part.part, part.backend)).collect();
    assert_eq!(parts, [(Part::Repository, "mongodb"), (Part::Queue, "sqs")]);
    assert_eq!((plan.len(), plan.is_empty()), (3, false));
    assert_eq!((plan.count(StepKind::Create), plan.count(StepKind::Delete)), (3, 0));
    assert!(house.repository.applied().is_empty(), "a plan changes nothing");
}

#[tokio::test]
async fn only_the_parts_that_were_named_are_looked_at() {
    let house = House::new();
    house.repository.unplannable(Error::new(ErrorKind::Unavailable, "plan"));
    let plan = house.caretaker.plan(Purpose::Setup, &[Part::Queue]).await.unwrap();
    assert_eq!(ids(&plan), ["create spread"]);
    assert_eq!(results(&house.apply(&plan).await), ["spread: Done"]);
    let nothing = house.caretaker.plan(Purpose::Setup, &[Part::Lease]).await.unwrap();
    assert!(nothing.is_empty() && nothing.parts.is_empty());
}

#[tokio::test]
async fn what_is_applied_is_done_in_the_order_of_the_plan() {
    let house = House::new();
    let report = house.apply(&house.plan().await).await;
    assert_eq!(results(&report), ["rows: Done", "jobs: Done", "spread: Done"]);
    assert_eq!((report.done(), report.failure().is_none()), (3, true));
    assert_eq!(house.repository.applied(), ["create rows", "create jobs"]);
    assert!(house.plan().await.is_empty());
}

#[tokio::test]
async fn a_step_that_is_no_longer_planned_is_not_tried() {
    let house = House::new();
    let plan = house.plan().await;
    house.repository.settle("create rows");
    let report = house.apply(&plan).await;
    assert_eq!(results(&report), ["rows: NoLongerPlanned", "jobs: Done", "spread: Done"]);
    assert_eq!(house.repository.applied(), ["create jobs"]);
}

#[tokio::test]
async fn a_step_that_nobody_has_seen_is_reported_and_not_taken() {
    let house = House::new();
    let plan = house.plan().await;
    house.queue.add(Purpose::Setup, create("partition"));
    house.queue.add(Purpose::Cleanup, Step::delete("lane", "another purpose's is none of this"));
    let report = house.apply(&plan).await;
    assert_eq!(results(&report).last().unwrap(), "partition: New");
    assert_eq!((report.steps.len(), report.done()), (4, 3));
    assert_eq!(house.queue.applied(), ["create spread"]);
    assert_eq!(ids(&house.plan().await), ["create partition"]);
}

#[tokio::test]
async fn the_same_step_from_another_state_is_another_step() {
    let house = House::new();
    let from = |state: &str| Step::update("index", "it is wrong").planned_from(state);
    house.queue.add(Purpose::Fixup, from("a"));
    let plan = house.caretaker.plan(Purpose::Fixup, &Part::ALL).await.unwrap();
    house.queue.settle(&from("a").id);
    house.queue.add(Purpose::Fixup, from("b"));
    assert_eq!(results(&house.apply(&plan).await), ["index: NoLongerPlanned", "index: New"]);
    assert!(house.queue.applied().is_empty());
}

#[tokio::test]
async fn a_step_that_is_found_done_is_no_failure() {
    let house = House::new();
    house.repository.answer("create rows", Ok(StepOutcome::NotNeeded));
    let report = house.apply(&house.plan().await).await;
    assert_eq!(results(&report), ["rows: NotNeeded", "jobs: Done", "spread: Done"]);
}

#[tokio::test]
async fn the_first_failure_ends_it_and_doing_it_again_goes_on() {
    let house = House::new();
    let plan = house.plan().await;
    let down = Error::new(ErrorKind::Unavailable, "create").with_backend("mongodb");
    house.repository.answer("create jobs", Err(down));
    let report = house.apply(&plan).await;
    let expected =
        ["rows: Done", "jobs: failed: create (mongodb): unavailable", "spread: NotTried"];
    assert_eq!(results(&report), expected);
    let (step, error) = report.failure().unwrap();
    assert_eq!((step.step.subject.as_str(), error.kind()), ("jobs", ErrorKind::Unavailable));
    assert!(house.queue.applied().is_empty(), "nothing after it is tried");

    house.repository.answer("create jobs", Ok(StepOutcome::NotNeeded));
    let again = house.apply(&plan).await;
    assert_eq!(results(&again), ["rows: NoLongerPlanned", "jobs: NotNeeded", "spread: Done"]);
}

#[tokio::test]
async fn what_cannot_be_planned_again_changes_nothing() {
    let house = House::new();
    let plan = house.plan().await;
    house.queue.unplannable(Error::new(ErrorKind::Unavailable, "plan").with_backend("sqs"));
    let error = house.caretaker.apply(&plan, &()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(house.repository.applied().is_empty());
}

#[tokio::test]
async fn two_that_keep_the_same_part_are_shown_as_one() {
    let (one, other) = (
        Arc::new(ScriptedUpkeep::new(Part::Queue, "mongodb")),
        Arc::new(ScriptedUpkeep::new(Part::Queue, "mongodb")),
    );
    one.add(Purpose::Setup, create("collection"));
    other.add(Purpose::Setup, create("spread"));
    let caretaker = Backend::none().upkeep(one.clone()).upkeep(other.clone()).caretaker();
    let plan = caretaker.plan(Purpose::Setup, &Part::ALL).await.unwrap();
    assert_eq!(plan.parts.len(), 1);
    assert_eq!(ids(&plan), ["create collection", "create spread"]);
    assert_eq!(caretaker.apply(&plan, &()).await.unwrap().done(), 2);
    assert_eq!((one.applied().len(), other.applied().len()), (1, 1));
}

#[tokio::test]
async fn a_part_of_another_backend_brings_its_own_upkeep_and_no_other() {
    let backend = |name| {
        Part::ALL.into_iter().fold(Backend::from(MemoryBackend::new()), |backend, part| {
            backend.upkeep(Arc::new(ScriptedUpkeep::new(part, name)))
        })
    };
    let (one, other) = (backend("one"), backend("other"));
    let mixed = one.clone().with(Part::Queue, &other);
    let same = |a: &Arc<dyn Queue>, b: &Arc<dyn Queue>| Arc::ptr_eq(a, b);
    assert!(mixed.queue.as_ref().zip(other.queue.as_ref()).is_some_and(|(a, b)| same(a, b)));
    let plan = mixed.caretaker().plan(Purpose::Setup, &Part::ALL).await.unwrap();
    let parts = |part| plan.parts.iter().filter(move |kept| kept.part == part);
    let names = |part| parts(part).map(|kept| kept.backend).collect::<Vec<_>>();
    assert_eq!(names(Part::Repository), ["memory", "one"]);
    assert_eq!(names(Part::Queue), ["memory", "other"]);
    assert_eq!(names(Part::Lease), ["memory", "one"]);
    assert!(one.with(Part::Queue, &Backend::none()).queue.is_none());
}

#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Observer for Diary {
    fn started(&self, part: &PartPlan, step: &Step) {
        self.note(format!("{} ({}): {} starts", part.part, part.backend, step.subject));
    }

    fn advanced(&self, step: &Step, done: u64, total: Option<u64>) {
        self.note(format!("{}: {done} of {}", step.subject, total.unwrap()));
    }

    fn ended(&self, step: &Step, result: &StepResult) {
        self.note(format!("{}: {result:?}", step.subject));
    }
}

#[tokio::test]
async fn an_observer_follows_what_is_tried() {
    let upkeep = Arc::new(ScriptedUpkeep::new(Part::Repository, "mongodb"));
    upkeep.add(Purpose::Setup, create("gone"));
    upkeep.add(Purpose::Setup, Step::update("rows", "format 2").amount(8));
    let caretaker = Backend::none().upkeep(upkeep.clone()).caretaker();
    let plan = caretaker.plan(Purpose::Setup, &Part::ALL).await.unwrap();
    upkeep.settle("create gone");
    let diary = Diary::default();
    caretaker.apply(&plan, &diary).await.unwrap();
    let expected = [
        "repository (mongodb): rows starts",
        "rows: 2 of 8",
        "rows: 4 of 8",
        "rows: 6 of 8",
        "rows: 8 of 8",
        "rows: Done",
    ];
    assert_eq!(diary.0.into_inner().unwrap(), expected);
}

#[tokio::test]
async fn plans_and_reports_are_objects_in_json() {
    let house = House::new();
    let plan = house.plan().await;
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["purpose"], "setup");
    let queue = &json["parts"][1];
    assert_eq!((&queue["part"], &queue["backend"]), (&"queue".into(), &"sqs".into()));
    assert_eq!(queue["steps"][0]["id"], "create spread");

    let down =
        Error::new(ErrorKind::Unavailable, "create").with_source(std::io::Error::other("cut"));
    house.repository.answer("create rows", Err(down));
    let report = serde_json::to_value(house.apply(&plan).await).unwrap();
    let expected = serde_json::json!({
        "part": "repository",
        "backend": "mongodb",
        "step": { "id": "create rows", "kind": "create", "subject": "rows", "reason": "it is missing" },
        "result": "failed",
        "error": "create: unavailable: cut",
    });
    assert_eq!(report["steps"][0], expected);
    assert_eq!(report["steps"][1]["result"], "notTried");
}
