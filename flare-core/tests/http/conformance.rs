//! `HttpDelivery` under the contract of the delivery port.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::http::{Guard, HttpConfig, HttpDelivery};
use flare_core::port::{Delivery, SystemClock};
use flare_testkit::{Fixture, delivery_suite};

struct Http;

#[async_trait]
impl Fixture for Http {
    type Port = dyn Delivery;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Delivery>, ()) {
        let guard = Guard::default().allow("127.0.0.1").unwrap();
        let config = HttpConfig::new().guard(guard);
        let delivery = HttpDelivery::new(config, Arc::new(SystemClock::new())).unwrap();
        (Arc::new(delivery), ())
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(100)
    }
}

delivery_suite!(Http);
