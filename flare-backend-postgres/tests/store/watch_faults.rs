//! What goes wrong at a watched table: it costs the row that it is about, is told of, and stops the host's write only
//! where that was asked for.

use flare_core::prelude::*;
use flare_testkit::Trials;

use crate::watch::Shop;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("watch_faults")
        .test("a_watch_survives_a_dump_and_its_restoration", dumped)
        .test("a_trigger_without_a_watch_is_told_of", without_a_watch)
        .test("a_row_that_the_server_cannot_write_as_json_is_a_reject", not_json)
        .test("a_stale_row_is_a_reject_or_an_error", stale)
        .test("overlapping_resources_are_no_obstacle", overlapping)
        .test("a_row_of_another_resource_is_a_reject", another_resource)
        .test("two_rows_of_one_url_are_told_of", the_same_url)
        .test("rejects_are_bounded_and_all_of_them_counted", bounded)
        .test("bad_rows_of_a_bulk_cost_the_others_nothing", a_bulk)
}

/// What is left of a table, its triggers and its watch is their text: as by `pg_dump`.
async fn dumped(uri: String) {
    let shop = Shop::watched(&uri, "reject").await;
    let watch: String =
        shop.one("SELECT jsonb_agg(w)::text FROM flare.watches w WHERE w.n > 0").await;
    let triggers: String = shop
        .one(
            "SELECT string_agg(pg_get_triggerdef(oid), ';') FROM pg_trigger WHERE tgname LIKE 'flare%' \
             AND tgrelid = 'flare.orders'::regclass",
        )
        .await;
    shop.run("DROP TABLE flare.orders; DELETE FROM flare.watches").await.unwrap();
    shop.table().await;
    let restored = "INSERT INTO flare.watches OVERRIDING SYSTEM VALUE \
         SELECT w.* FROM jsonb_populate_recordset(NULL::flare.watches, ";
    shop.run(&format!("{restored} '{watch}') w")).await.unwrap();
    shop.client.batch_execute(&triggers).await.unwrap();
    shop.run("INSERT INTO flare.orders VALUES ('1', 1, 0)").await.unwrap();
    assert_eq!(shop.documents().await, shop.rows().await);
    assert_eq!(shop.documents().await.len(), 1);
}

async fn without_a_watch(uri: String) {
    for on_error in ["reject", "raise"] {
        let shop = Shop::watched(&uri, on_error).await;
        shop.run("DELETE FROM flare.watches").await.unwrap();
        let written = shop.run("INSERT INTO flare.orders VALUES ('1', 1, 0)").await;
        if on_error == "raise" {
            let error = written.unwrap_err().as_db_error().unwrap().message().to_owned();
            assert!(error.contains("no watch"), "{error}");
        } else {
            written.unwrap();
            let reason: String = shop.one("SELECT reason FROM flare.rejects").await;
            assert!(reason.contains("no watch"), "{reason}");
        }
        shop.run("SELECT flare.unwatch('flare.orders')").await.unwrap();
        shop.run("INSERT INTO flare.orders VALUES ('2', 1, 0)").await.unwrap();
        let triggers: i64 = shop
            .one(
                "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'flare.orders'::regclass AND NOT tgisinternal",
            )
            .await;
        assert_eq!(triggers, 0, "they are gone, watch or none");
    }
}

async fn not_json(uri: String) {
    let shop = Shop::watched(&uri, "reject").await;
    shop.run("ALTER TABLE flare.orders ADD note json").await.unwrap();
    let insert = r#"INSERT INTO flare.orders VALUES ('1', 1, 0, '{}'), ('2', 1, 0, '{"a":"\u0000"}'), ('3', NULL, 0, '{}'),
         ('4', 1, 0, '{}')"#;
    shop.run(insert).await.unwrap();
    let urls: Vec<String> = shop.documents().await.into_keys().collect();
    assert_eq!(urls, ["http://shop.example/orders/1", "http://shop.example/orders/4"]);
    let reasons: String =
        shop.one("SELECT string_agg(reason, '; ' ORDER BY reason) FROM flare.rejects").await;
    assert!(reasons.contains("rev must be") && reasons.contains("Unicode"), "{reasons}");
    // A template that does not fit the table any more is told of, too, once for the statement.
    shop.run("ALTER TABLE flare.orders RENAME id TO number").await.unwrap();
    shop.run("UPDATE flare.orders SET version = 2 WHERE version = 1").await.unwrap();
    let reasons: String =
        shop.one("SELECT reason FROM flare.rejects ORDER BY n DESC LIMIT 1").await;
    assert!(reasons.contains("id"), "{reasons}");
}

async fn stale(uri: String) {
    for on_error in ["reject", "raise"] {
        let shop = Shop::watched(&uri, on_error).await;
        shop.run("INSERT INTO flare.orders VALUES ('1', 5, 0)").await.unwrap();
        shop.run("DELETE FROM flare.orders").await.unwrap();
        let written = shop.run("INSERT INTO flare.orders VALUES ('1', 1, 0), ('2', 1, 0)").await;
        if on_error == "raise" {
            let error = written.unwrap_err().as_db_error().unwrap().message().to_owned();
            assert!(error.contains("stale") && error.contains('5'), "{error}");
            assert!(shop.rows().await.is_empty());
        } else {
            written.unwrap();
            let rejected = shop.pairs("SELECT url, reason FROM flare.rejects").await;
            assert!(rejected["http://shop.example/orders/1"].contains("stale"), "{rejected:?}");
            assert_eq!(rejected.len(), 1);
            assert_eq!(shop.documents().await.len(), 1, "the other one is a document");
        }
    }
}

async fn overlapping(uri: String) {
    let shop = Shop::watched(&uri, "raise").await;
    let all = NewResource::new("http://shop.example/{kind}/{id}").change_field("rev");
    shop.flare.create_resource(all).await.unwrap();
    for statement in [
        "INSERT INTO flare.orders SELECT n::text, 1, n FROM generate_series(1, 9) n",
        "UPDATE flare.orders SET version = 2, id = '1' || id WHERE id::int > 5",
        "DELETE FROM flare.orders WHERE id::int < 3",
        "TRUNCATE flare.orders",
    ] {
        shop.run(statement).await.unwrap();
        assert_eq!(shop.documents().await, shop.rows().await, "after {statement}");
    }
}

async fn another_resource(uri: String) {
    let shop = Shop::open(&uri).await;
    let all = NewResource::new("http://shop.example/{kind}/{id}").change_field("rev");
    let all = shop.flare.create_resource(all).await.unwrap().id;
    shop.run(&format!(
        "CREATE TABLE flare.things (kind text, id int, rev int); \
         SELECT flare.watch('flare.things', '{all}', 'http://shop.example/{{kind}}/{{id}}', 'rev')"
    ))
    .await
    .unwrap();
    shop.run("INSERT INTO flare.things VALUES ('carts', 1, 1), ('orders', 1, 1)").await.unwrap();
    let urls: Vec<String> = shop.documents().await.into_keys().collect();
    assert_eq!(urls, ["http://shop.example/carts/1"]);
    let reason: String = shop.one("SELECT reason FROM flare.rejects").await;
    assert!(reason.contains("another resource"), "{reason}");
    // What is stored is deleted where it is, whoever would take it now.
    let carts = NewResource::new("http://shop.example/carts/{id}").change_field("rev");
    shop.flare.create_resource(carts).await.unwrap();
    shop.run("DELETE FROM flare.things WHERE kind = 'carts'").await.unwrap();
    assert!(shop.documents().await.is_empty());
    assert_eq!(shop.one::<i64>("SELECT count(*) FROM flare.rejects").await, 1);
}

async fn the_same_url(uri: String) {
    let shop = Shop::open(&uri).await;
    shop.watch("http://shop.example/orders/{total}", "version", "reject").await.unwrap();
    shop.run("INSERT INTO flare.orders VALUES ('1', 1, 7), ('2', 2, 7), ('3', 1, 8)")
        .await
        .unwrap();
    let documents = shop.documents().await;
    assert!(documents["http://shop.example/orders/7"].contains(r#""id": "2""#), "{documents:?}");
    assert_eq!(documents.len(), 2);
    let reason: String = shop.one("SELECT reason FROM flare.rejects").await;
    assert!(reason.contains("same URL"), "{reason}");
}

async fn bounded(uri: String) {
    let shop = Shop::watched(&uri, "reject").await;
    let bad = |name: &str, from: u32, to: u32| {
        format!(
            "INSERT INTO flare.{name} SELECT n::text, NULL, 0 FROM generate_series({from}, {to}) n"
        )
    };
    shop.run("CREATE TABLE flare.carts (LIKE flare.orders INCLUDING ALL)").await.unwrap();
    shop.run(&format!(
        "SELECT flare.watch('flare.carts', '{}', 'http://shop.example/orders/{{id}}', 'version')",
        shop.resource
    ))
    .await
    .unwrap();
    for round in 0..3_u32 {
        shop.run(&bad("orders", round * 5_000 + 1, round * 5_000 + 5_000)).await.unwrap();
        shop.run(&bad("carts", round * 7 + 1, round * 7 + 7)).await.unwrap();
    }
    let counted = shop.pairs("SELECT watched::text, rejected::text FROM flare.watching").await;
    let counts: Vec<&str> = counted.values().map(String::as_str).collect();
    assert!(counts.contains(&"15000") && counts.contains(&"21"), "all are counted: {counted:?}");
    let kept = "SELECT count(*) FROM flare.rejects WHERE watch = (SELECT n FROM flare.watches \
         WHERE watched = 'flare.orders'::regclass)";
    let kept: i64 = shop.one(kept).await;
    assert!((10_000..=11_000).contains(&kept), "{kept}");
    let kept: i64 = shop
        .one(
            "SELECT count(*) FROM flare.rejects WHERE watch = (SELECT n FROM flare.watches \
             WHERE watched = 'flare.carts'::regclass)",
        )
        .await;
    assert_eq!(kept, 21, "another table's are nobody else's room");
    shop.run("SELECT flare.unwatch('flare.orders'); SELECT flare.unwatch('flare.carts')")
        .await
        .unwrap();
    let kept: i64 = shop.one("SELECT count(*) FROM flare.rejects").await;
    assert!(kept <= 10_000, "of all that have ended: {kept}");
}

/// Rows that cannot be documents in every way, among many that can: each other one is, and not by
/// a transaction of its own.
async fn a_bulk(uri: String) {
    let shop = Shop::watched(&uri, "reject").await;
    shop.run("ALTER TABLE flare.orders ADD note json").await.unwrap();
    shop.run(
        r#"INSERT INTO flare.orders SELECT n::text, CASE WHEN n % 1000 <> 1 THEN 1 END, n,
             CASE WHEN n % 1000 = 2 THEN '{"a":"\u0000"}'::json END FROM generate_series(1, 5000) n"#,
    )
    .await
    .unwrap();
    let used = async |sql: &str| -> i64 {
        let before: i64 = shop.one("SELECT pg_current_xact_id()::text::bigint").await;
        shop.run(sql).await.unwrap();
        shop.one::<i64>("SELECT pg_current_xact_id()::text::bigint").await - before - 1
    };
    let documents: i64 = shop.one("SELECT count(*) FROM flare.documents WHERE gone = 0").await;
    assert_eq!(documents, 4_990);
    let used = used("UPDATE flare.orders SET version = 2 WHERE version = 1").await;
    // Others use some at the same time.
    assert!(used < 1_000, "{used} transaction ids for one statement");
    let documents: i64 = shop.one("SELECT count(*) FROM flare.documents WHERE revision = 2").await;
    assert_eq!(documents, 4_990);
    let rejected: i64 = shop.one("SELECT count(*) FROM flare.rejects").await;
    assert_eq!(rejected, 15);
}
