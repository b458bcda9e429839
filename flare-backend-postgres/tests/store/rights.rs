//! Roles that may do as much as they have to: what the README says has to be granted is enough, to a host and to a node.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_postgres::PostgresBackend;
use flare_core::Flare;
use flare_core::port::SystemClock;
use flare_core::prelude::*;
use flare_testkit::{RecordingDelivery, Trials};
use tokio_postgres::Client;

use crate::plain_sql::insert;
use crate::support::Scratch;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("rights")
        .test("a_host_that_puts_by_the_functions", a_host_of_functions)
        .test("a_host_that_puts_in_its_transactions", a_host_of_put_in)
        .test("a_node", a_node)
}

const README: &str = include_str!("../../README.md");

/// What the README has granted to a role, between two comments of this name, for this schema and role.
fn granted(name: &str, scratch: &Scratch, role: &str) -> String {
    let (_, rest) = README.split_once(&format!("-- {name}\n")).expect("a list of rights");
    let (grants, _) = rest.split_once("```").unwrap();
    let grants = grants.split("-- ").next().unwrap();
    let schema = &scratch.name;
    grants
        .replace("SCHEMA flare ", &format!("SCHEMA {schema} "))
        .replace("flare.", &format!("{schema}."))
        .replace("TO shop", &format!("TO {role}"))
}

/// A role that may log in and do what the README says; gone with its rights afterwards.
async fn role(scratch: &Scratch, name: &str) -> (String, Client) {
    let role = format!("{}_role", scratch.name);
    let owner = scratch.connect().await;
    owner.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
    owner.batch_execute(&granted(name, scratch, &role)).await.unwrap();
    (role, owner)
}

async fn dropped(owner: Client, role: &str) {
    owner.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
}

/// The same server, as another role.
fn uri_of(scratch: &Scratch, role: &str) -> String {
    let (_, rest) = scratch.uri.split_once("://").unwrap();
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    format!("postgresql://{role}@{host}")
}

async fn a_host_of_functions(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    insert(&backend, 1, "http://shop.example/orders/{id}", ("rev", None)).await;
    let (role, owner) = role(&scratch, "A host that calls the functions").await;
    let host = crate::support::connect(&uri_of(&scratch, &role)).await;
    let url = "http://shop.example/orders/1";
    let prepared = backend.prepare_put(url, r#"{"rev":1}"#).await.unwrap();
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&prepared.resource, &prepared.url, &prepared.content, &prepared.revision];
    host.query_one(&prepared.sql, &values).await.unwrap();
    let schema = &scratch.name;
    host.batch_execute(&format!(
        "SELECT {schema}.put('{url}', '{{\"rev\":2}}'::text), {schema}.put('{url}', '{{\"rev\":3}}'::jsonb), \
         {schema}.delete('{url}')"
    ))
    .await
    .unwrap();
    for refused in ["documents", "messages", "rejects"] {
        let sql = format!("SELECT * FROM {schema}.{refused}");
        assert!(host.batch_execute(&sql).await.is_err(), "it may put, and nothing else");
    }
    dropped(owner, &role).await;
}

async fn a_host_of_put_in(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    insert(&backend, 1, "http://shop.example/{kind}/{id}", ("rev", None)).await;
    let (role, owner) = role(&scratch, "A host that calls put_in and delete_in").await;
    let mut host = crate::support::connect(&uri_of(&scratch, &role)).await;
    let url = "http://shop.example/orders/1";
    for round in 0..2 {
        let transaction = host.transaction().await.unwrap();
        let answers = backend.put_in(&transaction, [(url, r#"{"rev":1}"#)]).await.unwrap();
        assert_eq!(answers[0].as_str(), "created");
        transaction.commit().await.unwrap();
        // The second time it moves.
        if round == 0 {
            insert(&backend, 2, "http://shop.example/orders/{id}", ("rev", None)).await;
        }
    }
    let transaction = host.transaction().await.unwrap();
    let answers = backend.delete_in(&transaction, [(url, None)]).await.unwrap();
    assert_eq!(answers[0].as_str(), "deleted");
    transaction.commit().await.unwrap();
    let schema = &scratch.name;
    assert!(host.batch_execute(&format!("SELECT * FROM {schema}.subscriptions")).await.is_err());
    dropped(owner, &role).await;
}

async fn a_node(uri: String) {
    let scratch = Scratch::new(&uri);
    drop(PostgresBackend::connect(scratch.config()).await.unwrap());
    let (role, owner) = role(&scratch, "A node").await;
    let config = flare_backend_postgres::PostgresConfig::new(uri_of(&scratch, &role));
    let backend = PostgresBackend::connect(config.schema(&scratch.name)).await.unwrap();
    let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
    let (flare, runtime) =
        Flare::builder(backend).delivery(Arc::clone(&delivery) as _).build().unwrap();
    let running = runtime.spawn();
    let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
    let orders = flare.create_resource(orders).await.unwrap();
    let spec = SubscriptionSpec::post("http://client.example/");
    flare.create_subscription(orders.id, spec).await.unwrap();
    flare.put_json("http://shop.example/orders/1", r#"{"rev":1}"#).await.unwrap();
    delivery.wait_for(1).await;
    flare.delete_document("http://shop.example/orders/1").await.unwrap();
    delivery.wait_for(2).await;
    running.drain(Duration::from_secs(5)).await.unwrap();
    dropped(owner, &role).await;
}
