//! Takes where Kinesis is; gives a way to it that can be cut and mended.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A listener in front of a server.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) url: String,
    cut: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A way to the server of a URL.
    pub(crate) async fn to(url: &str) -> Self {
        let target = url.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (cut, is_cut) = watch::channel(false);
        let accepting = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(client, target.clone(), is_cut.clone()));
            }
        });
        Self { url, cut, accepting }
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

async fn serve(mut client: TcpStream, to: String, mut is_cut: watch::Receiver<bool>) {
    let through = async {
        if let Ok(mut server) = TcpStream::connect(to).await {
            // How it ends is the client's to find out.
            let _ = copy_bidirectional(&mut client, &mut server).await;
        }
    };
    tokio::select! {
        biased;
        _ = is_cut.wait_for(|cut| *cut) => {}
        () = through => {}
    }
}
