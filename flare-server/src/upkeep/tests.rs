//! What people see and are asked, with stores that do as they are told.

use std::io;
use std::sync::{Arc, Mutex};

use flare_core::port::{Part, Purpose, Step, StepOutcome};
use flare_core::{Backend, Error, ErrorKind};
use flare_testkit::ScriptedUpkeep;

use super::talk::Talk;
use super::{UpkeepOptions, keep};
use crate::failure::Failure;

/// Answers every question like this, and remembers what was said.
struct Person {
    answer: &'static str,
    said: Mutex<String>,
    noted: Mutex<Vec<String>>,
}

impl Person {
    fn new(answer: &'static str) -> Self {
        Self { answer, said: Mutex::default(), noted: Mutex::default() }
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }
}

impl Talk for Person {
    fn say(&self, text: &str) {
        self.said.lock().unwrap().push_str(text);
    }

    fn note(&self, line: &str) {
        self.noted.lock().unwrap().push(line.to_owned());
    }

    fn ask(&self, question: &str) -> io::Result<String> {
        self.say(question);
        Ok(self.answer.to_owned())
    }
}

/// A repository with something to do for a setup, a queue with nothing, and no lease.
struct Stores {
    repository: Arc<ScriptedUpkeep>,
    queue: Arc<ScriptedUpkeep>,
}

impl Stores {
    fn new() -> Self {
        let repository = Arc::new(ScriptedUpkeep::new(Part::Repository, "mongodb"));
        let queue = Arc::new(ScriptedUpkeep::new(Part::Queue, "sqs"));
        let setup = |step| repository.add(Purpose::Setup, step);
        setup(Step::create("index flare.rows pending", "lag is counted by it"));
        setup(Step::update("rows", "format 2").planned_from(1).amount(1_000));
        setup(Step::delete("index flare.rows old", "nobody\u{1b}[2J reads it"));
        Self { repository, queue }
    }

    async fn keep(&self, options: &UpkeepOptions, person: &Person) -> Result<(), Failure> {
        let backend = Backend::none().upkeep(self.repository.clone()).upkeep(self.queue.clone());
        keep(&backend.caretaker(), Purpose::Setup, options, person).await
    }
}

fn yes() -> UpkeepOptions {
    UpkeepOptions { yes: true, ..UpkeepOptions::default() }
}

fn message(outcome: Result<(), Failure>) -> String {
    match outcome {
        Err(Failure::Failed { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

const SHOWN: &str = "\
repository (mongodb):
  + create  index flare.rows pending  — lag is counted by it
  ~ update  rows  — format 2 (1000 entries)
  - delete  index flare.rows old  — nobody [2J reads it
queue (sqs): nothing to set up
lease: nothing to set up

Plan: 1 to create, 1 to update, 1 to delete.
";

#[tokio::test]
async fn a_plan_is_shown_and_nothing_is_done() {
    let (stores, person) = (Stores::new(), Person::new("y"));
    stores.keep(&UpkeepOptions { plan: true, ..UpkeepOptions::default() }, &person).await.unwrap();
    assert_eq!(person.said(), SHOWN);
    assert!(stores.repository.applied().is_empty());
}

#[tokio::test]
async fn one_part_is_shown_alone() {
    let (stores, person) = (Stores::new(), Person::new("y"));
    let options = UpkeepOptions { part: Some(Part::Queue), ..UpkeepOptions::default() };
    stores.keep(&options, &person).await.unwrap();
    assert_eq!(person.said(), "queue (sqs): nothing to set up\n", "and nothing is asked");
}

#[tokio::test]
async fn whoever_agrees_has_it_done() {
    for answer in ["y\n", "yes\n", " Y \n", "YES"] {
        let (stores, person) = (Stores::new(), Person::new(answer));
        stores.keep(&UpkeepOptions::default(), &person).await.unwrap();
        let done = "
Apply these 3 steps? [y/N]   + create  index flare.rows pending  done
  ~ update  rows  done
  - delete  index flare.rows old  done

Done: 3 steps.
";
        assert_eq!(person.said(), format!("{SHOWN}{done}"));
        let noted = [250, 500, 750, 1_000].map(|n| format!("    rows: {} % ({n} of 1000)", n / 10));
        assert_eq!(*person.noted.lock().unwrap(), noted);
    }
}

#[tokio::test]
async fn whoever_does_not_agree_has_nothing_changed() {
    for answer in ["n\n", "\n", "", "yo\n", "yes please\n"] {
        let (stores, person) = (Stores::new(), Person::new(answer));
        let outcome = stores.keep(&UpkeepOptions::default(), &person).await;
        assert_eq!(message(outcome), "nothing was changed");
        assert!(stores.repository.applied().is_empty(), "{answer:?}");
    }
}

#[tokio::test]
async fn one_step_is_asked_for_as_one() {
    let (stores, person) = (Stores::new(), Person::new("n"));
    stores.queue.add(Purpose::Setup, Step::create("queue spread", "it is missing"));
    let options = UpkeepOptions { part: Some(Part::Queue), ..UpkeepOptions::default() };
    drop(stores.keep(&options, &person).await);
    assert!(person.said().ends_with("\nApply this step? [y/N] "), "{}", person.said());
}

#[tokio::test]
async fn a_failure_says_where_it_is_and_that_it_can_be_done_again() {
    let (stores, person) = (Stores::new(), Person::new(""));
    let id = "update rows, from 1";
    let down = Error::new(ErrorKind::Unavailable, "apply").with_source(io::Error::other("cut off"));
    stores.repository.answer(id, Err(down));
    let outcome = stores.keep(&yes(), &person).await;
    assert_eq!(
        message(outcome),
        "cannot update rows of the repository (mongodb): apply: unavailable: cut off; before it 1 \
         step was done, after it 1 step was not tried; running flare setup again is safe, and goes \
         on with what is left"
    );
    assert!(person.said().contains("  ~ update  rows  failed\n"), "{}", person.said());
    assert!(person.said().ends_with("\nDone: 1 step.\n"), "{}", person.said());
}

#[tokio::test]
async fn what_changed_since_the_plan_is_said() {
    /// Somebody else is at work while the question is open.
    struct Meddler(Person, Arc<ScriptedUpkeep>);

    impl Talk for Meddler {
        fn say(&self, text: &str) {
            self.0.say(text);
        }

        fn note(&self, line: &str) {
            self.0.note(line);
        }

        fn ask(&self, _question: &str) -> io::Result<String> {
            self.1.settle("update rows, from 1");
            self.1.answer("delete index flare.rows old", Ok(StepOutcome::NotNeeded));
            self.1.add(Purpose::Setup, Step::create("collection jobs", "jobs are kept there"));
            Ok("y".to_owned())
        }
    }

    let stores = Stores::new();
    let meddler = Meddler(Person::new(""), stores.repository.clone());
    let backend = Backend::none().upkeep(stores.repository.clone());
    let options = UpkeepOptions { part: Some(Part::Repository), ..UpkeepOptions::default() };
    keep(&backend.caretaker(), Purpose::Setup, &options, &meddler).await.unwrap();
    let said = meddler.0.said();
    let (_, said) = said.split_once("to delete.\n").unwrap();
    let expected = "  + create  index flare.rows pending  done
  - delete  index flare.rows old  no longer needed
  ~ update  rows  no longer needed

Done: 1 step, 2 no longer needed.

New since the plan, and not applied (run flare setup again to see and apply them):
  + create  collection jobs  — jobs are kept there; repository (mongodb)
";
    assert_eq!(said, expected);
    assert_eq!(stores.repository.applied(), ["create index flare.rows pending"]);
}

#[tokio::test]
async fn json_is_the_plan_and_after_a_yes_the_report() {
    let (stores, person) = (Stores::new(), Person::new(""));
    stores.keep(&UpkeepOptions { json: true, ..UpkeepOptions::default() }, &person).await.unwrap();
    let plan: serde_json::Value = serde_json::from_str(&person.said()).unwrap();
    assert_eq!(plan["purpose"], "setup");
    assert_eq!(plan["parts"][0]["steps"][1]["amount"], 1_000);
    assert_eq!(plan["parts"][1]["steps"], serde_json::json!([]));
    assert!(stores.repository.applied().is_empty());

    let person = Person::new("");
    stores.keep(&UpkeepOptions { json: true, ..yes() }, &person).await.unwrap();
    let report: serde_json::Value = serde_json::from_str(&person.said()).unwrap();
    let results: Vec<_> =
        report["steps"].as_array().unwrap().iter().map(|s| &s["result"]).collect();
    assert_eq!(results, ["done", "done", "done"]);
    assert_eq!(person.noted.lock().unwrap().len(), 4, "how far it is, is said beside it");
}

#[tokio::test]
async fn what_cannot_be_planned_changes_nothing_and_says_so() {
    let (stores, person) = (Stores::new(), Person::new(""));
    stores.queue.unplannable(Error::new(ErrorKind::Unavailable, "plan").with_backend("sqs"));
    let outcome = stores.keep(&yes(), &person).await;
    assert_eq!(message(outcome), "cannot plan the setup, nothing was changed");
    assert!(stores.repository.applied().is_empty());
}

#[tokio::test]
async fn however_long_a_step_is_it_is_told_in_few_lines() {
    let (stores, person) = (Stores::new(), Person::new(""));
    let follower = super::follow::Follower::new(&person, true);
    let step = Step::update("rows", "format 2");
    let advance = |done, total| {
        flare_core::upkeep::Observer::advanced(&follower, &step, done, total);
    };
    for done in 0..=100_000 {
        advance(done, Some(100_000));
    }
    assert_eq!(person.noted.lock().unwrap().len(), 20);
    person.noted.lock().unwrap().clear();
    flare_core::upkeep::Observer::started(&follower, &part(&stores).await, &step);
    for done in 0..=100_000 {
        advance(done, None);
    }
    advance(0, Some(0));
    let noted = person.noted.lock().unwrap();
    assert_eq!((noted.len(), noted[2].as_str()), (17, "    rows: 4 done"));
}

async fn part(stores: &Stores) -> flare_core::upkeep::PartPlan {
    let caretaker = Backend::none().upkeep(stores.queue.clone()).caretaker();
    caretaker.plan(Purpose::Setup, &Part::ALL).await.unwrap().parts.remove(0)
}
