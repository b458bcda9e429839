//! Takes notifications for many clients; gives what they know, and whether any of it came twice or out
//! of order.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;
use tokio::net::TcpListener;

/// Clients, each of which is told of every document.
pub(crate) const CLIENTS: usize = 30;

/// All clients, on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Audience {
    address: String,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Debug, Default)]
struct Notes {
    /// The newest revision a client has of a document.
    newest: HashMap<(usize, String), u64>,
    heard: Heard,
}

/// What all of them were told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    pub(crate) notifications: u64,
    pub(crate) doubled: u64,
    pub(crate) backwards: u64,
}

impl Audience {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let audience = Self { address, notes: Arc::default() };
        let app = Router::new().route("/{client}", post(hear)).with_state(audience.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(audience)
    }

    /// Where a client wants to be told.
    pub(crate) fn url(&self, client: usize) -> String {
        format!("http://{}/{client}", self.address)
    }

    pub(crate) fn heard(&self) -> Heard {
        self.notes().heard
    }

    /// How many of what clients should have they do not have.
    pub(crate) fn behind(&self, newest: &HashMap<String, u64>) -> usize {
        let notes = self.notes();
        let lacks = |client: usize, (document, revision): (&String, &u64)| {
            notes.newest.get(&(client, document.clone())) != Some(revision)
        };
        let of = |client| newest.iter().filter(move |it| lacks(client, (it.0, it.1))).count();
        (0..CLIENTS).map(of).sum()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn hear(
    State(audience): State<Audience>,
    Path(client): Path<usize>,
    Json(told): Json<Value>,
) -> StatusCode {
    let (Some(document), Some(revision)) = (told["id"].as_str(), told["revision"].as_u64()) else {
        return StatusCode::BAD_REQUEST;
    };
    let mut notes = audience.notes();
    let newest = notes.newest.entry((client, document.to_owned())).or_default();
    let (doubled, backwards) = (revision == *newest, revision < *newest);
    *newest = revision.max(*newest);
    notes.heard.notifications += 1;
    notes.heard.doubled += u64::from(doubled);
    notes.heard.backwards += u64::from(backwards);
    StatusCode::NO_CONTENT
}
