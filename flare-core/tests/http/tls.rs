//! Secured connections: whom we trust, and who we are.

use std::sync::Arc;
use std::time::Duration;

use flare_core::http::{HttpConfig, HttpDelivery};
use flare_core::model::Timestamp;
use flare_core::port::{Clock, Delivery, FailureKind};
use flare_testkit::ManualClock;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CertifiedKey, IsCa, KeyPair,
    generate_simple_self_signed,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::sign;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::server::{Answer, Server};
use crate::{answer, delivery, failure, local, post};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issued(issuer: &Issuer, name: &str) -> CertifiedKey<KeyPair> {
    let signing_key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    let cert = params.signed_by(&signing_key, issuer).unwrap();
    CertifiedKey { cert, signing_key }
}

/// A server that shows `own` and, if `asks`, wants a certificate of that issuer.
async fn server(own: &CertifiedKey<KeyPair>, asks: Option<&Issuer>) -> Server {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match asks {
        None => builder.with_no_client_auth(),
        Some(issuer) => {
            let mut roots = RootCertStore::empty();
            roots.add(issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                .build()
                .unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = builder.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
    Server::secured(TlsAcceptor::from(Arc::new(config)), Answer::ok("secured")).await
}

fn url(server: &Server) -> String {
    format!("https://{}/?token=secret", server.address())
}

async fn refused(config: HttpConfig, url: String) -> (bool, String) {
    let (kind, sent, message) = failure(delivery(config).attempt(post(url)).await);
    assert_eq!(kind, FailureKind::Tls, "{message}");
    assert!(!message.contains("secret"), "{message}");
    (sent, message)
}

#[tokio::test]
async fn a_given_root_is_trusted_for_its_names_only() {
    let issuer = issuer();
    let config = local().roots_pem(issuer.pem());
    let good = server(&issued(&issuer, "127.0.0.1"), None).await;
    let outcome = delivery(config.clone()).attempt(post(url(&good))).await;
    assert_eq!(answer(outcome), (200, "secured".to_owned()));
    let (sent, message) = refused(local(), url(&good)).await;
    assert!(!sent && message.contains("UnknownIssuer"), "{message}");
    let other = server(&issued(&issuer, "other.example"), None).await;
    let (sent, message) = refused(config, url(&other)).await;
    assert!(!sent && message.contains("not valid for name"), "{message}");
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn we_show_who_we_are_when_asked() {
    let issuer = issuer();
    let server = server(&issued(&issuer, "127.0.0.1"), Some(&issuer)).await;
    let us = issued(&issuer, "flare.example");
    let config = local().roots_pem(issuer.pem());
    let known = config.clone().identity_pem(us.cert.pem() + &us.signing_key.serialize_pem());
    let outcome = delivery(known).attempt(post(url(&server))).await;
    assert_eq!(answer(outcome), (200, "secured".to_owned()));
    // In TLS 1.3 the refusal comes when the request may have left already.
    let (sent, message) = refused(config, url(&server)).await;
    assert!(sent, "{message}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_does_not_speak_tls_is_a_tls_failure() {
    let own = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let roots = local().roots_pem(own.cert.pem());
    for answer in [Answer::ok("plain"), Answer::Close(String::new())] {
        // The hello of TLS is no HTTP; this one answers after four bytes of anything.
        let plain = plain(answer).await;
        let (sent, _) = refused(roots.clone(), format!("https://{plain}/?token=secret")).await;
        assert!(!sent);
    }
}

async fn plain(answer: Answer) -> std::net::SocketAddr {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 4096];
        let _ = stream.read(&mut hello).await;
        let (Answer::Keep(text) | Answer::Close(text)) = answer else { return };
        let _ = stream.write_all(text.as_bytes()).await;
        let _ = stream.shutdown().await;
    });
    address
}

/// Takes seventy milliseconds to find its certificate.
#[derive(Debug)]
struct Slow {
    clock: ManualClock,
    certified: Arc<sign::CertifiedKey>,
}

impl ResolvesServerCert for Slow {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<sign::CertifiedKey>> {
        self.clock.advance_to(self.clock.now() + Duration::from_millis(70));
        Some(Arc::clone(&self.certified))
    }
}

#[tokio::test]
async fn securing_a_connection_is_told_apart_from_making_it() {
    let issuer = issuer();
    let own = issued(&issuer, "127.0.0.1");
    let clock = ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000));
    let provider = Arc::new(ring::default_provider());
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let certified = Arc::new(sign::CertifiedKey::new(vec![own.cert.der().clone()], key));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Slow { clock: clock.clone(), certified }));
    let server = Server::secured(TlsAcceptor::from(Arc::new(config)), Answer::ok("secured")).await;
    let config = local().roots_pem(issuer.pem());
    let delivery = HttpDelivery::new(config, Arc::new(clock)).unwrap();

    let first = delivery.attempt(post(url(&server))).await.phases;
    assert_eq!(first.tls, Some(Duration::from_millis(70)), "{first:?}");
    assert_eq!(first.connect, Some(Duration::ZERO), "{first:?}");
    assert_eq!(first.first_byte, Some(Duration::ZERO), "{first:?}");
    let second = delivery.attempt(post(url(&server))).await.phases;
    assert_eq!((second.connect, second.tls), (None, None), "the connection was there");
}
