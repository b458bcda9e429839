//! One order of locks: statements on a watched table, `put_in` and plain SQL at the same documents, each in an order of
//! its own, wait for each other and never in a circle.

use flare_backend_postgres::PostgresBackend;
use flare_testkit::Trials;

use crate::watch::Shop;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("order").test("opposed_orders_never_deadlock", opposed)
}

const DOCUMENTS: i64 = 300;
const ROUNDS: i64 = 12;

async fn opposed(uri: String) {
    let shop = Shop::watched(&uri, "reject").await;
    // Numbers of documents follow neither their names nor the places of rows.
    shop.run(&format!(
        "SELECT flare.put('http://shop.example/orders/' || n, '{{\"rev\":0}}'::text) \
             FROM (SELECT n FROM generate_series(1, {DOCUMENTS}) n ORDER BY md5(n::text) OFFSET 0) n; \
         INSERT INTO flare.orders SELECT n::text, 1, n FROM generate_series(1, {DOCUMENTS}) n"
    ))
    .await
    .unwrap();
    let backend = PostgresBackend::connect(shop.scratch.config()).await.unwrap();
    let mut workers = Vec::new();
    for worker in 0..4_i64 {
        let (backend, mut client) = (backend.clone(), shop.scratch.connect().await);
        let schema = shop.scratch.name.clone();
        workers.push(tokio::spawn(async move {
            for round in 0..ROUNDS {
                let revision = 2 + round * 4 + worker;
                if worker == 0 {
                    let sql =
                        format!("UPDATE {schema}.orders SET version = {} ", 1_000_000 + revision);
                    client.batch_execute(&sql).await.unwrap();
                    continue;
                }
                let mut ids: Vec<i64> = (1..=DOCUMENTS + 20).collect();
                fastrand::Rng::with_seed((worker * ROUNDS + round).unsigned_abs())
                    .shuffle(&mut ids);
                let puts = ids.iter().map(|id| {
                    let url = format!("http://shop.example/orders/{id}");
                    (url, format!(r#"{{"rev":{}}}"#, 1_000_000 + revision))
                });
                let transaction = client.transaction().await.unwrap();
                backend.put_in(&transaction, puts).await.unwrap();
                transaction.commit().await.unwrap();
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
}
