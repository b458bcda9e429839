//! What the broker does not want is told for what it is, once it is opened or once it becomes so.

use std::time::Duration;

use bytes::Bytes;
use flare_backend_rabbitmq::RabbitMqConfig;
use flare_core::ErrorKind;
use flare_testkit::Trials;
use rcgen::generate_simple_self_signed;

use crate::support::{Proxy, Scratch, open};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

async fn a_wrong_password_is_denied(uri: String) {
    let scratch = Scratch::new(&uri, "classic").await;
    let refused = open(RabbitMqConfig::new(&uri).password("hush"), &scratch.queue).await;
    let error = refused.expect_err("nobody with that password is let in");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(!format!("{error:?}").contains("hush"), "{error:?}");
}

async fn an_unknown_virtual_host_is_not_found(uri: String) {
    let elsewhere = uri.replace("/%2f", "/nowhere");
    assert_ne!(elsewhere, uri);
    let error = open(RabbitMqConfig::new(elsewhere), "orders").await.expect_err("no such place");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

async fn an_unknown_queue_is_not_found(uri: String) {
    let error = open(RabbitMqConfig::new(uri), "t-missing").await.expect_err("no such queue");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("t-missing"), "{error}");
}

async fn nobody_at_the_address_is_temporary(_: String) {
    // Nothing listens on port 1 of the loopback.
    let error = open(RabbitMqConfig::new("amqp://flare:flare@127.0.0.1:1"), "orders").await;
    let error = error.expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

async fn a_queue_that_is_deleted_ends_the_source(uri: String) {
    for kind in ["classic", "quorum"] {
        let scratch = Scratch::new(&uri, kind).await;
        let source = open(RabbitMqConfig::new(&uri), &scratch.queue).await.unwrap();
        scratch.publish([Bytes::from("0")]).await;
        let held = source.receive(1, PATIENCE).await.unwrap();
        scratch.delete().await;
        let error = source.receive(1, PATIENCE).await.expect_err("the queue is gone");
        assert_eq!(error.kind(), ErrorKind::NotFound, "{kind}: {error}");
        assert!(!error.is_temporary());
        let lost = source.keep(vec![&held[0].receipt]).await.remove(0);
        assert_eq!(lost.unwrap_err().kind(), ErrorKind::Lost);
    }
}

async fn only_whom_we_trust_is_spoken_to_over_tls(uri: String) {
    let own = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let proxy = Proxy::encrypted(&uri, &own).await;
    let scratch = Scratch::new(&uri, "classic").await;
    scratch.publish([Bytes::from("0")]).await;
    let encrypted = format!("amqps://flare:flare@localhost:{}", proxy.port());
    let trusting = RabbitMqConfig::new(&encrypted).root_certificates(own.cert.pem());
    let source = open(trusting, &scratch.queue).await.unwrap();
    assert_eq!(source.receive(1, PATIENCE).await.unwrap()[0].body, "0");
    source.close().await;
    let other = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for config in [
        RabbitMqConfig::new(&encrypted),
        RabbitMqConfig::new(&encrypted).root_certificates(other.cert.pem()),
        RabbitMqConfig::new(encrypted.replace("localhost", "127.0.0.1"))
            .root_certificates(own.cert.pem()),
    ] {
        let error = open(config, &scratch.queue).await.expect_err("it is a stranger");
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("refusals")
        .test("a_wrong_password_is_denied", a_wrong_password_is_denied)
        .test("an_unknown_virtual_host_is_not_found", an_unknown_virtual_host_is_not_found)
        .test("an_unknown_queue_is_not_found", an_unknown_queue_is_not_found)
        .test("nobody_at_the_address_is_temporary", nobody_at_the_address_is_temporary)
        .test("a_queue_that_is_deleted_ends_the_source", a_queue_that_is_deleted_ends_the_source)
        .test("only_whom_we_trust_is_spoken_to_over_tls", only_whom_we_trust_is_spoken_to_over_tls)
}
