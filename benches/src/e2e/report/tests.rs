//! What the report judges, and how it reads.

use super::*;

fn round(per_second: f64, cpu: f64) -> Round {
    Round { per_second, cpu, ..Round::default() }
}

fn report(args: &[&str], flare: Round, raw: Round) -> Report {
    let mut report = Report::new(&Options::parse(args).unwrap(), 64);
    (report.flare, report.raw) = (vec![flare], vec![raw]);
    report
}

#[test]
fn less_is_claimed_of_what_the_raw_side_does_not_do() {
    let holds = |args: &[&str], per_second, cpu| {
        report(args, round(per_second, cpu), round(100.0, 1.0)).holds()
    };
    for (args, least) in [(&[][..], 70.0), (&["--signing"], 60.0), (&["--rate", "9"], 60.0)] {
        assert!(holds(args, least, 2.0) && !holds(args, least - 1.0, 2.0), "{args:?}");
        assert!(holds(args, 10.0, 1.4), "{args:?}");
    }
}

#[test]
fn less_is_claimed_of_puts_through_rest() {
    for (subscriptions, least) in [("1", 30.0), ("10", 60.0), ("100", 60.0)] {
        let args = ["--rest", "--subscriptions", subscriptions];
        let holds = |speed| report(&args, round(speed, 9.0), round(100.0, 1.0)).holds();
        assert!(holds(least) && !holds(least - 1.0), "{args:?}");
    }
}

#[test]
fn less_is_claimed_of_what_is_on_a_disk() {
    for (subscriptions, least) in [("1", 20.0), ("10", 40.0), ("100", 40.0)] {
        let args = ["--store", "sqlite", "--subscriptions", subscriptions];
        let holds = |speed| report(&args, round(speed, 9.0), round(100.0, 1.0)).holds();
        assert!(holds(least) && !holds(least - 1.0), "{args:?}");
    }
}

#[test]
fn less_is_claimed_of_what_is_on_a_server() {
    let holds = |args: &[&str], speed| {
        let args: Vec<&str> = ["--store", "postgresql"].iter().chain(args).copied().collect();
        report(&args, round(speed, 9.0), round(100.0, 1.0)).holds()
    };
    for (subscriptions, least) in [("1", 5.0), ("10", 12.0), ("100", 12.0)] {
        let args = ["--subscriptions", subscriptions];
        assert!(holds(&args, least) && !holds(&args, least - 0.1), "{args:?}");
    }
    for subscriptions in ["10", "100"] {
        let args = ["--rest", "--subscriptions", subscriptions];
        assert!(holds(&args, 10.0) && !holds(&args, 9.9), "{args:?}");
    }
}

#[test]
fn the_slowest_on_a_server_may_take_a_few_commits() {
    let args = ["--store", "postgresql", "--subscriptions", "1"];
    let mut report = report(&args, round(90.0, 1.0), round(100.0, 1.0));
    let mut holds = |slowest, bare: Vec<f64>| {
        let latencies = vec![7.0, 7.0, slowest];
        report.at_load = Some(AtLoad { puts: 1.0, latencies, bare });
        report.holds()
    };
    assert!(holds(8.0, vec![1.0; 3]) && !holds(8.1, vec![1.0; 3]));
    assert!(holds(9.0, Vec::new()), "with nothing to compare it is only shown");
}

#[test]
fn a_delivery_may_take_a_few_commits() {
    let args = ["--store", "sqlite", "--subscriptions", "1"];
    let mut report = report(&args, round(90.0, 1.0), round(100.0, 1.0));
    let mut holds = |latencies: [f64; 3], bare: Vec<f64>| {
        report.at_load = Some(AtLoad { puts: 1.0, latencies: latencies.into(), bare });
        report.holds()
    };
    assert!(holds([4.0, 4.0, 8.0], vec![1.0; 3]));
    assert!(!holds([4.1, 4.1, 4.1], vec![1.0; 3]));
    assert!(!holds([1.0, 1.0, 8.1], vec![1.0; 3]));
    assert!(holds([9.0; 3], Vec::new()), "with nothing to compare it is only shown");
}

#[test]
fn many_documents_may_cost_a_put_half_as_much_again() {
    let args = ["--store", "sqlite", "--documents", "1000000"];
    let mut report = report(&args, round(90.0, 1.0), round(100.0, 1.0));
    report.plain = vec![Round { put: 2.0, ..Round::default() }];
    for (put, holds) in [(3.0, true), (3.1, false)] {
        report.flare[0].put = put;
        assert_eq!(report.holds(), holds, "{put}");
    }
    let printed = report.to_string();
    assert!(printed.contains("2000 of 1000000 documents"), "{printed}");
    report.flare[0].put = 3.0;
    for (status, restart, holds) in [(19.0, 1.9, true), (20.0, 1.0, false), (1.0, 2.0, false)] {
        report.large = Some(Large { status, restart, pending: 1_000_000 });
        assert_eq!(report.holds(), holds, "{status} ms, {restart} s");
    }
    assert_eq!(report.to_json()["put_when_large"], 1.5);
}

#[test]
fn clients_that_fail_may_cost_as_little_as_those_that_hang() {
    let mut report = report(&["--fail", "1"], round(96.0, 1.0), round(100.0, 1.0));
    report.plain = vec![round(100.0, 1.0)];
    assert!(report.holds());
    let printed = report.to_string();
    assert!(printed.contains("(0 hang, 1 fail)"), "{printed}");
    assert!(printed.contains("lost to clients that hang or fail: 4.0 %"), "{printed}");
    assert_eq!(report.to_json()["fail"], 1);
    report.flare[0].per_second = 94.0;
    assert!(!report.holds());
}

#[test]
fn filters_may_cost_as_much_as_what_they_let_through() {
    let mut report = report(&["--filter"], round(40.0, 2.0), round(100.0, 1.0));
    report.plain = vec![round(90.0, 1.0)];
    assert!(report.holds());
    assert!(report.to_string().contains("a put costs 2.00 of the CPU"), "{report}");
    report.flare[0].cpu = 2.1;
    assert!(!report.holds());
    assert_eq!(report.to_json()["filter_cost"], 2.1);
}

#[test]
fn many_in_a_request_are_three_times_as_many() {
    let mut report = report(&["--batch", "100"], round(10.0, 9.0), round(100.0, 1.0));
    for (speed, holds) in [(30.0, true), (29.0, false)] {
        report.batched = vec![round(speed, 1.0)];
        assert_eq!(report.holds(), holds);
    }
    assert_eq!(report.to_json()["batch_ratio"], 2.9);
    assert!(report.to_string().contains("one in each: 2.90"), "{report}");
}

#[test]
fn ratios_are_taken_within_pairs() {
    let options = Options::parse(&["--subscriptions", "10"]).unwrap();
    let mut report = Report::new(&options, 64);
    report.flare = vec![round(80.0, 3.0), round(8.0, 3.0), round(90.0, 3.0)];
    report.raw = vec![round(100.0, 2.0), round(10.0, 2.0), round(100.0, 2.0)];
    assert_eq!(report.ratio_to_raw(), 0.8);
    assert_eq!(report.cpu_ratio(), 1.5);
    assert!(report.holds());
    assert_eq!(report.to_json()["hang_loss"], Value::Null);
    report.flare[0].lost = 1;
    assert!(!report.holds());
}
