//! Takes signed notifications, as a careful client's service would; gives on what it made of each:
//! verified, or refused with the reason. Knows nothing of Flare but the secret.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Notifications that wait to be looked at; beyond it the service answers slowly.
const BUFFER: usize = 100;

/// A service on this machine, of one instance per secret. They take turns, as behind a load
/// balancer.
#[derive(Debug)]
pub struct Verifier {
    /// Where it listens, as `127.0.0.1:port`.
    pub address: String,
    checked: mpsc::Receiver<Checked>,
}

/// A notification, and what came of it.
#[derive(Debug)]
pub struct Checked {
    /// The instance that had its turn, from 0 as the secrets were given.
    pub instance: usize,
    /// The headers as they came.
    pub headers: HeaderMap,
    /// The body as it came.
    pub body: Bytes,
    /// What it says, once it is known to be genuine; or why it is not believed.
    pub verdict: Result<String, String>,
}

#[derive(Clone)]
struct Service {
    instances: Arc<[Webhook]>,
    turn: Arc<AtomicUsize>,
    tell: mpsc::Sender<Checked>,
}

impl Verifier {
    /// Starts a service that takes notifications at `/hook`.
    pub async fn start(secrets: &[&str]) -> Result<Self, Box<dyn Error>> {
        let instances = secrets.iter().map(|secret| Webhook::new(secret));
        let instances = instances.collect::<Result<_, _>>()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (tell, checked) = mpsc::channel(BUFFER);
        let service = Service { instances, turn: Arc::default(), tell };
        let app = Router::new().route("/hook", post(take)).with_state(service);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { address, checked })
    }

    /// What was checked since it was last asked. It is noted before it is answered.
    pub fn checked(&mut self) -> Vec<Checked> {
        std::iter::from_fn(|| self.checked.try_recv().ok()).collect()
    }
}

/// Verifies first: nothing of a request is believed, or even read, before.
async fn take(State(service): State<Service>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let instance = service.turn.fetch_add(1, Ordering::Relaxed) % service.instances.len().max(1);
    let Some(webhook) = service.instances.get(instance) else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    let (status, verdict) = match webhook.verify(&body, &headers) {
        Ok(()) => (StatusCode::NO_CONTENT, Ok(sentence(&body))),
        Err(error) => (StatusCode::UNAUTHORIZED, Err(error.to_string())),
    };
    // Nobody listens any more: then nobody minds.
    let _ = service.tell.send(Checked { instance, headers, body, verdict }).await;
    status
}

/// What a notification says.
fn sentence(body: &[u8]) -> String {
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{} {} ({})", text(&told["action"]), text(&told["id"]), text(&told["document"]["name"]))
}
