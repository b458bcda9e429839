//! What holds for every layout and every text.

use flare_core::model::Layout;
use proptest::prelude::*;
use proptest::sample::select;

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) }
}

/// Elements that together say every part of an instant, and some that say nothing new.
fn elements() -> impl Strategy<Value = Vec<String>> {
    let date = prop_oneof![
        (select(vec!["Jan", "January", "1", "01"]), select(vec!["2", "_2", "02"]))
            .prop_map(|(month, day)| vec![month, day]),
        select(vec!["002", "__2"]).prop_map(|day| vec![day]),
    ];
    let hour = prop_oneof![
        Just(vec!["15"]),
        (select(vec!["3", "03"]), select(vec!["PM", "pm"]))
            .prop_map(|(hour, half)| vec![hour, half]),
    ];
    // Z070000 and Z07:00:00 are missing: Go writes Z there and does not read it.
    let zone = select(vec!["", "MST", "-07", "-0700", "-07:00", "-070000", "-07:00:00"]);
    let iso = select(vec!["", "Z07", "Z0700", "Z07:00"]);
    let fraction =
        select(vec![".000000000", ",000000000", ".999999999", ",999999999", ".99999999999"]);
    let rest = (
        select(vec!["2006", "06"]),
        select(vec!["4", "04"]),
        select(vec!["5", "05"]),
        fraction,
        any::<bool>(),
        select(vec!["", "Mon", "Monday"]),
        zone,
        iso,
    );
    (date, hour, rest).prop_flat_map(|(date, hour, rest)| {
        let (year, minute, second, fraction, joined, weekday, zone, iso) = rest;
        let mut all: Vec<String> = [date, hour].concat().into_iter().map(str::to_owned).collect();
        all.extend([year, minute, weekday, zone, iso].map(str::to_owned));
        if joined {
            all.push(format!("{second}{fraction}"));
        } else {
            all.extend([second.to_owned(), fraction.to_owned()]);
        }
        all.retain(|element| !element.is_empty());
        Just(all).prop_shuffle()
    })
}

/// Text that neither is an element nor makes one together with its neighbours.
fn separator() -> impl Strategy<Value = &'static str> {
    select(vec!["/", "|", " ", "  ", "T", "日", " at ", "; ", "'", "--"])
}

fn layout() -> impl Strategy<Value = String> {
    (elements(), prop::collection::vec(separator(), 16)).prop_map(|(elements, separators)| {
        elements.iter().zip(separators).fold(String::new(), |mut layout, (element, separator)| {
            layout.push_str(element);
            layout.push_str(separator);
            layout
        })
    })
}

/// The years that two digits can say.
const CENTURY: std::ops::Range<i64> = -31_536_000_000_000_000..3_124_224_000_000_000_000;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_formatted_is_read_back(layout in layout(), nanos in CENTURY) {
        let compiled = Layout::parse(&layout).unwrap();
        let text = compiled.format_nanos(nanos);
        prop_assert_eq!(compiled.parse_nanos(&text), Ok(nanos), "{:?} in {:?}", text, layout);
    }

    #[test]
    fn whole_seconds_are_read_back_without_a_fraction(layout in layout(), seconds in 0..3_124_224_000_i64) {
        let bare = layout.replace(['.', ','], "").replace("000000000", "").replace('9', "");
        let compiled = Layout::parse(&bare).unwrap();
        let nanos = seconds * 1_000_000_000;
        let text = compiled.format_nanos(nanos);
        prop_assert_eq!(compiled.parse_nanos(&text), Ok(nanos), "{:?} in {:?}", text, bare);
    }

    #[test]
    fn every_instant_is_read_back_from_its_longest_form(nanos: i64) {
        let layout = Layout::parse("2006-01-02T15:04:05.999999999Z07:00").unwrap();
        let text = layout.format_nanos(nanos);
        prop_assert_eq!(layout.parse_nanos(&text), Ok(nanos), "{}", text);
    }

    #[test]
    fn no_text_breaks_a_layout(layout in ".{0,64}", text in ".{0,64}", nanos: i64) {
        if let Ok(layout) = Layout::parse(&layout) {
            let _ = layout.parse_nanos(&text);
            let _ = layout.parse_nanos(&layout.format_nanos(nanos));
        }
    }

    #[test]
    fn no_text_made_of_elements_breaks_a_layout(
        layout in "(2006|06|Jan|1|_2|__2|002|15|3|4|5|05|PM|pm|MST|Z07|-070000|[.,]0{1,12}|[.,]9|[-_0-9A-Zé .,]){0,24}",
        text in "([-+:., 0-9]|UTC|GMT|Z|é|Jan|AM){0,24}",
        nanos: i64,
    ) {
        if let Ok(layout) = Layout::parse(&layout) {
            let _ = layout.parse_nanos(&text);
            let _ = layout.parse_nanos(&layout.format_nanos(nanos));
        }
    }

    /// One letter changed in a text that would be read, where slips are most likely to hide.
    #[test]
    fn no_slip_breaks_a_layout(layout in layout(), nanos in CENTURY, at: prop::sample::Index, slip: char) {
        let compiled = Layout::parse(&layout).unwrap();
        let mut letters: Vec<char> = compiled.format_nanos(nanos).chars().collect();
        let at = at.index(letters.len());
        letters[at] = slip;
        let _ = compiled.parse_nanos(&letters.into_iter().collect::<String>());
    }
}
