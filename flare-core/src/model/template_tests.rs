//! Takes templates and values; checks what comes out, and that nothing panics.

use proptest::prelude::*;

use super::*;

fn render(template: &str, escape: Escape, value: &str) -> String {
    Template::parse(template).unwrap().render(escape, |_| Some(value)).unwrap()
}

#[test]
fn names_are_trimmed_and_in_order() {
    let template = Template::parse("{a}-{ b c }-{a}").unwrap();
    assert_eq!(template.names().collect::<Vec<_>>(), ["a", "b c", "a"]);
    assert_eq!(template.as_str(), "{a}-{ b c }-{a}");
}

#[test]
fn doubled_braces_are_literal() {
    for (text, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("{{}}", "{}"),
        ("{{id}}", "{id}"),
        ("{{{id}}}", "{V}"),
        ("{id}}}", "V}"),
        ("{{\"a\":\"{id}\"}}", "{\"a\":\"V\"}"),
        ("ä{id}ö", "äVö"),
    ] {
        assert_eq!(render(text, Escape::None, "V"), expected, "{text}");
    }
}

#[test]
fn an_unbalanced_brace_says_how_to_write_one() {
    for (text, reason) in [
        ("{", "write {{"),
        ("a{id", "never closed"),
        ("}", "write }}"),
        ("{id}}", "without a {"),
        ("{a{b}}", "within a placeholder"),
        ("{}", "without a name"),
        ("{ }", "without a name"),
        ("{{{", "never closed"),
    ] {
        let invalid = Template::parse(text).unwrap_err();
        assert_eq!(invalid.field(), "");
        assert!(invalid.reason().contains(reason), "{text}: {invalid}");
    }
}

#[test]
fn a_url_value_keeps_only_unreserved_characters() {
    assert_eq!(render("/{x}", Escape::Url, "aZ09-._~"), "/aZ09-._~");
    assert_eq!(
        render("/{x}", Escape::Url, "a/b?c#d&e=f g%é"),
        "/a%2Fb%3Fc%23d%26e%3Df%20g%25%C3%A9"
    );
    assert_eq!(render("/a/b {x}", Escape::Url, ""), "/a/b ", "the literal text is left alone");
}

#[test]
fn a_header_value_is_encoded_only_if_it_must_be() {
    for (value, expected) in [
        ("plain", "plain"),
        ("100%/{x}", "100%/{x}"),
        ("two words", "two%20words"),
        ("100% é", "100%25%20%C3%A9"),
        ("a\r\nEvil: 1", "a%0D%0AEvil:%201"),
        ("\u{7f}", "%7F"),
    ] {
        assert_eq!(render("{x}", Escape::Header, value), expected);
    }
}

#[test]
fn a_data_value_goes_in_as_it_is() {
    assert_eq!(render("<{x}>", Escape::None, "ü {y} %"), "<ü {y} %>");
}

#[test]
fn a_missing_value_is_named() {
    let missing = Template::parse("{a}{b}")
        .unwrap()
        .render(Escape::None, |name| (name == "a").then_some("1"))
        .unwrap_err();
    assert_eq!(missing.name(), "b");
    assert_eq!(missing.to_string(), "there is no value for {b}");
}

#[test]
fn serde_is_the_string() {
    let template: Template = serde_json::from_str(r#""a{id}""#).unwrap();
    assert_eq!(serde_json::to_string(&template).unwrap(), r#""a{id}""#);
    assert!(serde_json::from_str::<Template>(r#""a{id""#).is_err());
}

fn decoded(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        if let ([b'%', a, b, ..], true) = (rest, *first == b'%') {
            let digits = [*a, *b];
            out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            rest = &rest[3..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_parses_or_is_refused(text in "[{}a%\\PC]{0,40}") {
        if let Ok(template) = Template::parse(&text) {
            prop_assert_eq!(template.as_str(), text.as_str());
            prop_assert!(template.render(Escape::Url, |_| Some("v")).is_ok());
        }
    }

    #[test]
    fn doubling_the_braces_of_any_text_gives_it_back(text in "\\PC{0,40}") {
        let doubled = text.replace('{', "{{").replace('}', "}}");
        let template = Template::parse(&doubled).unwrap();
        prop_assert_eq!(template.render(Escape::None, |_| None).unwrap(), text);
    }

    #[test]
    fn escaped_values_are_safe_and_decode_to_themselves(value in any::<String>()) {
        let url = render("{x}", Escape::Url, &value);
        prop_assert!(url.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)));
        prop_assert_eq!(decoded(&url), value.as_bytes());
        let header = render("{x}", Escape::Header, &value);
        prop_assert!(header.bytes().all(|b| b.is_ascii_graphic()));
        if header != value {
            prop_assert_eq!(decoded(&header), value.as_bytes());
        }
    }
}
