//! Takes the address of a service; is another one for it, whose connections can fall silent or be broken off.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What becomes of what is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkMode {
    /// It arrives.
    Open,
    /// Nothing arrives, and nobody is told: a network that loses everything.
    Silent,
    /// Every connection is reset, every new one too.
    Reset,
}

/// A way to a service that a test can cut.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use flare_testkit::{LinkMode, TcpLink};
///
/// let link = TcpLink::to("http://127.0.0.1:4566").await;
/// link.set(LinkMode::Reset);
/// assert!(link.url().starts_with("http://127.0.0.1:"));
/// # });
/// ```
#[derive(Debug)]
pub struct TcpLink {
    mode: watch::Sender<LinkMode>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl TcpLink {
    /// A way to the service at an address, `http://` before it or not.
    pub async fn to(service: &str) -> Self {
        let target = service.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mode, modes) = watch::channel(LinkMode::Open);
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(socket, target.clone(), modes.clone()));
            }
        });
        Self { mode, address, task }
    }

    /// Where it is: `http://127.0.0.1:…`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on, for the connections there are and new ones.
    pub fn set(&self, mode: LinkMode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for TcpLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(near: TcpStream, target: String, modes: watch::Receiver<LinkMode>) {
    // What is closed is reset, not ended: that is what a broken network looks like.
    let _ = near.set_zero_linger();
    let carried = async {
        becomes(LinkMode::Open, modes.clone()).await;
        let Ok(far) = TcpStream::connect(&target).await else { return };
        let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
        tokio::select! {
            () = pass(near_in, far_out, modes.clone()) => {}
            () = pass(far_in, near_out, modes.clone()) => {}
        }
    };
    tokio::select! {
        biased;
        () = becomes(LinkMode::Reset, modes.clone()) => {}
        () = carried => {}
    }
}

async fn becomes(wanted: LinkMode, mut modes: watch::Receiver<LinkMode>) {
    // Without anybody to change it, it stays as it is.
    if modes.wait_for(|mode| *mode == wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Passes on what comes, while the way is open; what came meanwhile is passed on later, as a network
/// that is back again would.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut modes: watch::Receiver<LinkMode>,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        if modes.wait_for(|mode| *mode == LinkMode::Open).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
