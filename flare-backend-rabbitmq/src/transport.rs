//! Takes an address; gives a connection to it, plain or encrypted by rustls with ring, in the form that the client
//! of RabbitMQ wants. That client's own TLS would bring twenty crates more.

use std::fmt;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_compat::Compat;
use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use flare_core::{Error, ErrorKind, Result};
use futures::io::{AsyncRead, AsyncWrite};
use futures::stream::Stream;
use lapin::tcp::AsyncTcpStream;
use lapin::uri::AMQPUri;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::BACKEND;

/// Whom we believe to be the broker.
#[derive(Clone)]
pub(crate) struct Trust(TlsConnector);

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}

impl Trust {
    /// Those whom the machine trusts.
    pub(crate) fn machine() -> Result<Self> {
        let mut roots = RootCertStore::empty();
        // A certificate of the machine's that cannot be read is one that nobody is trusted by.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self::in_roots(roots)
    }

    /// Those whom one of these certificates vouches for; nothing where there is none in it.
    pub(crate) fn only(pem: &str) -> Result<Option<Self>> {
        let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            let Ok(certificate) = certificate else { return Ok(None) };
            if roots.add(certificate).is_err() {
                return Ok(None);
            }
        }
        if roots.is_empty() { Ok(None) } else { Self::in_roots(roots).map(Some) }
    }

    fn in_roots(roots: RootCertStore) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| {
            Error::new(ErrorKind::Internal, "connect").with_backend(BACKEND).with_source(error)
        })?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

/// Bytes to and from a broker, encrypted or not.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<W: AsyncRead + AsyncWrite + Send + Unpin> Wire for W {}

/// The client's runtime: tokio's, with connections of our own making.
pub(crate) type BrokerRuntime = Runtime<RuntimeParts<Tokio, Wires>>;

/// The runtime that this is called on.
pub(crate) fn runtime() -> BrokerRuntime {
    Runtime::new(RuntimeParts::new(Tokio::current(), Wires(Tokio::current())))
}

/// Connects to a broker, whom `trust` has to vouch for.
pub(crate) async fn connect(
    uri: &AMQPUri,
    trust: Option<&Trust>,
) -> io::Result<AsyncTcpStream<Box<dyn Wire>>> {
    let host = uri.authority.host.as_str();
    let plain = TcpStream::connect((host, uri.authority.port)).await?;
    // Acknowledgements are small, and are waited for.
    plain.set_nodelay(true)?;
    let wire: Box<dyn Wire> = match trust {
        None => Box::new(Compat::new(plain)),
        Some(Trust(connector)) => {
            let name = ServerName::try_from(host.to_owned());
            let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            Box::new(Compat::new(connector.connect(name, plain).await?))
        }
    };
    Ok(AsyncTcpStream::Plain(wire))
}

/// What the client asks of a runtime beside its connections, as tokio does it.
#[derive(Debug, Clone)]
pub(crate) struct Wires(Tokio);

impl Reactor for Wires {
    type TcpStream = Box<dyn Wire>;
    type Sleep = <Tokio as Reactor>::Sleep;

    /// Never asked for: the client takes connections as they are made.
    fn register<H: Read + Write + Send + 'static>(
        &self,
        _socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        Err::<Self::TcpStream, _>(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.0.sleep(time)
    }

    fn interval(&self, time: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(time)
    }

    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        let connecting = self.0.tcp_connect_addr(address);
        async move { Ok(Box::new(connecting.await?) as Box<dyn Wire>) }
    }
}
