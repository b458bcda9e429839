//! Every line of the fixture that Go itself wrote: same answer, same nanoseconds.

use flare_core::model::Layout;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    layout: String,
    value: String,
    ok: bool,
    unix_nanos: Option<String>,
}

#[test]
fn reads_every_value_as_go_does() {
    let lines = include_str!("../fixtures/go-time-layouts.jsonl");
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (number, line) in (1..).zip(lines.lines()) {
        let Line { layout, value, ok, unix_nanos } = serde_json::from_str(line).unwrap();
        let wanted: Option<i64> = unix_nanos.map(|nanos| nanos.parse().unwrap());
        assert_eq!(ok, wanted.is_some(), "line {number} contradicts itself");
        let got = Layout::parse(&layout).and_then(|layout| layout.parse_nanos(&value));
        if got.as_ref().ok() != wanted.as_ref() {
            wrong.push(format!("line {number}: {line}\n    got {got:?}"));
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(checked, 6000);
}
