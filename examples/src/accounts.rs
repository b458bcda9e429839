//! A host service: owns users, serves them over REST, and publishes every change with Flare.
//!
//! Flare takes three lines of it: [`Accounts::start`] says which documents there are, and
//! `put_user` and `delete_user` hand over each new version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use axum::{Json, Router};
use flare_core::model::{NewResource, Resource, SubscriptionSpec};
use flare_core::{Error, ErrorKind, Flare};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A user, as the service stores it and as clients are told of it.
#[derive(Debug, Clone, Serialize)]
pub struct User {
    /// What it is called.
    pub name: String,
    /// Grows with every change of any user: how Flare knows which version is newer.
    pub revision: u64,
}

/// What a request may set.
#[derive(Debug, Deserialize)]
pub struct NewUser {
    /// What it is called.
    pub name: String,
}

/// Who wants to be told of users, and where.
#[derive(Debug, Deserialize)]
pub struct NewListener {
    /// Such as `https://client.example.com/users/{id}`.
    pub url: String,
}

/// The service. Clones share everything.
#[derive(Debug, Clone)]
pub struct Accounts {
    flare: Flare,
    resource: Arc<Resource>,
    users: Arc<Mutex<Users>>,
}

#[derive(Debug, Default)]
struct Users {
    revision: u64,
    by_id: BTreeMap<String, User>,
}

impl Accounts {
    /// A service without users that publishes their changes.
    pub async fn start(flare: Flare) -> Result<Self, Error> {
        let users = NewResource::new("https://accounts.example.com/users/{id}");
        let resource = flare.create_resource(users.change_field("revision")).await?;
        Ok(Self { flare, resource: Arc::new(resource), users: Arc::default() })
    }

    /// The service's routes.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/users/{id}", put(put_user).delete(delete_user))
            .route("/listeners", post(listen))
            .with_state(self.clone())
    }

    /// Creates or changes a user.
    pub async fn put_user(&self, id: &str, new: NewUser) -> Result<User, Error> {
        let user = {
            let mut users = self.lock();
            users.revision += 1;
            let user = User { name: new.name, revision: users.revision };
            users.by_id.insert(id.to_owned(), user.clone());
            user
        };
        // Two requests may get here in either order: the revision decides, not the order.
        self.flare.put_document(&document(id), &user).await?;
        Ok(user)
    }

    /// Deletes a user; tells whether there was one.
    pub async fn delete_user(&self, id: &str) -> Result<bool, Error> {
        let revision = {
            let mut users = self.lock();
            if !users.by_id.contains_key(id) {
                return Ok(false);
            }
            users.revision += 1;
            users.revision
        };
        // First told, then forgotten: if telling fails, the user is there to be deleted again.
        self.flare.delete_document_at(&document(id), revision).await?;
        let mut users = self.lock();
        if users.by_id.get(id).is_some_and(|user| user.revision < revision) {
            users.by_id.remove(id);
        }
        Ok(true)
    }

    /// Lets a client be told of every change from now on.
    pub async fn listen(&self, new: NewListener) -> Result<(), Error> {
        let subscription = SubscriptionSpec::post(new.url);
        self.flare.create_subscription(self.resource.id, subscription).await?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The URL of a user's document, its key in Flare. An id is one segment of it, whatever it holds.
fn document(id: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_~".contains(byte);
    let escape = |byte: u8| match plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    let id: String = id.bytes().map(escape).collect();
    format!("https://accounts.example.com/users/{id}")
}

async fn put_user(
    State(accounts): State<Accounts>,
    Path(id): Path<String>,
    Json(new): Json<NewUser>,
) -> Result<Json<User>, Refusal> {
    Ok(Json(accounts.put_user(&id, new).await?))
}

async fn delete_user(
    State(accounts): State<Accounts>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    let found = accounts.delete_user(&id).await?;
    Ok(if found { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND })
}

async fn listen(
    State(accounts): State<Accounts>,
    Json(new): Json<NewListener>,
) -> Result<StatusCode, Refusal> {
    accounts.listen(new).await?;
    Ok(StatusCode::CREATED)
}

/// Flare's errors in the service's own terms.
struct Refusal(Error);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.0.kind() {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            // Asking again helps: the next version is handed over like any other.
            _ if self.0.is_temporary() => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let body: Value = json!({ "error": self.0.to_string() });
        (status, Json(body)).into_response()
    }
}
