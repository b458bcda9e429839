//! What a watch costs a bulk statement, beside the same statement without it. A measurement, and a bound that nothing
//! but work that grows with the square of the rows, or by a round trip each, would pass.

use std::time::{Duration, Instant};

use flare_testkit::Trials;

use crate::watch::Shop;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("watch_cost").test("a_bulk_update_beside_the_bare_one", bulk)
}

/// How often each is measured: the fastest counts, as the machine has other things to do.
const TIMES: u32 = 3;
/// What it may be at most of few rows, where what a statement costs by itself is most of it.
const BOUND: f64 = 60.0;
/// What it may be at most of many.
const BOUND_OF_MANY: f64 = 5.0;
const MANY: u32 = 100_000;

/// `FLARE_WATCH_ROWS` of them (2,000).
async fn bulk(uri: String) {
    let rows = std::env::var("FLARE_WATCH_ROWS").ok().and_then(|text| text.parse::<u32>().ok());
    let rows = rows.unwrap_or(2_000);
    let shop = Shop::open(&uri).await;
    // As narrow as a table of orders gets, and as wide as they usually are.
    let narrow = "id bigint PRIMARY KEY, version bigint, total int";
    let wide = "id bigint PRIMARY KEY, version bigint, customer text, state text, placed timestamptz DEFAULT now(), \
         total numeric, address text, note text";
    let indexes = "CREATE INDEX ON flare.wide (customer, placed); CREATE INDEX ON flare.wide (state, version)";
    shop.run(&format!(
        "CREATE TABLE flare.narrow ({narrow}); CREATE TABLE flare.wide ({wide}); {indexes}"
    ))
    .await
    .unwrap();
    shop.run(&format!(
        "INSERT INTO flare.narrow SELECT n, 1, n FROM generate_series(1, {rows}) n; \
         INSERT INTO flare.wide SELECT n, 1, 'customer ' || n % 1000, 'open', now(), n * 1.25, \
             repeat('street ', 8) || n, repeat('as usual ', 20) FROM generate_series(1, {rows}) n"
    ))
    .await
    .unwrap();
    for (table, path) in [("narrow", "n-{id}"), ("wide", "w-{id}")] {
        let bare = fastest(&shop, table).await;
        shop.run(&format!(
            "SELECT flare.watch('flare.{table}', '{}', 'http://shop.example/orders/{path}', 'version', 'raise')",
            shop.resource
        ))
        .await
        .unwrap();
        update(&shop, table).await;
        let watched = fastest(&shop, table).await;
        let ratio = watched.as_secs_f64() / bare.as_secs_f64();
        eprintln!("{rows} rows, {table}: bare {bare:?}, watched {watched:?}, ratio {ratio:.1}");
        let bound = if rows < MANY { BOUND } else { BOUND_OF_MANY };
        assert!(ratio < bound, "{ratio} times as long");
        let like = format!("http://shop.example/orders/{}%", &path[..2]);
        let counted = format!("SELECT count(*) FROM flare.documents WHERE url LIKE '{like}'");
        assert_eq!(shop.one::<i64>(&counted).await, i64::from(rows));
    }
}

async fn fastest(shop: &Shop, table: &str) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..TIMES {
        // As they are once all of it has been told.
        shop.run(
            "UPDATE flare.documents SET undispatched = false, dispatched = revision WHERE undispatched; \
             DELETE FROM flare.undispatched; DELETE FROM flare.puts_beside; DELETE FROM flare.messages",
        )
        .await
        .unwrap();
        let tables = "flare.documents, flare.contents, flare.undispatched, flare.puts_beside, flare.messages";
        shop.run(&format!("VACUUM flare.narrow, flare.wide, {tables}")).await.unwrap();
        least = least.min(update(shop, table).await);
    }
    least
}

#[allow(clippy::disallowed_methods, reason = "what a real server takes is measured in real time")]
async fn update(shop: &Shop, table: &str) -> Duration {
    let began = Instant::now();
    shop.run(&format!("UPDATE flare.{table} SET version = version + 1")).await.unwrap();
    began.elapsed()
}
