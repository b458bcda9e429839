//! Takes a new connection; tells whether it goes to one process of the server for as long as it lasts, or through
//! a pooler that may hand each transaction to another one. Sends nothing but one question.
//!
//! A server tells a client at its start which process serves it, for cancelling. A pooler answers that before
//! it has a process for the client, so it makes up a number; the process that runs the question tells its own.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{CancelToken, Client, Error};

/// Bytes of a request to cancel: its length, its code, the process, the key.
const REQUEST: usize = 16;

/// Whether the process that serves this client is the one it was told of.
pub(super) async fn is_direct(client: &Client) -> Result<bool, Error> {
    let row = client.query_typed_one("SELECT pg_backend_pid()", &[]).await?;
    let serving: i32 = row.try_get(0)?;
    Ok(told_process(&client.cancel_token()).await == Some(serving))
}

/// The process that a client was told of, which only a request to cancel says.
async fn told_process(token: &CancelToken) -> Option<i32> {
    let written = Arc::new(Mutex::new(Vec::new()));
    token.cancel_query_raw(Overhearing(Arc::clone(&written)), InTheClear).await.ok()?;
    let written = written.lock().unwrap_or_else(PoisonError::into_inner);
    // Before it there may have been a request to encrypt.
    let [.., a, b, c, d, _, _, _, _] = written.last_chunk::<REQUEST>()?;
    Some(i32::from_be_bytes([*a, *b, *c, *d]))
}

/// Keeps what is written to it; agrees to be encrypted, and is not.
struct Overhearing(Arc<Mutex<Vec<u8>>>);

struct InTheClear;

impl TlsConnect<Overhearing> for InTheClear {
    type Stream = Overhearing;
    type Error = io::Error;
    type Future = Ready<io::Result<Overhearing>>;

    fn connect(self, stream: Overhearing) -> Self::Future {
        ready(Ok(stream))
    }
}

impl TlsStream for Overhearing {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Overhearing {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buf.put_slice(b"S");
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Overhearing {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
