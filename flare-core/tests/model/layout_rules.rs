//! Corners of Go's layout language beyond the fixture, each rule under its name.

use flare_core::model::Layout;

fn read(layout: &str, text: &str) -> Result<i64, String> {
    let layout = Layout::parse(layout).unwrap_or_else(|invalid| panic!("{layout:?}: {invalid}"));
    layout.parse_nanos(text).map_err(|invalid| {
        assert_eq!(invalid.field(), "");
        invalid.reason().to_owned()
    })
}

/// Each text must name the instant that RFC 3339 writes as the third.
fn same(table: &[(&str, &str, &str)]) {
    for (layout, text, instant) in table {
        let wanted = instant.parse::<jiff::Timestamp>().unwrap().as_nanosecond();
        let got = read(layout, text).map(i128::from);
        assert_eq!(got, Ok(wanted), "{text:?} in {layout:?}, wanted {instant}");
    }
}

/// Each text must be refused with a reason that contains the third.
fn refused(table: &[(&str, &str, &str)]) {
    for (layout, text, part) in table {
        match read(layout, text) {
            Err(reason) => assert!(reason.contains(part), "{text:?} in {layout:?}: {reason}"),
            Ok(nanos) => panic!("{text:?} in {layout:?} is {nanos}"),
        }
    }
}

#[test]
fn the_layouts_go_names_are_read() {
    let at = "2010-02-04T21:00:57Z";
    let west = "2010-02-05T05:00:57Z";
    same(&[
        ("Mon Jan _2 15:04:05 2006", "Thu Feb  4 21:00:57 2010", at),
        ("Mon Jan _2 15:04:05 MST 2006", "Thu Feb  4 21:00:57 UTC 2010", at),
        ("Mon Jan 02 15:04:05 -0700 2006", "Thu Feb 04 21:00:57 -0800 2010", west),
        ("02 Jan 06 15:04 MST", "04 Feb 10 21:00 GMT", "2010-02-04T21:00:00Z"),
        ("Monday, 02-Jan-06 15:04:05 MST", "Thursday, 04-Feb-10 21:00:57 UTC", at),
        ("Mon, 02 Jan 2006 15:04:05 MST", "Thu, 04 Feb 2010 21:00:57 GMT", at),
        ("Mon, 02 Jan 2006 15:04:05 -0700", "Thu, 04 Feb 2010 21:00:57 -0800", west),
        ("2006-01-02T15:04:05Z07:00", "2010-02-04T21:00:57-08:00", west),
        ("2006-01-02 15:04:05.999999999 -0700 MST", "2010-02-04 21:00:57 +0000 UTC", at),
        ("2006-01-02 15:04:05-07", "2010-02-04 21:00:57-08", west),
        ("01/02 03:04:05PM '06 -0700", "02/04 09:00:57PM '10 -0800", west),
        ("2006-01-02", "2010-02-04", "2010-02-04T00:00:00Z"),
    ]);
}

#[test]
fn runs_of_spaces_count_as_one() {
    let at = "2010-02-04T21:00:57Z";
    same(&[
        ("Jan _2 15:04:05 2006", "Feb 4 21:00:57 2010", at),
        ("Jan _2 15:04:05 2006", "Feb      4 21:00:57      2010", at),
        ("Jan   2 15:04:05 2006", "Feb 4 21:00:57 2010", at),
        ("2006-01-02 15:04:05 ", "2010-02-04 21:00:57", at),
        ("2006-01-02 15:04:05 ", "2010-02-04 21:00:57   ", at),
        (" 2006-01-02 15:04:05", "   2010-02-04 21:00:57", at),
    ]);
    refused(&[
        ("2006-01-02 15:04", "2010-02-0421:00", "expected \" \""),
        ("2006-01-02 15:04", "2010-02-04 21:00 ", "extra text \" \""),
        ("2006-01-02 15:04", " 2010-02-04 21:00", "no year"),
        ("2006-01-02 15:04", "2010-02-04\t21:00", "expected \" \""),
        (" 2006", "2010", "expected \" \""),
    ]);
}

#[test]
fn a_fraction_may_follow_the_seconds() {
    let at = "2010-02-04T21:00:57.012345678Z";
    same(&[
        ("2006-01-02 15:04:05", "2010-02-04 21:00:57.012345678", at),
        ("2006-01-02 15:04:05", "2010-02-04 21:00:57,012345678", at),
        ("2006-01-02 15:04:05", "2010-02-04 21:00:57.0123456789999", at),
        ("2006-01-02 15:04:05 MST", "2010-02-04 21:00:57.012345678 UTC", at),
        ("2006-01-02 15:04:5Z07:00", "2010-02-04 21:00:57,012345678Z", at),
        ("2006-01-02 15:04:05.9", "2010-02-04 21:00:57.012345678", at),
        ("2006-01-02 15:04:05,999", "2010-02-04 21:00:57.012345678", at),
        ("2006-01-02 15:04:05.999999999", "2010-02-04 21:00:57", "2010-02-04T21:00:57Z"),
        ("2006-01-02 15:04:05.000000000", "2010-02-04 21:00:57,012345678", at),
        (
            "Jan _2 15:04:05.000000 2006",
            "Feb  4 21:00:57.012345 2010",
            "2010-02-04T21:00:57.012345Z",
        ),
        ("2006-01-02 15:04:05 .000", "2010-02-04 21:00:57 .012", "2010-02-04T21:00:57.012Z"),
        ("05.000 2006", "57.500 2010", "2010-01-01T00:00:57.5Z"),
    ]);
    refused(&[
        ("2006-01-02 15:04:05", "2010-02-04 21:00:57.", "extra text"),
        ("2006-01-02 15:04:05", "2010-02-04 21:00:57.x", "extra text"),
        ("2006-01-02 15:04", "2010-02-04 21:00.5", "extra text"),
        ("2006-01-02 15:04:05.000", "2010-02-04 21:00:57.01", "fractional second"),
        ("2006-01-02 15:04:05.000", "2010-02-04 21:00:57.0123", "extra text"),
        ("2006-01-02 15:04:05.000", "2010-02-04 21:00:57", "fractional second"),
        ("2006-01-02 15:04:05.000", "2010-02-04 21:00:57;012", "fractional second"),
        ("2006-01-02 15:04:05.000", "2010-02-04 21:00:57.-12", "fractional second out of range"),
        // The next element is a fraction, so that the seconds take none.
        ("2006-01-02 15:04:05 .000", "2010-02-04 21:00:57.012 .012", "expected \" \""),
    ]);
}

#[test]
fn what_go_lets_pass_in_a_fraction_passes() {
    same(&[
        ("05.000 2006", "57.+12 2010", "2010-01-01T00:00:57.012Z"),
        ("05.000 2006", "57.-00 2010", "2010-01-01T00:00:57Z"),
        ("05.000000000000 2006", "57.123456789xyz 2010", "2010-01-01T00:00:57.123456789Z"),
    ]);
}

#[test]
fn a_fraction_in_a_layout_is_one_run_of_a_digit() {
    for (layout, formatted) in [
        ("2006 05.00", "1970 01.02"),
        ("2006 05.99", "1970 01.02"),
        ("2006 05.999999999", "1970 01.02"),
        ("2006 05,000000", "1970 01,020000"),
        ("2006 05.0", "1970 01.0"),
        ("2006 05.9", "1970 01"),
        // A digit of another kind follows: the point is plain text.
        ("2006 15.04.05", "1970 00.00.01"),
        ("2006 .09", "1970 .09"),
        ("2006 .990", "1970 .990"),
        ("2006.01.002", "1970.01.001"),
    ] {
        assert_eq!(Layout::parse(layout).unwrap().format_nanos(1_020_000_000), formatted);
    }
}

#[test]
fn names_are_read_in_any_case() {
    let at = "2024-05-09T00:00:00Z";
    same(&[
        ("Monday 2 January 2006", "THURSDAY 9 MAY 2024", at),
        ("Mon 2 Jan 2006", "thu 9 mAy 2024", at),
        ("Monday 2 January 2006", "Sunday 9 May 2024", at),
    ]);
    refused(&[
        ("Monday 2 January 2006", "Thu 9 May 2024", "no weekday (Monday) at \"Thu 9 May 2024\""),
        ("2 January 2006", "9 Jan 2024", "no month (January)"),
        ("2 Jan 2006", "9 January 2024", "expected \" \""),
        ("2 Jan 2006", "9 Jän 2024", "no month"),
        ("2 Jan 2006", "9 Ma", "no month"),
    ]);
}

#[test]
fn words_that_only_begin_like_names_are_text() {
    same(&[("Month 2006", "Month 2024", "2024-01-01T00:00:00Z")]);
    same(&[("Janet 2006", "Janet 2024", "2024-01-01T00:00:00Z")]);
    same(&[("MonTh 2006", "SunTh 2024", "2024-01-01T00:00:00Z")]);
}

#[test]
fn the_day_must_exist() {
    same(&[
        ("2006-01-02", "2024-02-29", "2024-02-29T00:00:00Z"),
        ("2006-01-02", "2000-02-29", "2000-02-29T00:00:00Z"),
        ("02 2006", "31 2010", "2010-01-31T00:00:00Z"),
    ]);
    refused(&[
        ("2006-01-02", "2023-02-29", "day out of range"),
        ("2006-01-02", "1900-02-29", "day out of range"),
        ("2006-01-02", "2023-04-31", "day out of range"),
        ("2006-01-02", "2023-01-00", "day out of range"),
        ("2006-01-02", "2023-01-32", "day out of range"),
        ("2006-01-02", "2023-13-01", "month out of range"),
        ("2006-01-02", "2023-00-01", "month out of range"),
    ]);
}

#[test]
fn the_day_of_the_year_must_agree() {
    same(&[
        ("2006-002", "2010-035", "2010-02-04T00:00:00Z"),
        ("2006 __2", "2010  35", "2010-02-04T00:00:00Z"),
        ("2006 __2", "2010   5", "2010-01-05T00:00:00Z"),
        ("2006/__2", "2010/  5", "2010-01-05T00:00:00Z"),
        ("2006/__2", "2010/5", "2010-01-05T00:00:00Z"),
        ("2006-002", "2024-060", "2024-02-29T00:00:00Z"),
        ("2006-002", "2023-060", "2023-03-01T00:00:00Z"),
        ("2006-002", "2024-366", "2024-12-31T00:00:00Z"),
        ("2006-01-02 002", "2010-02-04 035", "2010-02-04T00:00:00Z"),
    ]);
    refused(&[
        ("2006-002", "2023-366", "day of the year out of range"),
        ("2006-002", "2024-367", "day of the year out of range"),
        ("2006-002", "2024-000", "day of the year out of range"),
        ("2006-002", "2010-35", "no day of the year (002)"),
        ("2006/__2", "2010/   5", "no day of the year (__2)"),
        ("2006-01-02 002", "2010-03-04 035", "does not match the month"),
        ("2006-01-02 002", "2010-02-05 035", "does not match the day"),
    ]);
}

#[test]
fn a_clock_has_ranges() {
    same(&[
        ("2006 15:4:5", "2010 7:8:9", "2010-01-01T07:08:09Z"),
        ("2006 15:4:5", "2010 07:08:09", "2010-01-01T07:08:09Z"),
        ("2006 15:04", "2010 7:08", "2010-01-01T07:08:00Z"),
        ("2006 3:04", "2010 0:08", "2010-01-01T00:08:00Z"),
    ]);
    refused(&[
        ("2006 15:04:05", "2010 24:00:00", "hour out of range"),
        ("2006 15:04:05", "2010 12:60:00", "minute out of range"),
        ("2006 15:04:05", "2010 12:00:60", "second out of range"),
        ("2006 3:04", "2010 13:00", "hour out of range"),
        ("2006 03:04", "2010 3:00", "no hour (03)"),
        ("2006 15:04", "2010 12:1", "no minute (04)"),
        ("2006 15:04", "2010 -1:00", "no hour"),
        ("2006 15:04", "2010 +1:00", "no hour"),
        ("15:04", "12:61", "\"12:61\": minute out of range"),
    ]);
}

#[test]
fn a_half_of_the_day_moves_the_hour() {
    same(&[
        ("2006 3PM", "2010 12AM", "2010-01-01T00:00:00Z"),
        ("2006 3PM", "2010 12PM", "2010-01-01T12:00:00Z"),
        ("2006 3pm", "2010 1pm", "2010-01-01T13:00:00Z"),
        ("2006 3PM", "2010 0PM", "2010-01-01T12:00:00Z"),
        ("2006 15PM", "2010 15PM", "2010-01-01T15:00:00Z"),
        ("2006 15PM", "2010 11PM", "2010-01-01T23:00:00Z"),
        ("2006 15PM", "2010 15AM", "2010-01-01T15:00:00Z"),
        ("PM3 2006", "PM3 2010", "2010-01-01T15:00:00Z"),
        ("3PM pm 2006", "12AM pm 2010", "2010-01-01T00:00:00Z"),
    ]);
    refused(&[
        ("2006 3PM", "2010 3pm", "no half of the day (PM)"),
        ("2006 3pm", "2010 3PM", "no half of the day (pm)"),
        ("2006 3PM", "2010 3P", "no half of the day"),
    ]);
}

#[test]
fn years_have_four_or_two_digits() {
    same(&[
        ("06", "69", "1969-01-01T00:00:00Z"),
        ("06", "68", "2068-01-01T00:00:00Z"),
        ("06", "00", "2000-01-01T00:00:00Z"),
        // Go reads the two letters as a number, which may have a sign.
        ("06", "+5", "2005-01-01T00:00:00Z"),
        ("06", "-5", "1995-01-01T00:00:00Z"),
        ("_2006", "_2010", "2010-01-01T00:00:00Z"),
        ("20060102", "20240229", "2024-02-29T00:00:00Z"),
    ]);
    refused(&[
        ("2006", "201", "no year (2006)"),
        ("2006", "-201", "no year (2006)"),
        ("2006", "+201", "no year (2006)"),
        ("2006", "20100", "extra text \"0\""),
        ("2006", "٢٠١٠", "no year"),
        ("06", "1", "no year (06)"),
        ("06", "--", "no year (06)"),
        ("_2006", " 2010", "expected \"_\""),
    ]);
}

#[test]
fn a_padded_day_has_at_most_one_space() {
    same(&[
        ("2006/_2", "2010/ 4", "2010-01-04T00:00:00Z"),
        ("2006/_2", "2010/14", "2010-01-14T00:00:00Z"),
        ("2006/_2", "2010/ 14", "2010-01-14T00:00:00Z"),
        ("2006/_2", "2010/4", "2010-01-04T00:00:00Z"),
        ("2006/_2", "2010/04", "2010-01-04T00:00:00Z"),
    ]);
    refused(&[
        ("2006/_2", "2010/  4", "no day (_2)"),
        ("2006/2", "2010/ 4", "no day (2)"),
        ("2006/02", "2010/4", "no day (02)"),
        ("2006/2", "2010/114", "extra text \"4\""),
    ]);
}

#[test]
fn offsets_are_honoured_as_written() {
    let at = "2010-02-04T21:00:00Z";
    same(&[
        ("2006-01-02 15:04 -0700", "2010-02-04 14:00 -0700", at),
        ("2006-01-02 15:04 -07", "2010-02-04 14:00 -07", at),
        ("2006-01-02 15:04 -07:00", "2010-02-05 02:30 +05:30", at),
        ("2006-01-02 15:04:05 -070000", "2010-02-04 20:41:28 -001832", at),
        ("2006-01-02 15:04:05 -07:00:00", "2010-02-04 20:41:28 -00:18:32", at),
        ("2006-01-02 15:04 Z0700", "2010-02-04 14:00 -0700", at),
        ("2006-01-02 15:04 Z0700", "2010-02-04 21:00 Z", at),
        ("2006-01-02 15:04 Z07", "2010-02-04 21:00 Z", at),
        ("2006-01-02 15:04 Z07:00", "2010-02-04 21:00 Z", at),
        ("2006-01-02 15:04 Z07:00", "2010-02-04 21:00 -00:00", at),
        ("2006-01-02 15:04 Z07:00:00", "2010-02-04 21:00 +00:00:00", at),
        // The Go that wrote the fixture does not bound an offset.
        ("2006-01-02 15:04 -0700", "2010-02-06 03:15 +3015", at),
        ("2006-01-02 15:04 -0700", "2010-02-04 22:35 +0095", at),
        // A zone that is UTC wins over any offset; Go takes one second west for "none seen".
        ("2006-01-02 15:04 Z07:00 -0700", "2010-02-04 21:00 Z +0500", at),
        ("2006-01-02 15:04 -07:00:00", "2010-02-04 21:00 -00:00:01", at),
    ]);
    refused(&[
        ("2006-01-02 15:04 Z07:00", "2010-02-04 21:00 z", "no zone offset (Z07:00)"),
        ("2006-01-02 15:04 -07:00", "2010-02-04 21:00 Z", "no zone offset"),
        ("2006-01-02 15:04 Z070000", "2010-02-04 21:00 Z", "no zone offset"),
        ("2006-01-02 15:04 Z07:00:00", "2010-02-04 21:00 Z", "no zone offset"),
        ("2006-01-02 15:04 -0700", "2010-02-04 21:00 0700", "no zone offset"),
        ("2006-01-02 15:04 -0700", "2010-02-04 21:00 -07:00", "no zone offset"),
        ("2006-01-02 15:04 -07:00", "2010-02-04 21:00 -0700", "no zone offset"),
        ("2006-01-02 15:04 -07:00", "2010-02-04 21:00 -7:00", "no zone offset"),
        ("2006-01-02 15:04 -07", "2010-02-04 21:00 −07", "no zone offset"),
        ("2006-01-02 15:04 -07", "2010-02-04 21:00 -0700", "extra text \"00\""),
    ]);
}

#[test]
fn zone_names_other_than_utc_and_gmt_are_refused() {
    let at = "2010-02-04T21:00:00Z";
    same(&[
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 UTC", at),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 GMT", at),
        ("2006-01-02 15:04 MST", "2010-02-05 00:00 GMT+3", at),
        ("2006-01-02 15:04 MST", "2010-02-04 14:00 GMT-07", at),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 GMT+0", at),
    ]);
    let neither = "is neither UTC nor GMT";
    refused(&[
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 MST", neither),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 CEST", neither),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 ChST", neither),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 Z", neither),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 utc", neither),
        ("2006-01-02 15:04 -0700 MST", "2010-02-04 21:00 +0100 CET", neither),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 +03", "no zone name"),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 ", "no zone name"),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 GMT+24", "extra text \"+24\""),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 GMT+", "extra text \"+\""),
        ("2006-01-02 15:04 MST", "2010-02-04 21:00 UTC+1", "extra text \"+1\""),
    ]);
}

#[test]
fn literals_match_to_the_letter() {
    same(&[("2006年01月02日", "2024年05月09日", "2024-05-09T00:00:00Z")]);
    refused(&[
        ("2006年01月02日", "2024年05月09月", "expected \"日\""),
        ("2006T01", "2024t05", "expected \"T\""),
        ("2006-01", "2024-05x", "extra text \"x\""),
        ("2006-01", "2024", "expected \"-\" at \"\""),
        ("2006-01", "", "no year"),
    ]);
}

#[test]
fn only_what_64_bits_hold_is_an_instant() {
    let layout = "2006-01-02T15:04:05Z07:00";
    assert_eq!(read(layout, "1677-09-21T00:12:43.145224192Z"), Ok(i64::MIN));
    assert_eq!(read(layout, "2262-04-11T23:47:16.854775807Z"), Ok(i64::MAX));
    refused(&[
        (layout, "1677-09-21T00:12:43.145224191Z", "out of range"),
        (layout, "2262-04-11T23:47:16.854775808Z", "out of range"),
        (layout, "0000-01-01T00:00:00Z", "out of range"),
        (layout, "9999-12-31T23:59:59-24:00", "out of range"),
        // Go's year 0, where the layout has none.
        ("3:04PM", "3:04PM", "out of range"),
        ("Jan _2 15:04:05", "Feb  4 21:00:57", "out of range"),
    ]);
}

#[test]
fn a_layout_without_date_or_time_is_refused() {
    for layout in ["", "yyyy-MM-dd", "MST", "Z07:00", "-0700 MST", "Monday", "PM", ".000", "日"] {
        let invalid = Layout::parse(layout).unwrap_err();
        assert_eq!(invalid.field(), "", "{layout:?}");
        assert!(invalid.reason().contains("no date or time element"), "{layout:?}: {invalid}");
    }
    for layout in ["2006", "06", "Jan", "January", "1", "01", "2", "_2", "02", "__2", "002"] {
        assert!(Layout::parse(layout).is_ok(), "{layout:?}");
    }
    for layout in ["15", "3", "03", "4", "04", "5", "05"] {
        assert!(Layout::parse(layout).is_ok(), "{layout:?}");
    }
}

#[test]
fn a_layout_is_bounded() {
    let longest = format!("2006{}", "x".repeat(Layout::MAX_LEN - 4));
    assert!(Layout::parse(&longest).is_ok());
    let invalid = Layout::parse(&format!("{longest}x")).unwrap_err();
    assert!(invalid.reason().contains("257 bytes"), "{invalid}");
}

#[test]
fn a_refusal_does_not_grow_with_the_text() {
    let reason = read("2006", &"é".repeat(1_000_000)).unwrap_err();
    assert!(reason.len() < 1_000, "{}", reason.len());
}

#[test]
fn a_layout_shows_its_source() {
    let layout: Layout = "2006-01-02".parse().unwrap();
    assert_eq!(layout.as_str(), "2006-01-02");
    assert_eq!(layout.to_string(), "2006-01-02");
    assert_eq!(format!("{layout:?}"), "Layout(\"2006-01-02\")");
    assert_eq!(layout, Layout::parse("2006-01-02").unwrap());
    assert_ne!(layout, Layout::parse("2006-01-2").unwrap());
}

#[test]
fn formats_as_go_does() {
    // 2009-02-04T21:00:57.012345600Z, the time of Go's own format test in UTC.
    let nanos = 1_233_781_257_012_345_600;
    for (layout, text) in [
        ("Mon Jan _2 15:04:05 2006", "Wed Feb  4 21:00:57 2009"),
        ("Mon Jan _2 15:04:05 MST 2006", "Wed Feb  4 21:00:57 UTC 2009"),
        ("Monday, 02-Jan-06 15:04:05 MST", "Wednesday, 04-Feb-09 21:00:57 UTC"),
        ("Mon, 02 Jan 2006 15:04:05 -0700", "Wed, 04 Feb 2009 21:00:57 +0000"),
        ("2006-01-02T15:04:05.999999999Z07:00", "2009-02-04T21:00:57.0123456Z"),
        ("3:04PM", "9:00PM"),
        ("3pm 03", "9pm 09"),
        ("January 1 2 4 5", "February 2 4 0 57"),
        ("Jan _2 15:04:05.000", "Feb  4 21:00:57.012"),
        ("Jan _2 15:04:05,000000", "Feb  4 21:00:57,012345"),
        ("05.000000000000", "57.012345600"),
        ("002 __2", "035  35"),
        ("2006 -07 -07:00 -070000 -07:00:00", "2009 +00 +00:00 +000000 +00:00:00"),
        ("2006 Z07 Z0700 Z070000 Z07:00:00", "2009 Z Z Z Z"),
        ("_2006 日", "_2009 日"),
    ] {
        assert_eq!(Layout::parse(layout).unwrap().format_nanos(nanos), text, "{layout:?}");
    }
    let noon = Layout::parse("3PM 3pm").unwrap();
    assert_eq!(noon.format_nanos(0), "12AM 12am");
    assert_eq!(noon.format_nanos(43_200_000_000_000), "12PM 12pm");
}
