//! Takes an address; is another one for it, which can fall silent: to both sides, or only to the
//! one that asks. With a certificate it speaks TLS to that side.

#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// What becomes of what is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It arrives.
    Open,
    /// What is asked arrives, no answer does.
    Mute,
    /// The same on the connection that was made first; the others are open.
    MuteFirst,
    /// Nothing arrives, and nobody is told.
    Silent,
}

pub(crate) struct Proxy {
    mode: watch::Sender<Mode>,
    port: u16,
    task: JoinHandle<()>,
}

impl Proxy {
    /// In front of a URL.
    pub(crate) async fn to(url: &str) -> Self {
        Self::start(url, None).await
    }

    /// The same, over TLS.
    pub(crate) async fn with_tls(url: &str, tls: ServerConfig) -> Self {
        Self::start(url, Some(TlsAcceptor::from(Arc::new(tls)))).await
    }

    async fn start(url: &str, tls: Option<TlsAcceptor>) -> Self {
        let target = url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mode, modes) = watch::channel(Mode::Open);
        let task = tokio::spawn(async move {
            for number in 0_usize.. {
                let (socket, _) = listener.accept().await.unwrap();
                let (target, modes, tls) = (target.clone(), modes.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => carry(socket, &target, modes, number).await,
                        Some(tls) => {
                            // Whoever does not like the certificate hangs up.
                            if let Ok(socket) = tls.accept(socket).await {
                                carry(socket, &target, modes, number).await;
                            }
                        }
                    }
                });
            }
        });
        Self { mode, port, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(
    asking: impl AsyncRead + AsyncWrite,
    target: &str,
    modes: watch::Receiver<Mode>,
    number: usize,
) {
    let Ok(answering) = TcpStream::connect(target).await else { return };
    let (asks, hears) = tokio::io::split(asking);
    let (answers, is_asked) = answering.into_split();
    let other = modes.clone();
    tokio::select! {
        () = pump(asks, is_asked, modes.clone(), |mode| mode != Mode::Silent) => {}
        () = pump(answers, hears, other, |mode| match mode {
            Mode::Open => true,
            Mode::MuteFirst => number > 0,
            Mode::Mute | Mode::Silent => false,
        }) => {}
    }
}

/// Carries bytes for as long as they may pass. What was silent once stays so: half of what is said
/// later would make no sense.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    modes: watch::Receiver<Mode>,
    may_pass: impl Fn(Mode) -> bool,
) {
    let mut buffer = vec![0; 16 << 10];
    let mut stuck = false;
    loop {
        let count = from.read(&mut buffer).await.unwrap_or(0);
        if count == 0 {
            return;
        }
        stuck |= !may_pass(*modes.borrow());
        if !stuck && to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
