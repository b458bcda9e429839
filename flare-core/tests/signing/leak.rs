//! Takes whatever somebody could see; checks that no secret shows in it, in any form.

use std::fmt::Debug;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::world::{OTHER_SECRET, SECRET};

/// The forms in which a part of a secret could be shown: its text, its bytes as numbers, as hex.
fn forms() -> Vec<String> {
    let mut forms = Vec::new();
    for secret in [SECRET, OTHER_SECRET] {
        let text = secret.trim_start_matches("whsec_");
        let key = BASE64_STANDARD.decode(text).unwrap();
        forms.extend([&text[..12], &text[text.len() - 12..]].map(str::to_lowercase));
        for part in [&key[..4], &key[key.len() - 4..]] {
            forms.push(format!("{part:?}").trim_matches(['[', ']']).to_owned());
            let hex = |separator| {
                part.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(separator)
            };
            forms.extend(["", ", ", ", 0x"].map(hex));
        }
        forms.push(String::from_utf8_lossy(&key).to_lowercase());
    }
    forms
}

/// The first form that shows.
fn leaked(shown: &str) -> Option<String> {
    // One case and one line, so that neither `{:#?}` nor upper-case hex hides anything.
    let lower = shown.to_lowercase();
    let in_a_line = lower.split_whitespace().collect::<Vec<_>>().join(" ");
    forms().into_iter().find(|form| lower.contains(form) || in_a_line.contains(form))
}

#[track_caller]
pub(crate) fn assert_no_secret(what: &str, shown: &str) {
    let leaked = leaked(shown);
    assert!(leaked.is_none(), "{what} shows {leaked:?}: {shown}");
}

#[track_caller]
pub(crate) fn assert_debug_safe(what: &str, value: &impl Debug) {
    assert_no_secret(what, &format!("{value:?}"));
    assert_no_secret(what, &format!("{value:#?}"));
    assert_no_secret(what, &format!("{value:#x?}"));
}

#[test]
fn the_checks_see_what_they_look_for() {
    let key = BASE64_STANDARD.decode(SECRET.trim_start_matches("whsec_")).unwrap();
    let hex: String = key.iter().map(|byte| format!("{byte:02X}")).collect();
    let shown = [
        format!("a {SECRET}."),
        format!("{key:?}"),
        format!("{key:#?}"),
        format!("{key:x?}"),
        format!("{key:#x?}"),
        hex,
        String::from_utf8_lossy(&key).into_owned(),
    ];
    for shown in shown {
        assert!(leaked(&shown).is_some(), "{shown}");
    }
    assert_eq!(leaked("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="), None);
}
