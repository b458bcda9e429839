//! Takes where a broker is; gives a way to it that can be cut and mended, plain or encrypted.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A listener in front of a broker.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    target: String,
    cut: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A way to the broker of a URI.
    pub(crate) async fn to(uri: &str) -> Self {
        Self::start(uri, None).await
    }

    /// The same, encrypted, with this certificate.
    pub(crate) async fn encrypted(uri: &str, own: &CertifiedKey<KeyPair>) -> Self {
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        Self::start(uri, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start(uri: &str, tls: Option<TlsAcceptor>) -> Self {
        let target = uri.split('@').nth(1).unwrap().split('/').next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, is_cut) = watch::channel(false);
        let to = target.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(client, to.clone(), tls.clone(), is_cut.clone()));
            }
        });
        Self { port, target, cut, accepting }
    }

    /// The same URI, by this way.
    pub(crate) fn uri(&self, uri: &str) -> String {
        uri.replace(&self.target, &format!("127.0.0.1:{}", self.port))
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Breaks all connections, and each that is made until it is mended.
    pub(crate) fn set_cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    client: TcpStream,
    to: String,
    tls: Option<TlsAcceptor>,
    mut is_cut: watch::Receiver<bool>,
) {
    let through = async {
        match tls {
            None => pass(client, &to).await,
            // A client that does not trust us says so and goes.
            Some(tls) => {
                if let Ok(client) = tls.accept(client).await {
                    pass(client, &to).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        _ = is_cut.wait_for(|cut| *cut) => {}
        () = through => {}
    }
}

async fn pass(mut client: impl AsyncRead + AsyncWrite + Unpin, to: &str) {
    if let Ok(mut server) = TcpStream::connect(to).await {
        // How it ends is the client's to find out.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
