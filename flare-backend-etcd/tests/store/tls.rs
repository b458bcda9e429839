//! etcd behind TLS: whom we trust, by which name, and whom it trusts; and what is said otherwise.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use flare_backend_etcd::{EtcdConfig, EtcdLease};
use flare_core::port::{Lease, Write};
use flare_core::{Error, ErrorKind};
use flare_testkit::Trials;
use futures::StreamExt;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::support::proxy::Proxy;
use crate::support::{Scratch, made};

/// The name in the members' certificate.
const NAME: &str = "etcd.test";

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("tls")
        .test("a_member_that_is_trusted_is_used", a_member_that_is_trusted_is_used)
        .test("a_member_that_is_not_trusted_is_named", a_member_that_is_not_trusted_is_named)
        .test("a_member_may_ask_for_a_certificate", a_member_may_ask_for_a_certificate)
}

/// Somebody who signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate and its key, in PEM.
    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// etcd with such a certificate; it may want one, too.
    async fn serve(&self, url: &str, wants_one: bool) -> Proxy {
        let (certificate, key) = self.sign(NAME);
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = if wants_one {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(self.pem().as_bytes()).unwrap()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let mut tls = builder.with_single_cert(vec![certificate], key).unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Proxy::with_tls(url, tls).await
    }
}

fn config(scratch: &Scratch, proxy: &Proxy) -> EtcdConfig {
    let url = format!("https://127.0.0.1:{}", proxy.port());
    scratch.config_at([&*url]).timeout(Duration::from_secs(10))
}

async fn refusal(config: EtcdConfig) -> Error {
    let error = EtcdLease::connect(config).await.expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    error
}

async fn a_member_that_is_trusted_is_used(endpoints: String) {
    let (scratch, authority) = (Scratch::new(&endpoints), Authority::new());
    let proxy = authority.serve(&scratch.endpoints[0], false).await;
    let config = config(&scratch, &proxy).authority(authority.pem()).domain(NAME);
    let lease = EtcdLease::connect(config).await.expect("it is trusted");
    let from = lease.list("").await.expect("it is listed").revision;
    let written = made(lease.write(Write::new("key", "x")).await.expect("it is written"));
    let event = lease.watch("", from).next().await.expect("there is one").expect("it is told");
    assert_eq!(event.revision, written);
}

async fn a_member_that_is_not_trusted_is_named(endpoints: String) {
    let (scratch, authority) = (Scratch::new(&endpoints), Authority::new());
    let proxy = authority.serve(&scratch.endpoints[0], false).await;
    let config = || config(&scratch, &proxy);
    let by_others = refusal(config().authority(Authority::new().pem()).domain(NAME)).await;
    assert!(by_others.to_string().contains("invalid peer certificate"), "{by_others}");
    let another = refusal(config().authority(authority.pem())).await;
    assert!(another.to_string().contains("not valid for name"), "{another}");
}

async fn a_member_may_ask_for_a_certificate(endpoints: String) {
    let (scratch, authority) = (Scratch::new(&endpoints), Authority::new());
    let proxy = authority.serve(&scratch.endpoints[0], true).await;
    let config = || config(&scratch, &proxy).authority(authority.pem()).domain(NAME);
    // What the member says about it may be lost with the connection.
    let without = EtcdLease::connect(config()).await.expect_err("it is refused").to_string();
    let said = ["CertificateRequired", "does it want a certificate"];
    assert!(said.iter().any(|words| without.contains(words)), "{without}");
    let (certificate, key) = authority.sign("flare");
    EtcdLease::connect(config().identity(certificate, key)).await.expect("it is trusted");
}
