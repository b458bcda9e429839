//! Random puts and deletes, right ones and wrong ones: URLs in every spelling, revisions in every form, JSON with every
//! trap that two parsers may fall into differently.

use fastrand::Rng;

/// Endpoint, field and format of each resource.
pub(super) const RESOURCES: [(&str, &str, Option<&str>); 9] = [
    ("http://h.example/int/{id}", "rev", None),
    ("http://h.example/pointer/{a}/{b}", "/meta/0/rev~1x", None),
    ("http://h.example/unix/{id}", "rev", Some("unix")),
    ("http://h.example/millis/{id}", "rev", Some("unix-ms")),
    ("http://h.example/time/{id}", "rev", Some("rfc3339")),
    ("http://h.example/layout/{id}", "rev", Some("2006-01-02")),
    ("http://h.example/{kind}/special/{id}", "rev", None),
    ("http://h.example/other/{id}", "/rev", None),
    ("http://h.example/{kind}/3", "rev", None),
];

const PATHS: [&str; 12] =
    ["int", "int", "int", "unix", "unix", "millis", "time", "time", "time", "layout", "other", "*"];
const SEGMENTS: [&str; 24] = [
    "a",
    "%2F",
    "%FF",
    "%E2%82%AC",
    "%C3",
    "%00",
    "%E2%00",
    "%41",
    "%7e",
    "%7E",
    "~",
    "*",
    "",
    ".",
    "..",
    "%2a",
    "%2A",
    "a b",
    "ä",
    "x?y",
    "x#y",
    "{x}",
    "special",
    "3",
];
const HOSTS: [&str; 8] = [
    "HTTP://h.example",
    "http://H.example",
    "http://h.example:80",
    "http://h.example:81",
    "https://h.example",
    "http://u@h.example",
    "//h.example",
    "ftp://h.example",
];
const VALUES: [&str; 31] = [
    "\"5\"",
    "\"005\"",
    "-0",
    "-1",
    "01",
    "1.0",
    "1e2",
    "\"+5\"",
    "\" 5\"",
    "\"\"",
    "\"-\"",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "\"00000000000000000000000000000000000012\"",
    "99999999999999999999999",
    "9223372036",
    "9223372037",
    "-9223372036",
    "9223372036854",
    "9223372036855",
    "null",
    "true",
    "[]",
    "{}",
    "\"\\u0035\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"5\\n\"",
    "\"٣\"",
];
/// What stands around `@`, the revision.
const DOCUMENTS: [&str; 31] = [
    r#"{ "x":{"rev":1}, "rev" : @ }"#,
    r#"{"rev":@,"rev":@}"#,
    r#"{"rev":@,"re\u0076":1}"#,
    r#"{"re\u0076":@}"#,
    r#"{"Rev":@}"#,
    r#"[@]"#,
    r#"@"#,
    r#"{"rev":@"#,
    r#"{"rev":@}{}"#,
    r#"{"rev":@} "#,
    r#"{"a\u0000b":1,"rev":@}"#,
    r#"{"x":"\u0000\u0000\\\u0000","rev":@}"#,
    r#"{"x":"\ud83d\ude00","rev":@}"#,
    r#"{"x":"\ud83d","rev":@}"#,
    r#"{"x":"\ude00\ud83d","rev":@}"#,
    r#"{"x":"\\ud83d","rev":@}"#,
    r#"{"x":"\ud83d\\\ude00","rev":@}"#,
    r#"{"\ud83d":1,"rev":@}"#,
    r#"{"x":1e400,"rev":@}"#,
    r#"{"x":1e-400,"rev":@}"#,
    r#"{"x":0e999,"rev":@}"#,
    r#"{"x":0.000e999,"rev":@}"#,
    r#"{"x":-1.5E+308,"y":"1e999","rev":@}"#,
    r#"{"x":-2e308,"rev":@}"#,
    r#"{"x":0.00001e312,"rev":@}"#,
    r#"{"x":0.00001e314,"rev":@}"#,
    "{\"x\":\"a\tb\",\"rev\":@}",
    r#"{"x":"\x","rev":@}"#,
    r#"{"x":.5,"rev":@}"#,
    r#"{'rev':@}"#,
    "",
];
const POINTED: [&str; 7] = [
    r#"{"meta":[{"rev/x":@}]}"#,
    r#"{"meta":[{"rev/x":@}]}"#,
    r#"{"meta":{"0":{"rev/x":@}}}"#,
    r#"{"meta":[{"rev/x":@}],"meta":1}"#,
    r#"{"meta":[1,{"rev/x":@}]}"#,
    r#"{"meta":[]}"#,
    r#"{"meta":[{"rev~1x":@}]}"#,
];

/// A put, or a delete if there is no content.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) url: String,
    pub(super) content: Option<String>,
    pub(super) revision: Option<i64>,
}

fn one_in(random: &mut Rng, of: u32) -> bool {
    random.u32(..of) == 0
}

fn pick<'a>(random: &mut Rng, from: &[&'a str]) -> &'a str {
    from[random.usize(..from.len())]
}

impl Case {
    /// The documents are others after a while, so that no revision is the last for long.
    pub(super) fn random(random: &mut Rng, n: u64) -> Self {
        let pointer = one_in(random, 8);
        let url = url(random, pointer, n / 400);
        if one_in(random, 4) {
            let revision = random.bool().then(|| random.i64(-2..8));
            return Self { url, content: None, revision };
        }
        let value = value(random, &url);
        let around = match (pointer, one_in(random, 4)) {
            (true, _) => pick(random, &POINTED).to_owned(),
            (false, true) if one_in(random, 8) => nested(random),
            (false, true) => pick(random, &DOCUMENTS).to_owned(),
            (false, false) => r#"{"rev":@}"#.to_owned(),
        };
        let revision = match random.u8(..10) {
            0 => value.parse().ok(),
            1 => Some(random.i64(..8)),
            _ => None,
        };
        Self { url, content: Some(around.replace('@', &value)), revision }
    }
}

fn url(random: &mut Rng, pointer: bool, page: u64) -> String {
    let host = if one_in(random, 20) { pick(random, &HOSTS) } else { "http://h.example" };
    let mut segments = vec![if pointer { "pointer" } else { pick(random, &PATHS) }.to_owned()];
    for _ in 0..if pointer || one_in(random, 10) { 2 } else { 1 } {
        let odd = one_in(random, 8);
        segments.push(if odd {
            pick(random, &SEGMENTS).to_owned()
        } else {
            format!("{page}-{}", random.u8(..6))
        });
    }
    if one_in(random, 20) {
        segments[1] = "special".to_owned();
    }
    let mut url = format!("{host}/{}", segments.join("/"));
    if one_in(random, 100) {
        url.push_str(&"a".repeat(random.usize(1_990..2_060)));
    }
    url
}

/// Mostly one that its resource can read.
fn value(random: &mut Rng, url: &str) -> String {
    if one_in(random, 6) {
        return pick(random, &VALUES).to_owned();
    }
    if url.contains("/time/") != one_in(random, 30) {
        return format!("\"{}\"", time(random));
    }
    random.i64(-2..8).to_string()
}

/// Mostly one of few, so that they meet again; now and then anything that looks like one.
fn time(random: &mut Rng) -> String {
    if !one_in(random, 3) {
        let zone = ["Z", "+00:00", "-00:00", "+01:30"];
        return format!("2024-05-01T12:30:0{}{}", random.u8(..4), pick(random, &zone));
    }
    let year =
        ["2024", "2023", "1900", "2000", "1677", "1678", "2262", "2263", "0000", "9999", "24"];
    let month = ["01", "02", "04", "09", "12", "00", "13", "1"];
    let day = ["01", "11", "12", "21", "20", "28", "29", "30", "31", "00", "32", "5"];
    let hour = ["00", "12", "23", "24", "7"];
    let minute = ["00", "12", "43", "59", "60"];
    let fraction = [
        "",
        ".5",
        ".123456789",
        ".1234567891",
        ".",
        ",5",
        ".145224193",
        ".854775807",
        ".854775808",
    ];
    let zone = ["Z", "+00:00", "-23:59", "+24:00", "+01:60", "z", "", "+0100", "-12:30"];
    let letter = ["T", "T", "T", "T", "t", " "];
    format!(
        "{}-{}-{}{}{}:{}:{}{}{}",
        pick(random, &year),
        pick(random, &month),
        pick(random, &day),
        pick(random, &letter),
        pick(random, &hour),
        pick(random, &minute),
        pick(random, &minute),
        pick(random, &fraction),
        pick(random, &zone)
    )
}

/// About as deep as is allowed, or numbers about as large.
fn nested(random: &mut Rng) -> String {
    let deep = random.usize(124..130);
    match random.u8(..3) {
        0 => format!("{{\"rev\":@,\"x\":{}{}}}", "[".repeat(deep), "]".repeat(deep)),
        1 => format!("{{\"rev\":@,\"x\":[{}]}}", vec!["{\"a\":[\"{[\"]}"; deep].join(",")),
        _ => format!("{{\"rev\":@,\"x\":{}}}", "9".repeat(random.usize(300..315))),
    }
}
