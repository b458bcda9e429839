//! Takes notifications, as a client's own service would; gives them on as sentences. It can be
//! down for a while.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Sentences that wait to be read; beyond it the client answers slowly, which is its right.
const BUFFER: usize = 100;

/// A client on this machine, reachable at [`url`](Self::url).
#[derive(Debug)]
pub struct Client {
    /// Where it listens, without a path.
    pub url: String,
    heard: mpsc::Receiver<String>,
    down: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Hearing {
    say: mpsc::Sender<String>,
    down: Arc<AtomicBool>,
}

impl Client {
    /// Starts a client that takes notifications at `/users/{id}`.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (say, heard) = mpsc::channel(BUFFER);
        let down = Arc::new(AtomicBool::new(false));
        let hearing = Hearing { say, down: Arc::clone(&down) };
        let app = Router::new().route("/users/{id}", post(hear)).with_state(hearing);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { url, heard, down })
    }

    /// Lets every request fail from now on, or no longer.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Release);
    }

    /// Waits for the next thing it was told.
    pub async fn hear(&mut self) -> Option<String> {
        self.heard.recv().await
    }

    /// What it was told since it was last asked. It notes a notification before it answers, so
    /// once Flare has settled everything, everything is here.
    pub fn heard(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}

async fn hear(State(client): State<Hearing>, Json(told): Json<Value>) -> StatusCode {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let (action, id) = (text(&told["action"]), text(&told["id"]));
    let sentence = match told["document"]["name"].as_str() {
        Some(name) => format!("{action} {id} ({name})"),
        None => format!("{action} {id}"),
    };
    let (status, sentence) = match client.down.load(Ordering::Acquire) {
        false => (StatusCode::NO_CONTENT, format!("client told: {sentence}")),
        true => (StatusCode::SERVICE_UNAVAILABLE, format!("client is down, misses: {sentence}")),
    };
    // Nobody listens any more: then nobody minds.
    let _ = client.say.send(sentence).await;
    status
}
