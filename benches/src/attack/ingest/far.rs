//! Takes the address of a server; is another one for it that is so far away: what is said arrives
//! later, in either direction, and in order.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::Result;

/// Pieces that are on their way in one direction of a connection.
const ON_THE_WAY: usize = 256;
/// Bytes of a piece.
const PIECE: usize = 16 << 10;

/// A server, seen from far away. Ends with it.
pub(super) struct Far {
    address: SocketAddr,
    task: AbortHandle,
}

impl Far {
    /// A server at `target` that every byte needs `delay` to reach, and to come back from.
    pub(super) async fn away(target: String, delay: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let accept = async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let target = target.clone();
                connections.spawn(async move {
                    // Whoever cannot connect sees that the connection is closed.
                    if let Ok(far) = TcpStream::connect(target).await {
                        carry(near, far, delay).await;
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        };
        Ok(Self { address, task: tokio::spawn(accept).abort_handle() })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(near: TcpStream, far: TcpStream, delay: Duration) {
    // Small messages are not to wait for larger ones.
    if near.set_nodelay(true).is_err() || far.set_nodelay(true).is_err() {
        return;
    }
    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = pass(from_near, to_far, delay) => {}
        () = pass(from_far, to_near, delay) => {}
    }
}

/// Passes on what is said in one direction, until it ends.
#[allow(clippy::disallowed_methods, reason = "what is attacked here is real")]
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (send, mut sent) = mpsc::channel::<(Instant, Bytes)>(ON_THE_WAY);
    let take = async move {
        loop {
            let mut piece = BytesMut::with_capacity(PIECE);
            if !from.read_buf(&mut piece).await.is_ok_and(|read| read > 0) {
                return;
            }
            if send.send((Instant::now() + delay, piece.freeze())).await.is_err() {
                return;
            }
        }
    };
    let give = async move {
        while let Some((at, piece)) = sent.recv().await {
            tokio::time::sleep_until(at).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(take, give);
}
