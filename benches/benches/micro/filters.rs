//! What asking a filter about a document costs, the reading of the document included; and the claim that hardly
//! any evaluation takes longer than 50 µs, judged: the bench fails if it does not hold.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;
use flare_benches::measure::quantile;
use flare_benches::world::{FIRST, body};
use flare_core::internals::PreparedFilter;
use flare_core::model::Filter;

const DOCUMENT: usize = 1024;
const ASKED: usize = 100_000;
/// The share of evaluations that is claimed to take no longer than that.
const SHARE: f64 = 0.999;
const CLAIMED: Duration = Duration::from_micros(50);

/// What clients ask for, from plain to long-winded, each with what it says of the document.
const FILTERS: &[(&str, bool)] = &[
    ("document.owner.name == 'Ada'", true),
    ("document.stock in [7, 42, 99] && document.active", true),
    ("document.price > 10.0 && document.price * 2.0 < 20.0", false),
    ("'blue' in document.tags || document.tags.size() > 5", true),
    ("document.tags.exists(tag, tag.startsWith('b') && tag != 'brown')", true),
    ("has(document.owner.mail) && document.owner.mail.matches('^[a-z]+@example[.]com$')", true),
    ("document.text.contains('consectetur') && document.active", false),
    (
        "document.tags.all(tag, tag in ['new', 'blue', 'red']) && document.rev > 9007199254740993",
        false,
    ),
];

pub(crate) fn filters(c: &mut Criterion) {
    let document = body(FIRST, DOCUMENT);
    let mut group = c.benchmark_group("filter on 1 KiB");
    let mut prepared = Vec::new();
    for (text, matches) in FILTERS {
        let filter = Filter::new(*text).and_then(|filter| PreparedFilter::new(&filter));
        let filter = filter.expect("a filter");
        let said = filter.try_on(&document, []).expect("a document");
        assert_eq!((said.matches, said.error), (*matches, None), "{text}");
        group.bench_function(*text, |b| b.iter(|| filter.try_on(black_box(&document), [])));
        prepared.push(filter);
    }
    group.finish();

    // Each by itself, for what is claimed is claimed of each and not of their mean.
    let mut times: Vec<f64> = (0..ASKED)
        .map(|number| {
            let filter = &prepared[number % prepared.len()];
            let began = Instant::now();
            let said = filter.try_on(black_box(&document), []);
            let took = began.elapsed();
            drop(black_box(said));
            took.as_secs_f64() * 1e6
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    let (half, most) = (quantile(&times, 0.5), quantile(&times, SHARE));
    let claimed = CLAIMED.as_secs_f64() * 1e6;
    println!(
        "filters on 1 KiB, {ASKED} evaluations: median {half:.1} µs, 99.9 % within {most:.1} µs, claimed {claimed} µs"
    );
    assert!(most < claimed, "the claim does NOT hold");
}
