//! Takes a request of the delivery port; gives what became of sending it over HTTP, once.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::{Either, select};
use reqwest::Client;

use super::answer::Limits;
use super::names::{Names, is_localhost};
use super::request::{PreparedRequest, TargetHost, prepare};
use super::{Guard, HttpConfig, Resolver, answer, attempt_scope, client, failure};
use crate::error::Error;
use crate::model::duration::format_duration;
use crate::port::{Clock, Delivery, DeliveryOutcome, DeliveryRequest, FailureKind};

/// Delivery over HTTP/1.1, plain or secured, on one pool of connections.
///
/// Cloning is cheap and shares the pool. It has to be used within a tokio runtime.
#[derive(Clone)]
pub struct HttpDelivery {
    client: Client,
    config: Arc<HttpConfig>,
    clock: Arc<dyn Clock>,
}

impl HttpDelivery {
    /// Checks the settings and reads the system's root certificates and how it looks names up;
    /// connects to no client.
    ///
    /// The error names the setting that is wrong.
    pub fn new(config: HttpConfig, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let names = Arc::new(Names::new(&config, Arc::clone(&clock)));
        Self::with_resolver(config, clock, names)
    }

    /// As [`new`](Self::new), with another way of looking names up, such as
    /// [`SystemResolver`](super::SystemResolver). Its answers pass the guard like the others; what
    /// it remembers, and how many look-ups it makes at a time, is its own affair.
    pub fn with_resolver(
        config: HttpConfig,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, Error> {
        let client = client::build(&config, Arc::clone(&clock), resolver)?;
        Ok(Self { client, config: Arc::new(config), clock })
    }

    async fn attempt_once(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let timeout = request.timeout;
        // What is read for people is bounded by the settings; what matters, by who needs it.
        let whole = request.needs_whole;
        let most = if whole { usize::MAX } else { self.config.excerpt_limit };
        let excerpt_limit = request.excerpt_limit.min(most);
        // By the clock that cannot be set: a time of day may come early, or never.
        let deadline = self.clock.monotonic().saturating_add(timeout);
        let prepared = match prepare(request) {
            Ok(prepared) => prepared,
            Err(reason) => return DeliveryOutcome::failed(FailureKind::Unsendable, reason, false),
        };
        let behind_proxy = self.config.proxy.is_some();
        if let Err(reason) = judge(&self.config.guard, &prepared.host, behind_proxy) {
            return DeliveryOutcome::failed(FailureKind::Refused, reason, false);
        }
        let PreparedRequest { request, target, .. } = prepared;
        let begun = self.clock.monotonic();
        let exchange = Box::pin(attempt_scope::within(deadline, self.client.execute(request)));
        // The exchange is polled first: when time runs out while connecting, it says so itself,
        // and only then is it certain that nothing was sent.
        match select(exchange, self.clock.sleep(timeout)).await {
            Either::Left(((Ok(response), told), _)) => {
                let asked_at = told.connected_at.unwrap_or(begun);
                let mut phases = told.phases;
                phases.first_byte = Some(self.clock.monotonic().saturating_sub(asked_at));
                let limits = Limits {
                    excerpt: excerpt_limit,
                    drain: self.config.drain_limit,
                    whole,
                    time: deadline.saturating_sub(self.clock.monotonic()),
                };
                answer::read(response, limits, &*self.clock).await.in_phases(phases)
            }
            Either::Left(((Err(error), told), _)) => {
                failure::outcome(error, &target).in_phases(told.phases)
            }
            Either::Right(((), _)) => {
                let message = format!("{target}: no answer within {}", format_duration(timeout));
                DeliveryOutcome::failed(FailureKind::Timeout, message, true)
            }
        }
    }
}

/// Judges what no resolver will see: literal addresses and, behind a proxy, our own machine's name.
fn judge(guard: &Guard, host: &TargetHost, behind_proxy: bool) -> Result<(), String> {
    match host {
        TargetHost::Literal(address) => {
            guard.check(*address).map_err(|refusal| refusal.to_string())
        }
        TargetHost::Name(name) if behind_proxy && is_localhost(name) => {
            let refused = guard.check([127, 0, 0, 1].into());
            refused.map_err(|refusal| format!("{name} is 127.0.0.1: {refusal}"))
        }
        TargetHost::Name(_) => Ok(()),
    }
}

#[async_trait]
impl Delivery for HttpDelivery {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let started = self.clock.monotonic();
        let outcome = self.attempt_once(request).await;
        outcome.after(self.clock.monotonic().saturating_sub(started))
    }
}

impl fmt::Debug for HttpDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpDelivery").field("config", &self.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_proxy_localhost_is_judged_by_name() {
        let guard = Guard::default();
        let name = |text: &str| TargetHost::Name(text.to_owned());
        for host in ["localhost", "LOCALHOST.", "a.localhost"] {
            assert!(judge(&guard, &name(host), true).is_err(), "{host}");
            assert!(judge(&guard, &name(host), false).is_ok(), "{host}: the resolver's turn");
        }
        assert!(judge(&guard, &name("localhost.example"), true).is_ok());
        let open = guard.allow("127.0.0.0/8").unwrap();
        assert!(judge(&open, &name("localhost"), true).is_ok());
    }
}
