//! A host that speaks to its database by sqlx: what it puts is committed with its own rows, or never seen.

use flare_backend_postgres::PostgresBackend;
use flare_core::ErrorKind;
use flare_core::model::DocumentChange;
use flare_core::port::DocumentStore;
use flare_testkit::Trials;
use sqlx::{Connection, PgConnection};

use crate::support::Scratch;
use crate::transactions::{at, order, with_orders};

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("sqlx")
        .test("what_is_committed_is_there_and_the_rest_never_was", committed)
        .test("savepoints_take_their_puts_back", savepoints)
        .test("what_the_server_refuses_is_told_by_its_kind", refused)
}

async fn committed(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let resource = with_orders(&backend).await;
    let mut host = PgConnection::connect(&uri).await.unwrap();
    sqlx::query("CREATE TEMPORARY TABLE orders (id bigint)").execute(&mut host).await.unwrap();
    for number in 0..10_u64 {
        let mut transaction = host.begin().await.unwrap();
        let id = i64::try_from(number).unwrap();
        let row = sqlx::query("INSERT INTO orders VALUES ($1)").bind(id);
        row.execute(&mut *transaction).await.unwrap();
        let both = [(order(number), at(1)), (order(number + 100), at(1))];
        let changes = backend.put_in(&mut transaction, both).await.unwrap();
        assert_eq!(changes, [DocumentChange::Created; 2]);
        match number % 5 {
            0 => transaction.rollback().await.unwrap(),
            // One that is dropped is rolled back, too.
            1 => drop(transaction),
            _ => transaction.commit().await.unwrap(),
        }
    }
    let documents = backend.repository().count_documents(resource.id).await.unwrap();
    let rows: i64 =
        sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&mut host).await.unwrap();
    assert_eq!((documents, rows), (12, 6));

    let mut transaction = host.begin().await.unwrap();
    let deleted = [(order(2), None), (order(3), Some("1".to_owned())), (order(0), None)];
    let changes = backend.delete_in(&mut transaction, deleted).await.unwrap();
    let expected = [DocumentChange::Deleted, DocumentChange::Deleted, DocumentChange::Unchanged];
    assert_eq!(changes, expected);
    let again = [(order(4), at(1)), (order(4), at(2)), (order(4), at(1))];
    let changes = backend.put_in(&mut transaction, again).await.unwrap();
    let expected = [DocumentChange::Unchanged, DocumentChange::Updated, DocumentChange::Stale];
    assert_eq!(changes, expected);
    transaction.commit().await.unwrap();
    assert_eq!(backend.repository().count_documents(resource.id).await.unwrap(), 10);
}

async fn savepoints(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let resource = with_orders(&backend).await;
    let mut host = PgConnection::connect(&uri).await.unwrap();
    let mut transaction = host.begin().await.unwrap();
    backend.put_in(&mut transaction, [(order(1), at(1))]).await.unwrap();
    let mut savepoint = transaction.begin().await.unwrap();
    backend.put_in(&mut savepoint, [(order(1), at(2)), (order(2), at(1))]).await.unwrap();
    savepoint.rollback().await.unwrap();
    let mut savepoint = transaction.begin().await.unwrap();
    backend.put_in(&mut savepoint, [(order(3), at(1))]).await.unwrap();
    savepoint.commit().await.unwrap();
    // What was taken back was never there: the revision is new again.
    let changes = backend.put_in(&mut transaction, [(order(1), at(2))]).await.unwrap();
    assert_eq!(changes, [DocumentChange::Updated]);
    transaction.commit().await.unwrap();
    assert_eq!(backend.repository().count_documents(resource.id).await.unwrap(), 2);
}

/// Of two that put the same document in *serializable* transactions the second is told that it lost.
async fn refused(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    with_orders(&backend).await;
    let mut host = PgConnection::connect(&uri).await.unwrap();
    let unknown = [("http://other.example/orders/1".to_owned(), at(1))];
    let mut transaction = host.begin().await.unwrap();
    let refused = backend.put_in(&mut transaction, unknown).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    transaction.rollback().await.unwrap();

    let mut first = host.begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE").await.unwrap();
    sqlx::query("SELECT 1").execute(&mut *first).await.unwrap();
    let mut other = PgConnection::connect(&uri).await.unwrap();
    let mut second = other.begin().await.unwrap();
    backend.put_in(&mut second, [(order(1), at(1))]).await.unwrap();
    second.commit().await.unwrap();
    let lost = backend.put_in(&mut first, [(order(1), at(2))]).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Busy, "{lost}");
    first.rollback().await.unwrap();
}
