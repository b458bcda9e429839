//! The list of consumers as an operator needs it: which of them fail, how far each is behind, what it gets.

use std::sync::Arc;

use axum::Router;
use flare_backend_memory::{MemoryBackend, MemoryBroker};
use flare_console::router;
use flare_core::Flare;
use flare_core::model::consumer::MappingInput;
use flare_core::model::{
    ConsumerId, ConsumerState, Epoch, NewConsumer, Resource, SourceSettings, WindowRates,
};
use flare_core::port::{Clock, ConsumerStore, SystemClock};
use serde_json::json;

use crate::support::Pages;

/// Pages of a Flare whose consumers are worked by nobody.
fn pages() -> (Pages, MemoryBackend) {
    let memory = MemoryBackend::new();
    let builder = Flare::builder(memory.clone()).source(Arc::new(MemoryBroker::new()));
    let (flare, runtime) = builder.build().unwrap();
    runtime.unused();
    let pages = Router::new().nest("/console", router(flare.clone()));
    (Pages::of(flare, pages), memory)
}

async fn consumer(pages: &Pages, users: &Resource, queue: &str) -> ConsumerId {
    let source = SourceSettings::new("memory", json!({"queue": queue})).unwrap();
    let mut mapping = MappingInput::default();
    mapping.url = "http://api.example.com/users/{/id}".to_owned();
    pages.flare.create_consumer(users.id, NewConsumer::new(source, mapping)).await.unwrap().id
}

/// What an owner would have stored just now.
fn state() -> ConsumerState {
    let mut state = ConsumerState::default();
    state.stored_at = SystemClock::new().now().unix_nanos();
    state
}

#[tokio::test]
async fn consumers_are_listed_with_how_they_are_doing() {
    let (pages, memory) = pages();
    let users = pages.users().await;
    let busy = consumer(&pages, &users, "busy").await;
    let away = consumer(&pages, &users, "away").await;
    consumer(&pages, &users, "fresh").await;
    let store = async |id, state| {
        memory.repository().store_consumer_state(Epoch::new(1), id, state).await.unwrap();
    };
    let mut its = state();
    (its.depth, its.rejected) = (Some(1_234), 5);
    its.rates.received = WindowRates::new(12.34, 0.0);
    store(busy, its).await;
    let mut its = state();
    (its.behind_millis, its.last_error) = (Some(90_000), Some("<away>".to_owned()));
    its.last_error_at = Some(its.stored_at);
    store(away, its).await;

    let list = pages.get("consumers").await;
    let text = list.shown(200);
    assert!(text.contains("data-live"), "it keeps itself fresh");
    let rows: Vec<&str> = text.split("<tr>").filter(|row| row.contains("data-label")).collect();
    let [busy, away, fresh] = rows[..] else { panic!("{text}") };
    for figure in [">active<", ">1,234 messages<", ">12.3<", ">5<", "no node"] {
        assert!(busy.contains(figure), "{figure} is not in {busy}");
    }
    assert!(!busy.contains("Last error"), "{busy}");
    for figure in [">failing<", ">1 min<", "&#60;away&#62;", "Last error, <time"] {
        assert!(away.contains(figure), "{figure} is not in {away}");
    }
    assert!(fresh.contains(">active<") && fresh.contains(">–<"), "{fresh}");
    let overview = pages.get("overview").await;
    assert!(overview.shown(200).contains("pull documents in; 1 failing"), "{}", overview.text);
}
