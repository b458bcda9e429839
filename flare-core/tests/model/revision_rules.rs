//! Every rule of `change` and of revisions, each under its name.

use flare_core::model::{ChangeFormat, ChangeRule, Revision};

fn change(field: &str, format: Option<&str>) -> ChangeRule {
    ChangeRule::new(field, format)
        .unwrap_or_else(|invalid| panic!("{field:?} {format:?}: {invalid}"))
}

/// Each document must hold the revision beside it.
fn reads(change: &ChangeRule, table: &[(&str, i64)]) {
    for (document, revision) in table {
        assert_eq!(change.read(document.as_bytes()), Ok(Revision::new(*revision)), "{document}");
    }
}

/// Each document must be refused under this field, with a reason that contains the text beside it.
fn refuses(change: &ChangeRule, field: &str, table: &[(&str, &str)]) {
    for (document, part) in table {
        match change.read(document.as_bytes()) {
            Err(invalid) => {
                assert_eq!(invalid.field(), field, "{document}: {invalid}");
                assert!(invalid.reason().contains(part), "{document}: {invalid}");
            }
            Ok(revision) => panic!("{document} is {revision}"),
        }
    }
}

#[test]
fn a_field_is_a_key_or_a_pointer() {
    for field in ["rev", "a.b", " ", "é", "a/b", "~", "/", "/a", "/a/0/b", "/a~0b/c~1d", "//", "/-"]
    {
        assert_eq!(change(field, None).field().as_str(), field);
    }
    for (field, part) in [
        ("", "must not be empty"),
        ("/a~", "after ~"),
        ("/~2", "after ~"),
        ("/a~b/c", "after ~"),
        ("/a/~", "after ~"),
    ] {
        let invalid = ChangeRule::new(field, None).unwrap_err();
        assert_eq!(invalid.field(), "change.field", "{field:?}");
        assert!(invalid.reason().contains(part), "{field:?}: {invalid}");
    }
}

#[test]
fn a_format_is_a_name_or_a_layout() {
    assert_eq!(change("f", None).format(), &ChangeFormat::Integer);
    assert_eq!(change("f", Some("rfc3339")).format(), &ChangeFormat::Rfc3339);
    assert_eq!(change("f", Some("unix")).format(), &ChangeFormat::Unix);
    assert_eq!(change("f", Some("unix-ms")).format(), &ChangeFormat::UnixMillis);
    assert_eq!(change("f", Some("2006-01-02")).format().as_str(), Some("2006-01-02"));
    for (format, part) in [
        ("", "no date or time element"),
        ("yyyy", "no date or time element"),
        ("Z07:00", "no date or time element"),
        ("unix-us", "no date or time element"),
        ("RFC3339", "lower case: rfc3339"),
        ("Unix", "lower case: unix"),
        (&"2006".repeat(65), "260 bytes"),
    ] {
        let invalid = ChangeRule::new("f", Some(format)).unwrap_err();
        assert_eq!(invalid.field(), "change.format", "{format:?}");
        assert!(invalid.reason().contains(part), "{format:?}: {invalid}");
    }
}

#[test]
fn an_integer_is_taken_exactly() {
    reads(
        &change("rev", None),
        &[
            (r#"{"rev":0}"#, 0),
            (r#"{"rev":-0}"#, 0),
            (r#" { "a" : [1,{"rev":9}] , "rev" : -7 , "b" : null } "#, -7),
            (r#"{"rev":9007199254740993}"#, 9_007_199_254_740_993),
            (r#"{"rev":9223372036854775807}"#, i64::MAX),
            (r#"{"rev":-9223372036854775808}"#, i64::MIN),
            ("{\"\\u0072ev\":5}", 5),
        ],
    );
}

#[test]
fn a_string_may_hold_a_decimal_integer() {
    reads(
        &change("rev", None),
        &[
            (r#"{"rev":"12"}"#, 12),
            (r#"{"rev":"-12"}"#, -12),
            (r#"{"rev":"007"}"#, 7),
            (r#"{"rev":"-0"}"#, 0),
            (r#"{"rev":"\u0031\u0032"}"#, 12),
            (r#"{"rev":"9223372036854775807"}"#, i64::MAX),
            (r#"{"rev":"00000000000000000000000000000001"}"#, 1),
        ],
    );
    let no = "not a decimal integer";
    refuses(
        &change("rev", None),
        "rev",
        &[
            (r#"{"rev":""}"#, no),
            (r#"{"rev":"-"}"#, no),
            (r#"{"rev":"+12"}"#, no),
            (r#"{"rev":" 12"}"#, no),
            (r#"{"rev":"12 "}"#, no),
            (r#"{"rev":"1.0"}"#, no),
            (r#"{"rev":"1e3"}"#, no),
            (r#"{"rev":"0x1"}"#, no),
            (r#"{"rev":"1_000"}"#, no),
            (r#"{"rev":"--1"}"#, no),
            (r#"{"rev":"١"}"#, no),
            (r#"{"rev":"\ud800"}"#, "valid Unicode"),
        ],
    );
}

#[test]
fn fractions_are_refused() {
    let part = "must be an integer";
    for format in [None, Some("unix"), Some("unix-ms")] {
        refuses(
            &change("rev", format),
            "rev",
            &[
                (r#"{"rev":1.0}"#, part),
                (r#"{"rev":1.5}"#, part),
                (r#"{"rev":1e3}"#, part),
                (r#"{"rev":1E3}"#, part),
                (r#"{"rev":-1e-3}"#, part),
                (r#"{"rev":1e999}"#, part),
            ],
        );
    }
}

#[test]
fn what_64_bits_do_not_hold_is_refused() {
    let part = "out of range";
    refuses(
        &change("rev", None),
        "rev",
        &[
            (r#"{"rev":9223372036854775808}"#, part),
            (r#"{"rev":-9223372036854775809}"#, part),
            (r#"{"rev":18446744073709551616}"#, part),
            (r#"{"rev":"9223372036854775808"}"#, part),
        ],
    );
    let long = format!(r#"{{"rev":{}}}"#, "9".repeat(10_000));
    let invalid = change("rev", None).read(long.as_bytes()).unwrap_err();
    assert!(invalid.reason().contains(part) && invalid.reason().len() < 200, "{invalid}");
}

#[test]
fn other_kinds_of_value_are_refused() {
    let kinds = [
        (r#"{"rev":null}"#, "found null"),
        (r#"{"rev":true}"#, "found a boolean"),
        (r#"{"rev":false}"#, "found a boolean"),
        (r#"{"rev":[1]}"#, "found an array"),
        (r#"{"rev":{"rev":1}}"#, "found an object"),
    ];
    for format in [None, Some("unix"), Some("unix-ms"), Some("rfc3339"), Some("2006-01-02")] {
        refuses(&change("rev", format), "rev", &kinds);
    }
}

#[test]
fn a_missing_field_is_refused() {
    let part = "is missing";
    refuses(&change("rev", None), "rev", &[("{}", part), (r#"{"Rev":1,"a":{"rev":2}}"#, part)]);
    refuses(
        &change("/meta/rev", None),
        "/meta/rev",
        &[
            ("{}", part),
            (r#"{"meta":{}}"#, part),
            (r#"{"meta":7}"#, part),
            (r#"{"meta":null}"#, part),
            (r#"{"meta":"rev"}"#, part),
            (r#"{"meta":[{"rev":1}]}"#, part),
            (r#"{"/meta/rev":1}"#, part),
            (r#"{"rev":1}"#, part),
        ],
    );
}

#[test]
fn a_repeated_field_is_refused() {
    let part = "is repeated";
    refuses(
        &change("rev", None),
        "rev",
        &[
            (r#"{"rev":1,"rev":2}"#, part),
            (r#"{"rev":1,"rev":1}"#, part),
            (r#"{"rev":1,"a":0,"rev":null,"rev":[]}"#, part),
            (r#"{"rev":null,"rev":1}"#, part),
            ("{\"rev\":1,\"\\u0072ev\":1}", part),
        ],
    );
    refuses(
        &change("/meta/rev", None),
        "/meta/rev",
        &[
            (r#"{"meta":{"rev":1,"rev":2}}"#, part),
            (r#"{"meta":{"rev":1},"meta":{}}"#, part),
            (r#"{"meta":{},"meta":{"rev":1}}"#, part),
            (r#"{"meta":5,"meta":{"rev":1}}"#, part),
        ],
    );
    // Elsewhere a repeated key is none of a revision's business.
    reads(&change("rev", None), &[(r#"{"a":1,"a":2,"rev":3,"b":{"rev":1,"rev":2}}"#, 3)]);
    reads(&change("/a/1/r", None), &[(r#"{"a":[{"r":1,"r":1},{"r":2}]}"#, 2)]);
}

#[test]
fn a_pointer_leads_through_objects_and_arrays() {
    for (field, document) in [
        ("/rev", r#"{"rev":7}"#),
        ("/meta/rev", r#"{"rev":1,"meta":{"a":2,"rev":7,"b":{"rev":3}}}"#),
        ("/v/0/rev", r#"{"v":[{"rev":7},{"rev":8}]}"#),
        ("/v/2", r#"{"v":[1,[2],7,{"x":1}]}"#),
        ("/v/0/rev", r#"{"v":{"0":{"rev":7}}}"#),
        ("/v/10", r#"{"v":[0,1,2,3,4,5,6,7,8,9,7]}"#),
        ("/", r#"{"":7}"#),
        ("//", r#"{"":{"":7}}"#),
        ("/a~1b/c~0d", r#"{"a/b":{"c~d":7}}"#),
        ("/~01", r#"{"~1":7}"#),
        ("/-", r#"{"-":7}"#),
    ] {
        reads(&change(field, None), &[(document, 7)]);
    }
    for (field, document) in [
        ("/v/2", r#"{"v":[1,2]}"#),
        ("/v/01", r#"{"v":[1,2]}"#),
        ("/v/-", r#"{"v":[1,2]}"#),
        ("/v/+1", r#"{"v":[1,2]}"#),
        ("/v/99999999999999999999999", r#"{"v":[1,2]}"#),
        ("/v/rev", r#"{"v":[1,2]}"#),
    ] {
        refuses(&change(field, None), field, &[(document, "is missing")]);
    }
}

#[test]
fn a_document_is_one_object() {
    let malformed = "not well-formed JSON";
    refuses(
        &change("rev", None),
        "document",
        &[
            ("", "found nothing"),
            (" \n", "found nothing"),
            ("[]", "must be a JSON object, found an array"),
            (r#""rev""#, "found a string"),
            ("1", "found a number"),
            ("-1", "found a number"),
            ("true", "found a boolean"),
            ("null", "found null"),
            ("rev", malformed),
            ("{", malformed),
            (r#"{"rev":1"#, malformed),
            (r#"{"rev":1,}"#, malformed),
            (r#"{"rev":01}"#, malformed),
            (r#"{"rev":+1}"#, malformed),
            (r#"{"rev":-}"#, malformed),
            (r#"{"rev":1}{"#, malformed),
            (r#"{"rev":1} x"#, malformed),
            (r#"{"rev":1,"a":[}"#, malformed),
            (r#"{"rev":1,"a":"\x"}"#, malformed),
            (r#"{"rev":1,"a":"\ud800"}"#, malformed),
            (r#"{"rev":1,"a":tru}"#, malformed),
            (r#"{"rev":1,a:1}"#, malformed),
            (r#"{"rev":1,2:1}"#, malformed),
            ("{\"rev\":1,\"a\":\"\n\"}", malformed),
            ("\u{feff}{\"rev\":1}", malformed),
        ],
    );
    let invalid = change("rev", None).read(b"{\"rev\":1,\"a\":\"\xff\"}").unwrap_err();
    assert_eq!(invalid.field(), "document");
    assert!(invalid.reason().contains("utf-8"), "{invalid}");
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        for depth in [128, 100_000] {
            let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let document = format!(r#"{{"rev":1,"a":{nested}}}"#);
            refuses(&change("rev", None), "document", &[(&document, "recursion limit")]);
            let document = format!(r#"{{"rev":{nested}}}"#);
            refuses(&change("rev", None), "rev", &[(&document, "found an")]);
        }
    }
    let path = "/a".repeat(5_000);
    let document = format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
    refuses(&change(&path, None), "document", &[(&document, "recursion limit")]);
}

#[test]
fn unix_seconds_and_milliseconds_are_scaled() {
    reads(
        &change("at", Some("unix")),
        &[
            (r#"{"at":1714559400}"#, 1_714_559_400_000_000_000),
            (r#"{"at":"-1"}"#, -1_000_000_000),
            (r#"{"at":9223372036}"#, 9_223_372_036_000_000_000),
        ],
    );
    reads(
        &change("at", Some("unix-ms")),
        &[
            (r#"{"at":1714559400123}"#, 1_714_559_400_123_000_000),
            (r#"{"at":"1714559400123"}"#, 1_714_559_400_123_000_000),
            (r#"{"at":-9223372036854}"#, -9_223_372_036_854_000_000),
        ],
    );
    let part = "out of range";
    let seconds = [(r#"{"at":9223372037}"#, part), (r#"{"at":"-9223372037"}"#, part)];
    refuses(&change("at", Some("unix")), "at", &seconds);
    let millis = [(r#"{"at":9223372036855}"#, part), (r#"{"at":99999999999999999999}"#, part)];
    refuses(&change("at", Some("unix-ms")), "at", &millis);
    let text = [(r#"{"at":"2024-05-01T12:30:00Z"}"#, "not a decimal integer")];
    refuses(&change("at", Some("unix")), "at", &text);
}

#[test]
fn a_layout_takes_strings_only() {
    let layout = change("at", Some("Jan _2 2006 15:04:05 -0700"));
    reads(
        &layout,
        &[
            (r#"{"at":"Feb  4 2010 21:00:57 -0800"}"#, 1_265_346_057_000_000_000),
            // Equal instants are equal.
            (r#"{"at":"Feb 05 2010 05:00:57 +0000"}"#, 1_265_346_057_000_000_000),
            (r#"{"at":"Feb 05 2010 05:00:57.5 \u002b0000"}"#, 1_265_346_057_500_000_000),
        ],
    );
    refuses(
        &layout,
        "at",
        &[
            (r#"{"at":1265346057}"#, "must be a string, found a number"),
            (r#"{"at":-1}"#, "must be a string, found a number"),
            (r#"{"at":"1265346057"}"#, "no month (Jan)"),
            (r#"{"at":""}"#, "no month"),
            (r#"{"at":"Feb 30 2010 21:00:57 -0800"}"#, "day out of range"),
            (r#"{"at":"Feb 04 1066 21:00:57 -0800"}"#, "out of range"),
        ],
    );
    refuses(
        &change("/t/0", Some("15:04")),
        "/t/0",
        &[(r#"{"t":["12:61"]}"#, "minute out of range")],
    );
    let zone = change("at", Some("2006-01-02 MST"));
    refuses(&zone, "at", &[(r#"{"at":"2024-05-01 CET"}"#, "neither UTC nor GMT")]);
}

#[test]
fn rfc3339_is_strict() {
    let rfc3339 = change("at", Some("rfc3339"));
    let at = 1_714_559_400_000_000_000;
    reads(
        &rfc3339,
        &[
            (r#"{"at":"2024-05-01T10:30:00Z"}"#, at),
            (r#"{"at":"2024-05-01T12:30:00+02:00"}"#, at),
            (r#"{"at":"2024-05-01T10:30:00-00:00"}"#, at),
            (r#"{"at":"2024-05-01T10:30:00.000000001Z"}"#, at + 1),
            (r#"{"at":"2024-05-01T10:30:00.0000000019Z"}"#, at + 1),
            (r#"{"at":"2024-05-02T10:29:00+23:59"}"#, at),
        ],
    );
    refuses(
        &rfc3339,
        "at",
        &[
            (r#"{"at":1714559400}"#, "must be a string, found a number"),
            (r#"{"at":"2024-05-01"}"#, "expected \"T\""),
            (r#"{"at":"2024-05-01t10:30:00Z"}"#, "expected \"T\""),
            (r#"{"at":"2024-05-01 10:30:00Z"}"#, "expected \"T\""),
            (r#"{"at":"2024-05-01T10:30:00z"}"#, "no zone offset"),
            (r#"{"at":"2024-05-01T10:30:00"}"#, "no zone offset"),
            (r#"{"at":"2024-05-01T10:30:00+0200"}"#, "no zone offset"),
            (r#"{"at":"2024-05-01T10:30Z"}"#, "expected \":\""),
            (r#"{"at":"2024-05-01T9:30:00Z"}"#, "hour must have two digits"),
            (r#"{"at":"2024-05-01T10:30:00,5Z"}"#, "must follow a point"),
            (r#"{"at":"2024-05-01T10:30:00+24:00"}"#, "zone offset out of range"),
            (r#"{"at":"2024-05-01T10:30:00+02:60"}"#, "zone offset out of range"),
            (r#"{"at":"2016-12-31T23:59:60Z"}"#, "second out of range"),
            (r#"{"at":"2024-05-01T24:00:00Z"}"#, "hour out of range"),
            (r#"{"at":"2024-05-01T10:30:00ZZ"}"#, "extra text"),
            (r#"{"at":"3000-01-01T00:00:00Z"}"#, "out of range"),
        ],
    );
}

#[test]
fn newer_is_strictly_greater() {
    let change = change("rev", None);
    let read = |document: &str| change.read(document.as_bytes()).unwrap();
    assert!(read(r#"{"rev":9007199254740993}"#) > read(r#"{"rev":9007199254740992}"#));
    assert!(read(r#"{"rev":-1}"#) < read(r#"{"rev":"0"}"#));
    assert_eq!(read(r#"{"rev":"10"}"#), read(r#"{"rev":10}"#));
}

#[test]
fn a_revision_is_shown_by_its_format() {
    let integer = change("rev", None);
    assert_eq!(integer.show(Revision::new(-42)), "-42");
    for format in ["rfc3339", "unix", "unix-ms", "2006-01-02"] {
        let change = change("rev", Some(format));
        for (nanos, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_714_559_400_000_000_000, "2024-05-01T10:30:00Z"),
            (1_714_559_400_500_000_000, "2024-05-01T10:30:00.5Z"),
            (1_714_559_400_000_000_001, "2024-05-01T10:30:00.000000001Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        ] {
            assert_eq!(change.show(Revision::new(nanos)), shown);
            assert_eq!(change.read_shown(shown), Ok(Revision::new(nanos)));
        }
    }
}

#[test]
fn a_shown_revision_is_read_back() {
    let integer = change("rev", None);
    assert_eq!(integer.read_shown("-42"), Ok(Revision::new(-42)));
    for text in ["", "+1", "1.0", " 1", "2024-05-01T10:30:00Z", "9223372036854775808"] {
        assert_eq!(integer.read_shown(text).unwrap_err().field(), "", "{text:?}");
    }
    let unix = change("rev", Some("unix"));
    let at = Revision::new(1_714_559_400_000_000_000);
    assert_eq!(unix.read_shown("2024-05-01T12:30:00+02:00"), Ok(at));
    for text in ["", "1714559400", "2024-05-01", "2024-05-01T12:30:00"] {
        assert_eq!(unix.read_shown(text).unwrap_err().field(), "", "{text:?}");
    }
}

#[test]
fn a_revision_is_a_plain_integer_in_json() {
    assert_eq!(serde_json::to_string(&Revision::new(-7)).unwrap(), "-7");
    assert_eq!(serde_json::from_str::<Revision>("-7").unwrap(), Revision::new(-7));
    assert!(serde_json::from_str::<Revision>("7.0").is_err());
    assert_eq!(i64::from(Revision::from(7)), 7);
}

#[test]
fn a_change_is_checked_on_its_way_in() {
    for (json, part) in [
        (r#"{"field":""}"#, "change.field: must not be empty"),
        (r#"{"field":"/~"}"#, "change.field: "),
        (r#"{"field":"f","format":"x"}"#, "change.format: "),
        (r#"{"format":"unix"}"#, "missing field `field`"),
    ] {
        let error = serde_json::from_str::<ChangeRule>(json).unwrap_err().to_string();
        assert!(error.contains(part), "{json}: {error}");
    }
    for json in [
        r#"{"field":"f"}"#,
        r#"{"field":"/a~1b","format":"unix-ms"}"#,
        r#"{"field":"f","format":"rfc3339"}"#,
        r#"{"field":"f","format":"2006-01-02"}"#,
    ] {
        let change: ChangeRule = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&change).unwrap(), json);
    }
}

/// A user's typing error is refused where it is made (`flare-http`); what is stored may come from a
/// newer version.
#[test]
fn a_stored_change_may_hold_what_only_a_newer_version_knows() {
    let change: ChangeRule = serde_json::from_str(r#"{"field":"f","newer":{"a":1}}"#).unwrap();
    assert_eq!(change, ChangeRule::new("f", None).unwrap());
}
