//! Every clause that stands in a port's contract has a trial, and every trial stands for a clause.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A clause's number is letters and digits: `Q7`, `RD12`.
fn split(number: &str) -> Option<(&str, u32)> {
    let digits = number.find(|letter: char| letter.is_ascii_digit())?;
    let (letters, digits) = number.split_at(digits);
    let upper = !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_uppercase());
    upper.then_some(letters).zip(digits.parse().ok())
}

/// The sources of the ports, however deep.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the ports' sources are next door");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let nested = paths.map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    nested.flatten().filter(|path| path.extension().is_some_and(|ext| ext == "rs")).collect()
}

/// The numbers that stand as `- **Q7** …` in doc comments.
fn written(letters: &str) -> BTreeSet<u32> {
    let ports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../flare-core/src/port");
    let mut numbers = BTreeSet::new();
    for path in sources(&ports) {
        let text = std::fs::read_to_string(&path).expect("a source can be read");
        for line in text.lines().filter_map(|line| line.trim().strip_prefix("/// - **")) {
            let number = line.split_once("**").map(|(number, _)| number).and_then(split);
            if let Some((_, number)) = number.filter(|(found, _)| *found == letters) {
                assert!(numbers.insert(number), "{letters}{number} is there twice");
            }
        }
    }
    numbers
}

/// The numbers that trials are named after: `q7_…`.
fn tried<'a>(letters: &str, names: impl Iterator<Item = &'a str>) -> BTreeSet<u32> {
    let numbers = names.map(|name| {
        let prefix = name.split('_').next().map(str::to_uppercase).expect("a first part");
        split(&prefix).filter(|(found, _)| *found == letters).map(|(_, number)| number)
    });
    numbers.flatten().collect()
}

macro_rules! complete {
    ($($test:ident: $letters:literal in $clauses:expr;)*) => {
        $(
            #[test]
            fn $test() {
                let written = written($letters);
                assert!(!written.is_empty(), "no contract has clauses {}", $letters);
                assert_eq!(tried($letters, $clauses.iter().map(|clause| clause.name)), written);
            }
        )*
    };
}

complete! {
    queue: "Q" in flare_testkit::queue::CLAUSES;
    lease: "L" in flare_testkit::lease::CLAUSES;
    source: "S" in flare_testkit::source::CLAUSES;
    delivery: "D" in flare_testkit::delivery::CLAUSES;
    resources: "RE" in flare_testkit::repository::CLAUSES;
    subscriptions: "RS" in flare_testkit::repository::CLAUSES;
    documents: "RD" in flare_testkit::repository::CLAUSES;
    rows: "RR" in flare_testkit::repository::CLAUSES;
    jobs: "RJ" in flare_testkit::repository::CLAUSES;
    consumers: "RC" in flare_testkit::repository::CLAUSES;
    audit: "RA" in flare_testkit::repository::CLAUSES;
    unreadable: "RU" in flare_testkit::unreadable::CLAUSES;
    upkeep: "U" in flare_testkit::upkeep::CLAUSES;
}

/// A clause listed twice, or out of order, is a mistake of the suite's.
#[test]
fn trials_are_named_once() {
    let names = (flare_testkit::queue::CLAUSES.iter().map(|clause| clause.name))
        .chain(flare_testkit::lease::CLAUSES.iter().map(|clause| clause.name))
        .chain(flare_testkit::source::CLAUSES.iter().map(|clause| clause.name))
        .chain(flare_testkit::delivery::CLAUSES.iter().map(|clause| clause.name))
        .chain(flare_testkit::repository::CLAUSES.iter().map(|clause| clause.name))
        .chain(flare_testkit::unreadable::CLAUSES.iter().map(|clause| clause.name))
        .chain(flare_testkit::upkeep::CLAUSES.iter().map(|clause| clause.name));
    let names: Vec<_> = names.collect();
    assert_eq!(BTreeSet::from_iter(&names).len(), names.len());
}
