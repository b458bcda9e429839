//! Puts and deletes from plain SQL: decided as the rules in Rust decide them, committed with the host's own writes or
//! never seen, and nobody's to call who was not granted it.

mod cases;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flare_backend_postgres::PostgresBackend;
use flare_core::Flare;
use flare_core::model::{
    ChangeFormat, ChangeRule, Content, DocumentKey, DocumentUrl, Endpoint, EndpointIndex, IdSource,
    Resource, Timestamp, Version, detect_delete, detect_put,
};
use flare_core::port::{DocumentStore, ResourceStore, SystemClock};
use flare_core::prelude::*;
use flare_testkit::{RecordingDelivery, Trials};
use tokio_postgres::Client;

use crate::support::Scratch;
use cases::Case;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("plain_sql")
        .test("answers_are_those_of_the_rules", answers_are_those_of_the_rules)
        .test("commits_reach_clients_and_rollbacks_do_not", commits_reach_clients)
        .test("a_move_is_finished_by_the_same_commit", a_move_is_finished)
        .test("a_value_of_the_server_s_own_is_stored_as_it_writes_it", jsonb)
        .test("what_is_said_to_be_read_is_looked_at", what_was_read)
        .test("a_prepared_put_is_any_driver_s_to_make", a_prepared_put)
        .test("only_those_may_put_who_were_granted_it", rights)
}

pub(crate) async fn insert(
    backend: &PostgresBackend,
    which: u64,
    endpoint: &str,
    rule: (&str, Option<&str>),
) -> Resource {
    let now = Timestamp::from_unix_seconds(1_700_000_000);
    let id = IdSource::seeded(which).next(now).into();
    let change = ChangeRule::new(rule.0, rule.1).unwrap();
    let resource = Resource::new(id, Endpoint::parse(endpoint).unwrap(), change, now);
    backend.repository().insert_resource(resource.clone()).await.unwrap();
    resource
}

/// What the rules say: the stored versions, and what a put or delete comes to.
#[derive(Default)]
struct Rules {
    resources: EndpointIndex<Resource>,
    stored: BTreeMap<DocumentKey, Version>,
}

impl Rules {
    /// The answer, or none where it is refused.
    fn take(&mut self, case: &Case) -> Option<&'static str> {
        // From plain SQL a URL has to be as it is stored.
        let url = DocumentUrl::parse(&case.url).ok().filter(|url| url.as_str() == case.url)?;
        let matching = self.resources.find_all(&url);
        let resource = matching.first()?;
        let keys: Vec<DocumentKey> =
            matching.iter().map(|it| DocumentKey::new(it.id, url.clone())).collect();
        let version = |key: &DocumentKey| self.stored.get(key).copied();
        let live = |key: &DocumentKey| version(key).is_some_and(|version| !version.is_gone());
        // A put is for the most specific one; a delete for where the document is live, else where its tombstone is.
        let key = match &case.content {
            Some(_) => None,
            None => {
                keys.iter().find(|key| live(key)).or(keys.iter().find(|key| version(key).is_some()))
            }
        };
        let key = key.unwrap_or(&keys[0]).clone();
        let stored = version(&key);
        let detected = match &case.content {
            Some(content) => {
                if matches!(resource.change.format(), ChangeFormat::Layout(_)) {
                    return None;
                }
                let read = Content::parse(&resource.change, content.clone().into_bytes().into());
                let (revision, _) = read.ok()?;
                if case.revision.is_some_and(|given| given != revision.get()) {
                    return None;
                }
                detect_put(stored, revision)
            }
            None => detect_delete(stored, case.revision.map(Into::into)),
        };
        if let Some(version) = detected.store {
            if detected.change.notifies() {
                for key in keys {
                    self.stored.entry(key).and_modify(|it| *it = Version::gone(it.revision()));
                }
            }
            self.stored.insert(key, version);
        }
        Some(detected.change.as_str())
    }
}

async fn ask(
    client: &Client,
    scratch: &Scratch,
    case: &Case,
) -> Result<String, tokio_postgres::Error> {
    let schema = &scratch.name;
    let row = match &case.content {
        Some(content) => {
            let sql = format!("SELECT {schema}.put($1, $2::text, $3)");
            client.query_one(&sql, &[&case.url, content, &case.revision]).await?
        }
        None => {
            let sql = format!("SELECT {schema}.delete($1, $2)");
            client.query_one(&sql, &[&case.url, &case.revision]).await?
        }
    };
    Ok(row.get(0))
}

/// `FLARE_SQL_CASES` of them (3,000); `FLARE_SQL_SEED` makes the same ones again.
#[allow(clippy::disallowed_methods, reason = "each run tries others")]
async fn answers_are_those_of_the_rules(uri: String) {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let seed = number("FLARE_SQL_SEED").unwrap_or_else(|| u64::try_from(now).unwrap());
    let count = number("FLARE_SQL_CASES").unwrap_or(3_000);
    eprintln!("{count} cases: FLARE_SQL_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);

    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let mut rules = Rules::default();
    for (which, (endpoint, field, format)) in cases::RESOURCES.iter().enumerate() {
        let resource = insert(&backend, which as u64, endpoint, (field, *format)).await;
        rules.resources.insert(&resource.endpoint.clone(), resource).unwrap();
    }
    let client = scratch.connect().await;
    client.batch_execute("SET synchronous_commit = off").await.unwrap();
    let mut answered = BTreeMap::new();
    for n in 0..count {
        let case = Case::random(&mut random, n);
        let expected = rules.take(&case);
        let answer = ask(&client, &scratch, &case).await;
        let shown = || format!("case {n} of FLARE_SQL_SEED={seed}: {case:?}: {answer:?}");
        match (&answer, expected) {
            (Ok(answer), Some(expected)) => assert_eq!(answer, expected, "{}", shown()),
            (Err(error), None) => assert!(error.as_db_error().is_some(), "{}", shown()),
            (_, expected) => panic!("{expected:?} expected, {}", shown()),
        }
        *answered.entry(expected.unwrap_or("refused")).or_insert(0_u64) += 1;
    }
    eprintln!("{answered:?}");
    assert_eq!(answered.len(), 6, "every answer is among them: {answered:?}");
    let keys: Vec<DocumentKey> = rules.stored.keys().cloned().collect();
    for keys in keys.chunks(500) {
        let found = backend.repository().documents(keys.to_vec()).await.unwrap();
        for (key, found) in keys.iter().zip(found) {
            let version = found.map(|document| document.version);
            assert_eq!(version.as_ref(), rules.stored.get(key), "{key:?} of seed {seed}");
        }
    }
}

/// Without [`PostgresBackend::wake`]: by the commit alone, and long before the reconciler would look.
#[allow(clippy::disallowed_methods, reason = "the clients of a real server are told in real time")]
async fn commits_reach_clients(uri: String) {
    let scratch = Scratch::new(&uri);
    let config = scratch.config().poll_every(Duration::from_millis(200));
    let backend = PostgresBackend::connect(config).await.unwrap();
    let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
    let (flare, runtime) =
        Flare::builder(backend.clone()).delivery(Arc::clone(&delivery) as _).build().unwrap();
    let running = runtime.spawn();
    let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
    let orders = flare.create_resource(orders).await.unwrap();
    let spec = SubscriptionSpec::post("http://client.example/");
    flare.create_subscription(orders.id, spec).await.unwrap();
    let host = scratch.connect().await;
    let put = |id: u64| {
        let schema = &scratch.name;
        format!("SELECT {schema}.put('http://shop.example/orders/{id}', '{{\"rev\":1}}')")
    };
    // What is told of the first one shows that all is set up.
    host.batch_execute(&put(0)).await.unwrap();
    delivery.wait_for(1).await;

    host.batch_execute(&format!("BEGIN; {}; ROLLBACK", put(1))).await.unwrap();
    host.batch_execute(&format!("BEGIN; {}; {}; COMMIT", put(2), put(3))).await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(4), delivery.wait_for(3)).await;
    let told = told.expect("sooner than the reconciler would find it");
    // Each of some within a second of its commit, or nearly each: the machine has other things to do.
    let mut took = Vec::new();
    for id in 4..15_u64 {
        host.batch_execute(&put(id)).await.unwrap();
        let began = std::time::Instant::now();
        delivery.wait_for(id).await;
        took.push(began.elapsed());
    }
    took.sort();
    assert!(took[took.len() / 2] < Duration::from_secs(1), "{took:?}");
    let mut told: Vec<_> = told.iter().map(|told| told.request.document.to_string()).collect();
    told.sort();
    let expected = [0, 2, 3].map(|id| format!("http://shop.example/orders/{id}"));
    assert_eq!(told, expected);
    let kept = backend.repository().count_documents(orders.id).await.unwrap();
    assert_eq!(kept, 14, "nothing is left of what was rolled back");
    drop(running);
}

/// Every way to put a document, each in a resource that is more specific than the one before.
async fn a_move_is_finished(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let all = insert(&backend, 1, "http://shop.example/{kind}/{id}", ("rev", None)).await;
    let mut client = scratch.connect().await;
    let urls = ["http://shop.example/orders/1", "http://shop.example/orders/2"];
    let put = format!("SELECT {}.put($1, $2::text)", scratch.name);
    for url in urls {
        let answer: String = client.query_one(&put, &[&url, &r#"{"rev":7}"#]).await.unwrap().get(0);
        assert_eq!(answer, "created");
    }
    let orders = insert(&backend, 2, "http://shop.example/orders/{id}", ("rev", None)).await;
    let answer = client.query_one(&put, &[&urls[0], &r#"{"rev":3}"#]).await.unwrap();
    assert_eq!(answer.get::<_, String>(0), "created");
    let transaction = client.transaction().await.unwrap();
    backend.put_in(&transaction, [(urls[1], r#"{"rev":3}"#)]).await.unwrap();
    transaction.commit().await.unwrap();
    for url in urls {
        let url = DocumentUrl::parse(url).unwrap();
        let keys = [&all, &orders].map(|it| DocumentKey::new(it.id, url.clone()));
        let found = backend.repository().documents(keys.to_vec()).await.unwrap();
        let found = found.into_iter().map(|document| document.unwrap());
        let found: Vec<_> = found.map(|it| (it.version, it.moved_from)).collect();
        let expected = [(Version::gone(7.into()), None), (Version::live(3.into()), None)];
        assert_eq!(found, expected, "{url}");
    }
}

async fn a_prepared_put(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let layout = ("day", Some("2006-01-02"));
    let bills = insert(&backend, 1, "http://shop.example/bills/{id}", layout).await;
    let url = "http://shop.example/bills/1";
    let mut client = scratch.connect().await;
    for (day, answer) in
        [("02", "created"), ("02", "unchanged"), ("01", "stale"), ("03", "updated")]
    {
        let json = format!(r#"{{"day":"2024-05-{day}"}}"#);
        let put = backend.prepare_put("HTTP://shop.example/bills/1", json).await.unwrap();
        assert_eq!((put.url.as_str(), &put.resource), (url, &bills.id.to_string()));
        let transaction = client.transaction().await.unwrap();
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&put.resource, &put.url, &put.content, &put.revision];
        let row = transaction.query_one(&put.sql, &values).await.unwrap();
        assert_eq!(row.get::<_, String>(0), answer, "{day}");
        transaction.commit().await.unwrap();
    }
    let wrong = backend.prepare_put(url, r#"{"day":"yesterday"}"#).await.unwrap_err();
    assert!(wrong.to_string().contains("day"), "{wrong}");
    // The document is another resource's by the time it is put.
    let put = backend.prepare_put(url, r#"{"day":"2024-06-01"}"#).await.unwrap();
    insert(&backend, 2, "http://shop.example/{kind}/1", ("rev", None)).await;
    let stranger = insert(&backend, 3, "http://shop.example/carts/{id}", ("rev", None)).await;
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&stranger.id.to_string(), &put.url, &put.content, &put.revision];
    let refused = client.query_one(&put.sql, &values).await.unwrap_err();
    assert_eq!(refused.code().map(|code| code.code()), Some("40001"), "{refused}");
}

async fn jsonb(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let orders = insert(&backend, 1, "http://shop.example/orders/{id}", ("rev", None)).await;
    let client = scratch.connect().await;
    let put = |json: &str, revision: &str| {
        let schema = &scratch.name;
        format!("SELECT {schema}.put('http://shop.example/orders/1', '{json}'::jsonb{revision})")
    };
    for (json, revision, answer) in [
        (r#"{"rev":1,"a":2,"a":3}"#, "", "created"),
        (r#"{"rev":1}"#, "", "unchanged"),
        (r#"{"rev":2,"b":[1,null]}"#, ", 2", "updated"),
        (r#"{"rev":1}"#, "", "stale"),
    ] {
        let row = client.query_one(&put(json, revision), &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), answer, "{json}");
    }
    let url = DocumentUrl::parse("http://shop.example/orders/1").unwrap();
    let found = backend.repository().documents(vec![DocumentKey::new(orders.id, url)]).await;
    let content = found.unwrap().pop().flatten().unwrap().content.unwrap();
    assert_eq!(content.as_bytes(), br#"{"b": [1, null], "rev": 2}"#);
    for (json, revision) in [(r#"{"rev":3}"#, ", 4"), ("[3]", ""), ("null", "")] {
        assert!(client.query_one(&put(json, revision), &[]).await.is_err(), "{json}");
    }
}

/// A caller of the function behind a prepared put is not believed what can be seen.
async fn what_was_read(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let orders = insert(&backend, 1, "http://shop.example/orders/{id}", ("rev", None)).await;
    let bills =
        insert(&backend, 2, "http://shop.example/bills/{id}", ("day", Some("2006-01-02"))).await;
    let client = scratch.connect().await;
    let put = async |resource: &Resource, url: &str, content: &str, revision: &str| {
        let (schema, id) = (&scratch.name, resource.id);
        let url = format!("'http://shop.example/{url}'");
        let sql = format!("SELECT {schema}.put_read('{id}', {url}, {content}, {revision})");
        client.query_one(&sql, &[]).await.map(|row| row.get::<_, Option<String>>(0))
    };
    for (resource, url, content, revision) in [
        (&orders, "orders/1", "NULL", "1"),
        (&orders, "orders/1", "'{\"rev\":1}'", "NULL"),
        (&orders, "orders/1", "'{\"rev\":1}'", "2"),
        (&orders, "orders/1", "'[]'", "1"),
        (&orders, "bills/1", "'{\"rev\":1}'", "1"),
        (&bills, "bills/1", "'[1]'", "1"),
        (&bills, "bills/1", "'no json'", "1"),
        (&bills, "bills/1", "NULL", "1"),
        (&bills, "bills/1", "'{\"day\":\"2024-05-01\"}'", "NULL"),
    ] {
        let answer = put(resource, url, content, revision).await;
        assert!(answer.is_err(), "{url} {content} {revision}: {answer:?}");
    }
    let right = put(&bills, "bills/1", "'{\"day\":\"2024-05-01\"}'", "1714521600000000000").await;
    assert_eq!(right.unwrap().as_deref(), Some("created"));
    let kept = backend.repository().count_documents(orders.id).await.unwrap();
    assert_eq!(kept, 0, "nothing was stored that is wrong");
}

async fn rights(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    insert(&backend, 1, "http://shop.example/orders/{id}", ("rev", None)).await;
    let client = scratch.connect().await;
    let (schema, role) = (&scratch.name, format!("{}_host", scratch.name));
    let put = format!("SELECT {schema}.put('http://shop.example/orders/1', '{{\"rev\":1}}')");
    client
        .batch_execute(&format!(
            "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}; SET ROLE {role}"
        ))
        .await
        .unwrap();
    let refused = client.batch_execute(&put).await.unwrap_err();
    assert_eq!(refused.code().map(|code| code.code()), Some("42501"), "{refused}");
    client
        .batch_execute(&format!(
            "RESET ROLE; GRANT EXECUTE ON FUNCTION {schema}.put(text, text, bigint) TO {role}; SET ROLE {role}"
        ))
        .await
        .unwrap();
    client.batch_execute(&put).await.unwrap();
    let refused = client.batch_execute(&format!("SELECT * FROM {schema}.documents")).await;
    assert!(refused.is_err(), "it may put, and nothing else");
    client
        .batch_execute(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}"))
        .await
        .unwrap();
}
