//! Takes what is to be exported, on threads of the exporters' own; sends it from the server's runtime.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;

use crate::client;
use crate::failure::Failure;

/// A collector that takes longer gets the same again later.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// Sends requests on a runtime, wherever it is asked to.
#[derive(Debug, Clone)]
pub(super) struct CollectorClient {
    client: reqwest::Client,
    runtime: Handle,
}

impl CollectorClient {
    /// Of the runtime that this is called on.
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self { client: client::new(LIMIT)?, runtime: Handle::current() })
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let answer = self.runtime.spawn(async move {
            let mut answer = client.execute(request.try_into()?).await?;
            let mut response = Response::builder().status(answer.status());
            if let Some(headers) = response.headers_mut() {
                *headers = std::mem::take(answer.headers_mut());
            }
            Ok(response.body(answer.bytes().await?)?)
        });
        answer.await?
    }
}
