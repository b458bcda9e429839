//! Takes notifications at one URL per lane; gives what every lane has been told, by whom and when, and what
//! of it came twice or out of order.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::world::{ANSWERS_AFTER, NODE_HEADER, parse_document};

/// One lane and one document of its resource.
pub type Pair = (usize, usize);

/// A request, as it came.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub at: Instant,
    pub node: String,
    pub lane: usize,
    pub document: usize,
    pub revision: i64,
    pub webhook_id: String,
}

/// A version that came again.
#[derive(Debug, Clone)]
pub struct Doubled {
    pub first: Arrival,
    pub again: Arrival,
}

/// A version that came after a newer one; shown as it is, so nobody reads one part of it.
#[derive(Debug, Clone)]
#[allow(dead_code, reason = "evidence")]
pub struct Backwards {
    pub newer: Arrival,
    pub older: Arrival,
}

/// What came since it was last looked at.
#[derive(Debug, Default)]
pub struct Heard {
    /// In order.
    pub arrivals: Vec<Arrival>,
    pub doubled: Vec<Doubled>,
    pub backwards: Vec<Backwards>,
    /// What no notification should look like.
    pub malformed: Vec<String>,
}

/// What the client noted.
#[derive(Debug, Default)]
pub struct Notes {
    /// The newest each lane has of each document.
    newest: HashMap<Pair, Arrival>,
    /// Who first brought each version.
    first: HashMap<(Pair, i64), Arrival>,
    pub heard: Heard,
}

impl Notes {
    fn note(&mut self, arrival: Arrival) {
        let pair = (arrival.lane, arrival.document);
        match self.first.get(&(pair, arrival.revision)) {
            Some(first) => {
                self.heard.doubled.push(Doubled { first: first.clone(), again: arrival.clone() });
            }
            None => _ = self.first.insert((pair, arrival.revision), arrival.clone()),
        }
        match self.newest.get(&pair) {
            Some(newer) if newer.revision > arrival.revision => {
                let newer = newer.clone();
                self.heard.backwards.push(Backwards { newer, older: arrival.clone() });
            }
            _ => _ = self.newest.insert(pair, arrival.clone()),
        }
        self.heard.arrivals.push(arrival);
    }

    /// What came since the last time.
    pub fn take(&mut self) -> Heard {
        std::mem::take(&mut self.heard)
    }

    /// The revision a lane has of a document.
    pub fn revision(&self, pair: Pair) -> Option<i64> {
        self.newest.get(&pair).map(|arrival| arrival.revision)
    }

    /// The first time after `since` that one of the lanes was told something by somebody else.
    pub fn first_by_others(
        &self,
        since: Instant,
        lanes: &BTreeSet<usize>,
        not_by: &BTreeSet<String>,
    ) -> Option<Instant> {
        let others =
            |it: &&Arrival| it.at > since && lanes.contains(&it.lane) && !not_by.contains(&it.node);
        self.heard.arrivals.iter().find(others).map(|arrival| arrival.at)
    }
}

/// The client of all lanes.
#[derive(Debug, Clone)]
pub struct Client {
    notes: Arc<Mutex<Notes>>,
    address: String,
}

impl Client {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let client = Self { notes: Arc::default(), address };
        let app = Router::new().route("/lanes/{lane}", post(hear)).with_state(client.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        client
    }

    /// Where a lane's notifications go.
    pub fn url(&self, lane: usize) -> String {
        format!("http://{}/lanes/{lane}", self.address)
    }

    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }
}

async fn hear(
    State(client): State<Client>,
    Path(lane): Path<usize>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let at = Instant::now();
    match read(at, lane, &headers, &body) {
        Some(arrival) => client.notes().note(arrival),
        None => {
            let text = format!("lane {lane}: {headers:?} {}", String::from_utf8_lossy(&body));
            client.notes().heard.malformed.push(text);
        }
    }
    tokio::time::sleep(ANSWERS_AFTER).await;
    StatusCode::NO_CONTENT
}

fn read(at: Instant, lane: usize, headers: &HeaderMap, body: &[u8]) -> Option<Arrival> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let told: Value = serde_json::from_slice(body).ok()?;
    let (_, document) = parse_document(told["id"].as_str()?)?;
    Some(Arrival {
        at,
        node: header(NODE_HEADER)?,
        lane,
        document,
        revision: told["revision"].as_i64()?,
        webhook_id: header("webhook-id")?,
    })
}
