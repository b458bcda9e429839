//! A shop that keeps orders in PostgreSQL and never calls Flare: its table is watched, and whatever it commits there is
//! told to clients. Ends by itself, and removes what it made.
//!
//! `FLARE_POSTGRESQL_URI` says where PostgreSQL is (this machine unless set), the first argument which schema to use
//! (`flare_example` unless given).

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::time::Duration;

use flare_backend_postgres::{PostgresBackend, PostgresConfig};
use flare_core::prelude::*;
use flare_examples::client::Client;
use tokio_postgres::NoTls;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let uri = std::env::var("FLARE_POSTGRESQL_URI");
    let uri = uri.unwrap_or_else(|_| "postgresql://flare@127.0.0.1:5432/flare".to_owned());
    let schema = std::env::args().nth(1).unwrap_or_else(|| "flare_example".to_owned());

    // The shop has a connection of its own, as any program has. What an interrupted run left is removed.
    let (shop, connection) = tokio_postgres::connect(&uri, NoTls).await?;
    tokio::spawn(connection);
    let tidy =
        format!("DROP SCHEMA IF EXISTS {schema} CASCADE; DROP TABLE IF EXISTS {schema}_orders");
    shop.batch_execute(&tidy).await?;
    let table = format!(
        "CREATE TABLE {schema}_orders (id int PRIMARY KEY, name text, version int NOT NULL)"
    );
    shop.batch_execute(&table).await?;

    // Flare runs beside it: here, in another process, or on another machine.
    let mut client = Client::start().await?;
    let config = PostgresConfig::new(&uri).schema(&schema).create_missing();
    let backend = PostgresBackend::connect(config).await?;
    let (flare, runtime) = Flare::builder(backend).allow("127.0.0.0/8").build()?;
    let running = runtime.spawn();
    let orders = NewResource::new("http://shop.example/orders/{id}").change_field("version");
    let orders = flare.create_resource(orders).await?;
    let hook = SubscriptionSpec::post(format!("{}/users/{{id}}", client.url));
    flare.create_subscription(orders.id, hook).await?;
    let (id, url) = (orders.id, "http://shop.example/orders/{id}");
    let watch = format!("SELECT {schema}.watch('{schema}_orders', '{id}', '{url}', 'version')");
    shop.batch_execute(&watch).await?;
    println!("{schema}_orders is watched\n");

    for sql in [
        "INSERT INTO orders VALUES (1, 'tea', 1), (2, 'milk', 1)",
        "UPDATE orders SET name = 'green tea', version = 2 WHERE id = 1",
        "BEGIN; UPDATE orders SET name = 'coffee', version = 3; ROLLBACK",
        "DELETE FROM orders WHERE id = 2",
        "TRUNCATE orders",
    ] {
        println!("{sql}");
        shop.batch_execute(&sql.replace("orders", &format!("{schema}_orders"))).await?;
        flare.settled(LIMIT).await?;
        let mut heard = client.heard();
        // Different documents are told side by side.
        heard.sort();
        heard.iter().for_each(|sentence| println!("    -> {sentence}"));
    }

    running.drain(LIMIT).await?;
    shop.batch_execute(&tidy).await?;
    println!("\nThe client has heard of everything that was committed.");
    Ok(())
}
