//! What expressions say of documents, and how wrong ones are refused: one table.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::compiled::CompiledFilter;
use super::language::FilterLanguage;
use super::subject::FilterSubject;
use crate::model::{Filter, ShownRevision};

/// What the table's expressions are asked about.
const DOCUMENT: &str = r#"{
    "id": "a-1", "name": "Zoë Müller 🦀", "empty": "", "quote": "it's \"so\"",
    "count": 3, "negative": -4, "ratio": 2.5, "whole": 2.0, "zero": 0,
    "exact": 9007199254740993, "large": 18446744073709551615, "huge": 36893488147419103232,
    "least": -9223372036854775808, "yes": true, "no": false, "nothing": null,
    "tags": ["red", "green", "blue"], "numbers": [1, 2, 3, 4], "mixed": [1, "one", null, true],
    "none": [], "blank": {}, "nested": {"deep": {"er": 7, "list": [{"k": "v"}]}},
    "items": [{"price": 5, "sku": "a"}, {"price": 50, "sku": "b"}, {"sku": "c"}],
    "limit": 40, "at": "2024-02-29T12:30:00.5Z", "took": "90s", "content-type": "text/plain",
    "in": 1, "document": "shadow", "matrix": [[1, 2], [3]]
}"#;

/// What an expression says: that it does or does not match, or why it fails; or where it is refused.
#[derive(Debug)]
enum Said {
    Yes,
    No,
    Fails(&'static str),
    Refused(&'static str),
}

use Said::{Fails, No, Refused, Yes};

const TABLE: &[(&str, Said)] = &[
    // Literals and logic.
    ("true", Yes),
    ("false", No),
    ("!false", Yes),
    ("true && false", No),
    ("false || true", Yes),
    ("true ? false : true", No),
    ("!(document.yes && document.no)", Yes),
    // Fields and their types.
    ("document.yes", Yes),
    ("document.no", No),
    ("document.id == 'a-1'", Yes),
    ("document['id'] == 'a-1'", Yes),
    ("document.`content-type` == 'text/plain'", Yes),
    ("document['content-type'].startsWith('text/')", Yes),
    ("document.nested.deep.er == 7", Yes),
    ("document.nested['deep'].er == 7", Yes),
    ("document.nested.deep.list[0].k == 'v'", Yes),
    ("document.document == 'shadow'", Yes),
    ("document['in'] == 1", Yes),
    ("document.nothing == null", Yes),
    ("document.empty == null", No),
    ("document.empty == ''", Yes),
    ("document.yes == 'true'", No),
    ("document.count == '3'", No),
    ("document.count != '3'", Yes),
    ("document.tags == ['red', 'green', 'blue']", Yes),
    ("document.blank == {}", Yes),
    ("document.blank == {'a': 1}", No),
    ("document.none == []", Yes),
    ("document.tags[1] == 'green'", Yes),
    ("document.matrix[1][0] == 3", Yes),
    ("type(document.count) == int", Yes),
    ("type(document.ratio) == double", Yes),
    ("type(document.name) == string", Yes),
    ("type(document.tags) == list", Yes),
    ("type(document.blank) == map", Yes),
    ("type(document.nothing) == null_type", Yes),
    ("type(document.large) == uint", Yes),
    // What is missing, or of another type.
    ("document.missing == 1", Fails("there is no document.missing")),
    ("document.missing.deeper == 1", Fails("there is no document.missing.deeper")),
    ("document.id.deeper == 1", Fails("there is no document.id.deeper")),
    ("document['missing'] == 1", Fails("No such key: missing")),
    ("document.tags[3] == ''", Fails("Index out of bounds")),
    ("document.missing", Fails("there is no document.missing")),
    ("document.count", Fails("must be true or false, is int")),
    ("document.name", Fails("must be true or false, is string")),
    ("document.name > 3", Fails("no matching overload")),
    ("document.count + 'a' == ''", Fails("Unsupported binary operator")),
    ("document.missing == 1 || true", Yes),
    ("false && document.missing == 1", No),
    ("document.missing == 1 && false", No),
    ("true && document.missing == 1", Fails("there is no document.missing")),
    ("document.count && true", Fails("no matching overload")),
    // has.
    ("has(document.id)", Yes),
    ("has(document.missing)", No),
    ("has(document.nothing)", Yes),
    ("has(document.nested.deep.er)", Yes),
    ("has(document.nested.deep.other)", No),
    ("has(document.missing.deeper)", Fails("there is no document.missing")),
    ("has(document.missing) && document.missing.deeper == 1", No),
    ("!has(document.missing) || document.missing == 1", Yes),
    // Numbers.
    ("document.count == 3", Yes),
    ("document.count == 3.0", Yes),
    ("document.count > 2 && document.count < 4", Yes),
    ("document.count >= 3 && document.count <= 3", Yes),
    ("document.negative < 0", Yes),
    ("-document.negative == 4", Yes),
    ("document.ratio * 2.0 == 5.0", Yes),
    ("document.whole == 2", Yes),
    ("document.count % 2 == 1", Yes),
    ("document.count / 2 == 1", Yes),
    ("1 / document.zero == 1", Fails("Division by zero")),
    ("document.count + 1 == 4", Yes),
    ("document.exact == 9007199254740993", Yes),
    ("document.exact == 9007199254740992", No),
    ("document.exact - 1 == 9007199254740992", Yes),
    ("document.exact > 9007199254740992", Yes),
    ("document.large == 18446744073709551615u", Yes),
    ("document.large == 18446744073709551614u", No),
    ("document.large > 9223372036854775807", Yes),
    ("document.least == -9223372036854775808", Yes),
    ("document.least - 1 < 0", Fails("Overflow")),
    ("document.huge > 1.0e19", Yes),
    ("int('9007199254740993') == document.exact", Yes),
    ("double(document.count) / 2.0 == 1.5", Yes),
    ("int(document.ratio) == 2", Yes),
    ("string(document.exact) == '9007199254740993'", Yes),
    ("uint(document.count) == 3u", Yes),
    // Text.
    ("document.name.startsWith('Zoë')", Yes),
    ("document.name.endsWith('🦀')", Yes),
    ("document.name.contains('Müller')", Yes),
    ("document.name.contains('MÜLLER')", No),
    ("size(document.name) == 12", Yes),
    ("document.name.size() == 12", Yes),
    ("size('🦀') == 1", Yes),
    ("size(bytes('🦀')) == 4", Yes),
    ("document.quote == 'it\\'s \"so\"'", Yes),
    ("document.quote == r'it' + \"'s\" + ' \"so\"'", Yes),
    ("document.name < 'a'", Yes),
    ("'\\u00e9' == 'é'", Yes),
    ("document.id + '!' == 'a-1!'", Yes),
    ("document.id.matches('^[a-z]-[0-9]$')", Yes),
    ("document.id.matches('^b')", No),
    ("matches(document.name, 'M.*r')", Yes),
    ("document.name.matches('^\\\\p{Lu}\\\\p{Ll}+')", Yes),
    ("document.count.matches('3')", Fails("no matching overload")),
    // in.
    ("'red' in document.tags", Yes),
    ("'pink' in document.tags", No),
    ("document.id in ['b', 'a-1']", Yes),
    ("document.count in [1, 2]", No),
    ("document.exact in [9007199254740993]", Yes),
    ("'er' in document.nested.deep", Yes),
    ("'id' in document", Yes),
    ("null in document.mixed", Yes),
    ("'a' in document.id", Fails("no matching overload")),
    // Loops.
    ("document.tags.exists(t, t == 'blue')", Yes),
    ("document.tags.all(t, size(t) > 2)", Yes),
    ("document.tags.exists_one(t, t.startsWith('gr'))", Yes),
    ("document.numbers.filter(n, n > 2) == [3, 4]", Yes),
    ("document.numbers.map(n, n * 2) == [2, 4, 6, 8]", Yes),
    ("document.numbers.map(n, n > 3, n) == [4]", Yes),
    ("document.numbers.filter(n, n % 2 == 0).all(n, n > 1)", Yes),
    ("document.items.exists(i, has(i.price) && i.price > document.limit)", Yes),
    ("document.items.exists(i, i.price > 100)", Fails("No such key: price")),
    ("document.items.exists(i, i.price > 10)", Yes),
    ("document.items.all(i, i.sku in ['a', 'b', 'c'])", Yes),
    ("document.items.map(i, i.sku).exists(s, s == 'c')", Yes),
    ("document.nested.deep.exists(k, k == 'er')", Yes),
    ("document.nested.exists(k, document.nested[k].er == 7)", Yes),
    ("document.none.all(x, x > 1)", Yes),
    ("document.none.exists(x, true)", No),
    ("document.tags.exists(t, t in document.blank)", No),
    ("document.tags.exists(t, t.matches('^b.*e$'))", Yes),
    ("document.numbers.exists(n, n + 1 == 5)", Yes),
    ("document.numbers.exists(n, int(n) + int(n) == 8)", Yes),
    ("[document.count, document.limit].exists(n, n > 30)", Yes),
    ("document.count.exists(x, x)", Fails("iterable")),
    // Time.
    ("timestamp(document.at) > timestamp('2024-01-01T00:00:00Z')", Yes),
    ("timestamp(document.at).getMonth() == 1", Yes),
    ("timestamp(document.at).getDate() == 29", Yes),
    ("timestamp(document.at).getHours('Europe/Zurich') == 13", Yes),
    ("timestamp(document.at).getMilliseconds() == 500", Yes),
    (
        "timestamp(document.at) + duration(document.took) == timestamp('2024-02-29T12:31:30.5Z')",
        Yes,
    ),
    ("timestamp(document.at) - timestamp('2024-02-29T12:00:00Z') > duration('30m')", Yes),
    ("duration(document.took).getSeconds() == 90", Yes),
    ("timestamp(document.id) > timestamp(0)", Fails("timestamp")),
    ("timestamp('9999-12-31T23:59:59Z') + duration('24h') > timestamp(0)", Fails("verflow")),
    // The version and the URL.
    ("revision == 7", Yes),
    ("revision > 9007199254740992", No),
    ("params.shop == 'Genève'", Yes),
    ("params['shop'] == 'Genève'", Yes),
    ("'shop' in params", Yes),
    ("params.id + '/' + params.shop == '1/Genève'", Yes),
    // Refused, each where it is wrong.
    ("document.a ==", Refused("line 1, column 14: mismatched input '<EOF>'")),
    ("document..a", Refused("line 1, column 10: no viable alternative at input '..'")),
    ("document.a = 1", Refused("line 1, column 12: token recognition error at: '= '")),
    ("(document.a", Refused("line 1, column 12: ")),
    ("'open", Refused("line 1, column 1: the string does not end")),
    ("document.a == '\\q'", Refused("line 1, column 16: no such escape")),
    ("'é' == missing", Refused("line 1, column 8: there is no variable missing")),
    ("document.a &&\n  doc.b", Refused("line 2, column 3: there is no variable doc; use document")),
    ("Revision > 1", Refused("line 1, column 1: there is no variable Revision")),
    ("lower(document.a) == 'b'", Refused("line 1, column 6: there is no function lower")),
    ("document.a.lower() == 'b'", Refused("line 1, column 17: there is no function lower")),
    ("document.a.startsWith() ", Refused("startsWith takes 1 argument")),
    ("startsWith(document.a, 'b')", Refused("startsWith is written value.startsWith(…)")),
    ("size(document.a, 2) == 1", Refused("size takes 1 argument")),
    ("document.a.size(2) == 1", Refused("size takes 0 arguments")),
    ("has(document)", Refused("invalid argument to has() macro")),
    ("document.a.exists(x)", Refused("exists is written list.exists(x, condition)")),
    ("document.a.all(x.y, true)", Refused("argument")),
    ("document.a.matches(document.b)", Refused("must be a string in quotes")),
    ("document.a.matches('a' + 'b')", Refused("must be a string in quotes")),
    (
        "document.a.matches('(')",
        Refused("line 1, column 20: not a regular expression: unclosed group"),
    ),
    ("document.a.matches('(\\\\w{99}){99}')", Refused("the pattern is too large once compiled")),
    ("document.a.exists(x, x.exists(y, y == 1))", Refused("a loop must not hold another one")),
    (
        "[1].all(x, [2].all(y, true))",
        Refused("line 1, column 19: a loop must not hold another one"),
    ),
    (
        "document.a.exists(x, x + x == 'aa')",
        Refused("line 1, column 24: a loop must not concatenate"),
    ),
    ("document.a.map(x, [x, x]) == []", Refused("a loop must not build a list")),
    ("document.a.map(x, {'a': x}) == []", Refused("a loop must not build a map")),
    ("document.a.exists(document, true)", Refused("must not be called document")),
    ("document.a.?b == 1", Refused("unsupported syntax")),
    ("Message{a: 1} == 1", Refused("there is no message type Message")),
    ("optional.of(1) == 1", Refused("there is no function of")),
    ("1", Refused("line 1, column 1: the expression must be true or false")),
    ("'text'", Refused("must be true or false")),
    ("document", Refused("must be true or false")),
    ("params.shop", Refused("must be true or false")),
    ("size(document.a)", Refused("must be true or false")),
    ("document.a + document.b", Refused("must be true or false")),
    ("document.a.map(x, x)", Refused("must be true or false")),
    ("revision.a == 1", Refused("revision has no fields")),
    ("params.a.b == 1", Refused("values of params are strings")),
    ("99999999999999999999 == 1", Refused("line 1, column 1: ")),
];

fn subject(language: &FilterLanguage, json: &str, revision: ShownRevision) -> FilterSubject {
    let params = [("shop", "Genève"), ("id", "1")];
    FilterSubject::new(&language.env(), json.as_bytes(), Some(&revision), params).unwrap()
}

#[test]
fn what_expressions_say() {
    assert!(TABLE.len() >= 120, "{}", TABLE.len());
    let language = FilterLanguage::new();
    let subject = subject(&language, DOCUMENT, ShownRevision::Number(7));
    let mut wrong = Vec::new();
    for (text, expected) in TABLE {
        let filter = Filter::new(*text).unwrap();
        let said = match CompiledFilter::new(&language, &filter) {
            Ok(compiled) => compiled.says(&subject).map_err(|why| format!("fails: {why}")),
            Err(invalid) => Err(format!("refused: {invalid}")),
        };
        let as_expected = match (expected, &said) {
            (Yes, Ok(true)) | (No, Ok(false)) => true,
            (Fails(part), Err(why)) => why.starts_with("fails") && why.contains(part),
            (Refused(part), Err(why)) => why.starts_with("refused") && why.contains(part),
            _ => false,
        };
        if !as_expected {
            wrong.push(format!("{text}\n    {said:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), TABLE.len(), wrong.join("\n"));
}

#[test]
fn a_revision_with_a_format_is_a_timestamp() {
    let language = FilterLanguage::new();
    let time = ShownRevision::Time("2024-05-01T12:00:00.5Z".to_owned());
    let subject = subject(&language, "{}", time);
    for text in [
        "revision > timestamp('2024-05-01T12:00:00Z')",
        "string(revision) == '2024-05-01T12:00:00.5Z'",
        "revision.getFullYear() == 2024",
        "revision + duration('500ms') == timestamp('2024-05-01T12:00:01Z')",
    ] {
        let compiled = CompiledFilter::new(&language, &Filter::new(text).unwrap()).unwrap();
        assert_eq!(compiled.says(&subject), Ok(true), "{text}");
    }
}

/// What a filter requires of a field is found, and says what the expression says.
#[test]
fn what_is_required_is_known() {
    let language = FilterLanguage::new();
    let subject = subject(&language, DOCUMENT, ShownRevision::Number(7));
    let cases = [
        ("document.id == 'a-1'", Some(false)),
        ("'b' == document.id", Some(true)),
        ("document.count > 1 && document.id == 'b' && document.missing == 1", Some(true)),
        ("document.count > 1 && (document.yes && document.id == 'a-1')", Some(false)),
        ("document.count == '3'", Some(true)),
        ("document.count == 3.0", Some(false)),
        ("4 == document.count && document.missing", Some(true)),
        ("document.large == 18446744073709551615u", Some(false)),
        ("document.yes == false", Some(true)),
        ("document.nothing == null", Some(false)),
        ("document.count in [1, 2.5, 'three']", Some(true)),
        ("document.count in [1, 3u]", Some(false)),
        ("document.missing == 1", Some(false)),
        ("document.tags in [['red']]", Some(true)),
        ("document.id == 'b' || true", None),
        ("!(document.id == 'b')", None),
        ("document.id != 'b'", None),
        ("'red' in document.tags", None),
        ("params.id == '1'", None),
        ("revision == 6", None),
    ];
    for (text, expected) in cases {
        let compiled = CompiledFilter::new(&language, &Filter::new(text).unwrap()).unwrap();
        let excludes = compiled.excludes(|path| subject.value_at(path));
        assert_eq!(compiled.required.as_ref().map(|_| excludes), expected, "{text}");
    }
}

/// An expression over the table's document, most of them conjunctions.
fn conjunction() -> impl Strategy<Value = String> {
    let literal = prop_oneof![
        Just("'a-1'"),
        Just("''"),
        Just("'red'"),
        Just("3"),
        Just("2"),
        Just("0"),
        Just("3u"),
        Just("2.0"),
        Just("2.5"),
        Just("1e300"),
        Just("true"),
        Just("false"),
        Just("null"),
        Just("9007199254740993"),
        Just("9007199254740992.0"),
        Just("18446744073709551615u"),
        Just("b'a-1'"),
    ];
    let field = prop_oneof![
        Just("id"),
        Just("empty"),
        Just("count"),
        Just("ratio"),
        Just("whole"),
        Just("zero"),
        Just("exact"),
        Just("large"),
        Just("huge"),
        Just("least"),
        Just("yes"),
        Just("no"),
        Just("nothing"),
        Just("tags"),
        Just("blank"),
        Just("nested.deep.er"),
        Just("missing"),
        Just("id.deeper"),
    ];
    let list = proptest::collection::vec(literal.clone(), 1..4);
    let comparison = (field, literal, list, 0..8_u8).prop_map(|(field, literal, list, form)| {
        let list = list.join(", ");
        match form {
            0..3 => format!("document.{field} == {literal}"),
            3 => format!("{literal} == document.{field}"),
            4..6 => format!("document.{field} in [{list}]"),
            6 => format!("document.{field} != {literal}"),
            _ => format!("document.{field}"),
        }
    });
    comparison.prop_recursive(3, 8, 2, |inner| {
        (inner.clone(), inner, 0..6_u8).prop_map(|(one, other, form)| match form {
            0..4 => format!("({one} && {other})"),
            4 => format!("({one} || {other})"),
            _ => format!("!({one} && {other})"),
        })
    })
}

/// What is refused without being evaluated would be refused by the evaluation.
#[test]
fn what_is_excluded_does_not_match() {
    let language = FilterLanguage::new();
    let subject = subject(&language, DOCUMENT, ShownRevision::Number(7));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(10_000));
    let tried = runner.run(&conjunction(), |text| {
        // Some are no conditions, which the guard sees.
        let compiled = CompiledFilter::new(&language, &Filter::new(&*text).unwrap());
        let compiled = compiled.ok();
        if let Some(it) = compiled.filter(|it| it.excludes(|path| subject.value_at(path))) {
            prop_assert_eq!(it.says(&subject), Ok(false));
        }
        Ok(())
    });
    tried.unwrap();
}

/// However large the document, an expression that would look through all of it for each of its parts does
/// not; and one that looks through it a few times does.
#[test]
fn a_large_document_costs_no_more_than_its_size() {
    let language = FilterLanguage::new();
    let numbers: Vec<String> = (0..50_000).map(|number| number.to_string()).collect();
    let json = format!(r#"{{"a":[{0}],"b":[{0}],"limit":49999}}"#, numbers.join(","));
    let subject = subject(&language, &json, ShownRevision::Number(1));
    let cases = [
        ("document.a.exists(x, x == document.limit)", Ok(true)),
        ("document.a.all(x, x < document.limit + 1)", Ok(true)),
        ("document.a == document.b", Ok(true)),
        ("49999 in document.a && 49999 in document.b", Ok(true)),
        ("document.a.all(x, x in document.b)", Err("costs too much on this document")),
        ("document.a.all(x, document.a == document.b)", Err("costs too much on this document")),
        ("document.a.all(x, size(document) > 1)", Err("costs too much on this document")),
        ("document.a.all(x, has(document.b))", Ok(true)),
        ("document.a.all(x, document.a[x] == x)", Ok(true)),
    ];
    for (text, expected) in cases {
        let compiled = CompiledFilter::new(&language, &Filter::new(text).unwrap()).unwrap();
        assert_eq!(compiled.says(&subject), expected.map_err(str::to_owned), "{text}");
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let language = FilterLanguage::new();
    let refused = |text: String| {
        let filter = Filter::new(text).map_err(|invalid| invalid.to_string())?;
        CompiledFilter::new(&language, &filter).map(drop).map_err(|invalid| invalid.to_string())
    };
    let nested = |depth: usize| format!("{}true{}", "(".repeat(depth), ")".repeat(depth));
    let cases = [
        (format!("document.a == '{}'", "x".repeat(4_100)), "at most 4096 bytes"),
        (format!("true{}", " && true".repeat(500)), "more than 1000 parts"),
        (nested(200), "nest"),
        (format!("document{}", ".a".repeat(1_000)), "nest"),
        (format!("document{}", ".a".repeat(40)), "fields in a row"),
        (format!("1{} == 1", " - 1".repeat(900)), "nest"),
        (format!("1{} == 1", " in [1]".repeat(300)), "nest"),
        (format!("{}true", "!".repeat(3_000)), "nest"),
        (format!("document.a == ''{}", " + 'a'".repeat(20)), "more than 16 additions"),
        (format!("true{}", " && document.a.matches('a')".repeat(9)), "more than 8 patterns"),
        (format!("document.a{} == 1", "[0]".repeat(500)), "nest"),
        (format!("{}true{}", "true ? (".repeat(100), ") : false".repeat(100)), "nest"),
        (format!("document{} == 1", "[0".repeat(100) + &"]".repeat(100)), "nest"),
        (format!("document.a{} == 1", ".size()".repeat(300)), "nest"),
    ];
    for (text, expected) in cases {
        let start: String = text.chars().take(40).collect();
        match refused(text) {
            Err(reason) => assert!(reason.contains(expected), "{start}: {reason}"),
            Ok(()) => panic!("{start} is let through"),
        }
    }
}
