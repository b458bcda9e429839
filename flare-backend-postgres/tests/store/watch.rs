//! Rows of a host's table as documents: whatever a statement does to the table, and however it ends, the documents are
//! what the table holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use flare_backend_postgres::PostgresBackend;
use flare_core::Flare;
use flare_core::port::{Page, SystemClock};
use flare_core::prelude::*;
use flare_testkit::{RecordingDelivery, Trials};
use tokio_postgres::Client;
use tokio_postgres::types::FromSql;

use crate::support::Scratch;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("watch")
        .test("documents_are_what_the_table_holds", documents_are_what_the_table_holds)
        .test("a_row_that_is_no_document_is_kept_as_a_reject", rejects)
        .test("or_it_stops_the_write", raises)
        .test("a_wrong_watch_is_refused_by_its_name", refused)
        .test("a_host_that_never_calls_flare_has_clients_told", clients_are_told)
}

/// A table of orders that is watched, and its resource.
pub(crate) struct Shop {
    pub(crate) scratch: Scratch,
    pub(crate) flare: Flare,
    runtime: Option<flare_core::Runtime>,
    delivery: Arc<RecordingDelivery>,
    pub(crate) client: Client,
    pub(crate) resource: String,
}

impl Shop {
    pub(crate) async fn open(uri: &str) -> Self {
        let scratch = Scratch::new(uri);
        let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
        let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
        let (flare, runtime) =
            Flare::builder(backend).delivery(Arc::clone(&delivery) as _).build().unwrap();
        let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
        let resource = flare.create_resource(orders).await.unwrap().id.to_string();
        let client = scratch.connect().await;
        let runtime = Some(runtime);
        let shop = Self { scratch, flare, runtime, delivery, client, resource };
        shop.table().await;
        shop
    }

    /// Makes the table.
    pub(crate) async fn table(&self) {
        let table =
            "CREATE TABLE flare.orders (id text PRIMARY KEY DEFERRABLE, version bigint, total int)";
        self.run(table).await.unwrap();
    }

    pub(crate) async fn watched(uri: &str, on_error: &str) -> Self {
        let shop = Self::open(uri).await;
        shop.watch("http://shop.example/orders/{id}", "version", on_error).await.unwrap();
        shop
    }

    pub(crate) async fn watch(
        &self,
        url: &str,
        revision: &str,
        on_error: &str,
    ) -> Result<(), tokio_postgres::Error> {
        let resource = &self.resource;
        self.run(&format!(
            "SELECT flare.watch('flare.orders', '{resource}', '{url}', '{revision}', '{on_error}')"
        ))
        .await
    }

    /// Runs statements about the schema of this shop.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute(&self.of_schema(sql)).await
    }

    fn of_schema(&self, sql: &str) -> String {
        sql.replace("flare.", &format!("{}.", self.scratch.name))
    }

    /// The one value that a statement gives.
    pub(crate) async fn one<T: for<'a> FromSql<'a>>(&self, sql: &str) -> T {
        self.client.query_one(&self.of_schema(sql), &[]).await.unwrap().get(0)
    }

    pub(crate) async fn pairs(&self, sql: &str) -> BTreeMap<String, String> {
        let rows = self.client.query(&self.of_schema(sql), &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// The live documents by URL, as JSON with sorted keys.
    pub(crate) async fn documents(&self) -> BTreeMap<String, String> {
        self.pairs(
            "SELECT d.url, convert_from(c.content, 'UTF8')::jsonb::text FROM flare.documents d \
             JOIN flare.contents c ON c.document = d.n WHERE d.gone = 0",
        )
        .await
    }

    /// What they should be.
    pub(crate) async fn rows(&self) -> BTreeMap<String, String> {
        self.pairs(
            "SELECT 'http://shop.example/orders/' || id, \
                 (to_jsonb(o) || jsonb_build_object('rev', version))::text FROM flare.orders o",
        )
        .await
    }
}

async fn documents_are_what_the_table_holds(uri: String) {
    let shop = Shop::watched(&uri, "raise").await;
    let statements = [
        "INSERT INTO flare.orders SELECT n::text, 1, n FROM generate_series(1, 20) n",
        "UPDATE flare.orders SET version = 2, total = 7 WHERE id::int % 2 = 0",
        "MERGE INTO flare.orders o USING (VALUES ('3'), ('21')) v(id) ON o.id = v.id \
             WHEN MATCHED THEN UPDATE SET version = 5, total = 0 WHEN NOT MATCHED THEN INSERT VALUES (v.id, 5, 0)",
        "DELETE FROM flare.orders WHERE id::int > 15",
        // Two rows change places, and one becomes another.
        "UPDATE flare.orders SET version = 6, id = CASE id WHEN '1' THEN '2' WHEN '2' THEN '1' ELSE '99' END \
             WHERE id IN ('1', '2', '3')",
        "UPDATE flare.orders SET total = 1 WHERE false",
        "BEGIN; UPDATE flare.orders SET version = 100; DELETE FROM flare.orders; ROLLBACK",
        "BEGIN; UPDATE flare.orders SET version = 7; SAVEPOINT s; DELETE FROM flare.orders; ROLLBACK TO s; COMMIT",
        "TRUNCATE flare.orders",
        "INSERT INTO flare.orders SELECT n::text, 1000, n FROM generate_series(1, 5) n",
    ];
    for statement in statements {
        shop.run(statement).await.unwrap();
        assert_eq!(shop.documents().await, shop.rows().await, "after {statement}");
    }
    shop.run("SELECT flare.unwatch('flare.orders')").await.unwrap();
    let before = shop.documents().await;
    shop.run("DELETE FROM flare.orders").await.unwrap();
    assert_eq!(shop.documents().await, before, "nobody watches any more");
}

async fn rejects(uri: String) {
    let shop = Shop::watched(&uri, "reject").await;
    shop.run(
        "INSERT INTO flare.orders VALUES ('1', 1, 0), ('2', NULL, 0), ('..', 1, 0), ('4', 1, 0)",
    )
    .await
    .unwrap();
    let documents = shop.documents().await;
    let urls: Vec<&str> = documents.keys().map(String::as_str).collect();
    assert_eq!(urls, ["http://shop.example/orders/1", "http://shop.example/orders/4"]);
    let rejected = shop.pairs("SELECT url, reason FROM flare.rejects").await;
    assert_eq!(rejected.len(), 2, "{rejected:?}");
    assert!(rejected["http://shop.example/orders/2"].contains("rev must be"), "{rejected:?}");
    assert!(rejected["http://shop.example/orders/.."].contains("no resource"), "{rejected:?}");
    let counted = shop.pairs("SELECT watched::text, rejected::text FROM flare.watching").await;
    assert_eq!(counted.into_values().next().as_deref(), Some("2"));
    let kept = shop.pairs("SELECT id, id FROM flare.orders").await;
    assert_eq!(kept.len(), 4, "the host's write went on");
}

async fn raises(uri: String) {
    let shop = Shop::watched(&uri, "raise").await;
    let refused = shop.run("INSERT INTO flare.orders VALUES ('1', 1, 0), ('2', NULL, 0)").await;
    let refused = refused.unwrap_err().as_db_error().unwrap().message().to_owned();
    assert!(refused.contains("rev must be"), "{refused}");
    assert!(shop.rows().await.is_empty() && shop.documents().await.is_empty());
}

async fn refused(uri: String) {
    let shop = Shop::open(&uri).await;
    for (url, revision, on_error, named) in [
        ("http://shop.example/orders/{number}", "version", "reject", "number"),
        ("http://shop.example/orders/{id}", "revision", "reject", "revision"),
        ("http://shop.example/bills/{id}", "version", "reject", "bills"),
        ("http://shop.example/orders/{id}", "version", "shrug", "shrug"),
    ] {
        let error = shop.watch(url, revision, on_error).await.unwrap_err();
        let said = error.as_db_error().unwrap().message().to_owned();
        assert!(said.contains(named), "{said}");
    }
}

async fn clients_are_told(uri: String) {
    let mut shop = Shop::watched(&uri, "reject").await;
    let running = shop.runtime.take().unwrap().spawn();
    let orders = shop.flare.resources(Page::new(1, 0)).await.unwrap().items.remove(0);
    let spec = SubscriptionSpec::post("http://client.example/");
    shop.flare.create_subscription(orders.id, spec).await.unwrap();
    shop.run("BEGIN; INSERT INTO flare.orders VALUES ('1', 1, 0); ROLLBACK").await.unwrap();
    shop.run("INSERT INTO flare.orders VALUES ('2', 1, 0), ('3', 1, 0)").await.unwrap();
    shop.delivery.wait_for(2).await;
    shop.run("DELETE FROM flare.orders WHERE id = '2'").await.unwrap();
    let told = shop.delivery.wait_for(3).await;
    let told = told.iter().map(|told| told.request.document.to_string());
    let told: Vec<String> = told.collect();
    assert!(!told.iter().any(|url| url.ends_with("/1")), "{told:?}");
    assert!(told[2].ends_with("/2"), "{told:?}");
    drop(running);
}
