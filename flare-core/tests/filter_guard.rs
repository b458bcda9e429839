//! Whatever is given as a filter, and whatever it is asked about: nothing panics, and nothing takes more than
//! 50 ms of a processor or 16 MiB. Token soup, and expressions made by the grammar.
//!
//! `FLARE_FUZZ_SECONDS=600` tries it for longer, `FLARE_FUZZ_SEED` from where another run began.

#![cfg(all(feature = "filter", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "it is a test")]

use std::time::Duration;

use flare_core::filter::try_filter;
use flare_core::model::Filter;
use rustix::time::{ClockId, clock_gettime};

/// What a case may take, compiled and evaluated: 50 ms; ten times that where nothing is optimised.
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 50 });
const MEMORY: u64 = 16 * 1024 * 1024;

/// About 1 KiB each.
fn documents() -> Vec<String> {
    let list = |of: &str, count: usize| vec![of; count].join(",");
    vec![
        "{}".to_owned(),
        format!(r#"{{"a":[{}],"b":"x","c":{{"a":1}}}}"#, list("1", 480)),
        format!(r#"{{"a":"{}","b":["{}"]}}"#, "é".repeat(250), "ab".repeat(200)),
        format!(r#"{{"a":[{}],"b":true,"c":null}}"#, list(r#"{"a":1,"b":"xyz"}"#, 55)),
        format!(r#"{{"a":{}1{},"b":[[],{{}}]}}"#, "[".repeat(100), "]".repeat(100)),
    ]
}

const TOKENS: &[&str] = &[
    "document",
    "params",
    "revision",
    "x",
    "y",
    "a",
    "b",
    "c",
    ".a",
    ".b",
    "[0]",
    "['a']",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    "?",
    ":",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "!",
    " in ",
    "1",
    "0",
    "-1",
    "9223372036854775807",
    "18446744073709551615u",
    "1.5e300",
    "0x7f",
    "true",
    "false",
    "null",
    "'a'",
    "\"b\"",
    "''",
    "'''c'''",
    "r'\\'",
    "b'\\xff'",
    "'\\u00e9'",
    "'é'",
    "'",
    "\"",
    "\\",
    "`",
    "`a`",
    "@",
    "#",
    "\n",
    "// c\n",
    "has(",
    "size(",
    "string(",
    "int(",
    "double(",
    "bytes(",
    "type(",
    "timestamp(",
    "duration(",
    ".all(x,",
    ".exists(x,",
    ".map(x,",
    ".filter(x,",
    ".exists_one(y,",
    ".matches('a+')",
    ".matches('(a*)*b')",
    ".matches('\\\\w{20}')",
    ".matches(",
    ".size()",
    ".contains(",
    ".startsWith(",
    ".getHours()",
    "'2024-01-01T00:00:00Z'",
    "'-9999999h'",
    "🦀",
    "\u{0}",
    "?.a",
    "[?0]",
    "Message{",
    "google.protobuf.Timestamp",
    "optional.of(",
    "import",
    "in",
    ";",
];

fn soup(random: &mut fastrand::Rng) -> String {
    let mut text = String::new();
    let most = if random.u8(..8) == 0 { 900 } else { 24 };
    for _ in 0..random.usize(1..=most) {
        let token = TOKENS[random.usize(..TOKENS.len())];
        // The same one again and again is what nests.
        let times = if random.u8(..40) == 0 { random.usize(1..400) } else { 1 };
        for _ in 0..times {
            text.push_str(token);
        }
    }
    text
}

/// An expression that the grammar allows, if not the guard.
fn expression(random: &mut fastrand::Rng, depth: usize, element: Option<&str>) -> String {
    let below = |random: &mut fastrand::Rng| expression(random, depth.saturating_sub(1), element);
    if depth == 0 {
        let leaves = [
            "document",
            "document.a",
            "document.b",
            "document.c.a",
            "params.id",
            "1",
            "'a'",
            "true",
        ];
        return match (element, random.u8(..3)) {
            (Some(element), 0) => element.to_owned(),
            _ => leaves[random.usize(..leaves.len())].to_owned(),
        };
    }
    let binary = ["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "||", " in "];
    match random.u8(..12) {
        0..=3 => {
            let operator = binary[random.usize(..binary.len())];
            format!("({}{operator}{})", below(random), below(random))
        }
        4 => format!("!{}", below(random)),
        5 => format!("({} ? {} : {})", below(random), below(random), below(random)),
        6 => {
            let elements: Vec<_> = (0..random.usize(..6)).map(|_| below(random)).collect();
            format!("[{}]", elements.join(","))
        }
        7 => format!("{{'k':{},'l':{}}}", below(random), below(random)),
        8 => {
            let functions =
                ["size", "string", "int", "double", "bytes", "type", "timestamp", "dyn"];
            let function = functions[random.usize(..functions.len())];
            format!("{function}({})", below(random))
        }
        9 => {
            let members = ["contains", "startsWith", "endsWith"];
            format!(
                "{}.{}({})",
                below(random),
                members[random.usize(..members.len())],
                below(random)
            )
        }
        10 => {
            let patterns = ["a+", "(x|y)*z", "\\\\p{L}{1,9}", "(a|aa)+$", "[^a-z]{3}"];
            let pattern = patterns[random.usize(..patterns.len())];
            format!("{}.matches('{pattern}')", below(random))
        }
        _ => {
            let loops = ["all", "exists", "exists_one", "map", "filter"];
            let range = ["document.a", "document.b", "document", "[1,2,3]"];
            let body = expression(random, depth - 1, Some("x"));
            let range = match random.u8(..4) {
                0 => below(random),
                _ => range[random.usize(..range.len())].to_owned(),
            };
            format!("{range}.{}(x, {body})", loops[random.usize(..loops.len())])
        }
    }
}

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// What the process holds in memory, now and at most since it was last asked to forget that.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    (of("VmRSS:"), of("VmHWM:"))
}

#[test]
fn nothing_panics_nor_takes_long_nor_much() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("FLARE_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
    let seconds = Duration::from_secs(number("FLARE_FUZZ_SECONDS").unwrap_or(3));
    let mut random = fastrand::Rng::with_seed(seed);
    let documents = documents();
    let begun = processor_time();
    let (mut tried, mut compiled, mut longest, mut most) = (0_u64, 0_u64, Duration::ZERO, 0);
    while processor_time() - begun < seconds {
        let text = match random.u8(..4) {
            0 => soup(&mut random),
            _ => {
                let depth = random.usize(1..=6);
                expression(&mut random, depth, None)
            }
        };
        let Ok(filter) = Filter::new(text.as_str()) else { continue };
        let document = &documents[random.usize(..documents.len())];
        // Whoever may not forget the peak measures less, and nothing wrong.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let (before, began) = (memory().0, processor_time());
        let said = try_filter(&filter, document.as_bytes(), [("id", "1")]);
        let took = processor_time() - began;
        let held = memory().1.saturating_sub(before);
        tried += 1;
        compiled += u64::from(said.is_ok());
        assert!(took <= TIME, "seed {seed}: {took:?} for {text} on {document}");
        assert!(held <= MEMORY, "seed {seed}: {held} bytes for {text} on {document}");
        longest = longest.max(took);
        most = most.max(held);
    }
    eprintln!(
        "seed {seed}: {tried} tried, {compiled} let through, at most {longest:?} and {most} bytes"
    );
    assert!(compiled > 0 && tried > compiled, "of both kinds");
}
