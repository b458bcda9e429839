//! Takes the address of a server; is another one for it, which reads along what is asked there and counts each statement
//! by its text: the server's own counters know transactions alone.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

type Runs = Arc<Mutex<BTreeMap<String, u64>>>;

/// A way to a server, without TLS, that counts.
pub(crate) struct Wire {
    address: SocketAddr,
    runs: Runs,
    task: JoinHandle<()>,
}

impl Wire {
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, runs) = (listener.local_addr().unwrap(), Runs::default());
        let counted = Arc::clone(&runs);
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, server.clone(), Arc::clone(&counted)));
            }
        });
        Self { address, runs, task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was run since the last time, and how often.
    pub(crate) fn take(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.runs.lock().unwrap())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(near: TcpStream, server: String, runs: Runs) {
    let Ok(far) = TcpStream::connect(&server).await else { return };
    let ((mut near_in, mut near_out), (mut far_in, mut far_out)) =
        (near.into_split(), far.into_split());
    let asks = async {
        let (mut asked, mut buffer) = (Asked::default(), vec![0; 16 * 1024]);
        while let Ok(read @ 1..) = near_in.read(&mut buffer).await {
            for sql in asked.read(&buffer[..read]) {
                *runs.lock().unwrap().entry(sql).or_default() += 1;
            }
            if far_out.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = asks => {}
        _ = copy(&mut far_in, &mut near_out) => {}
    }
}

/// What a client has sent on a connection, as far as it was not whole yet.
#[derive(Default)]
struct Asked {
    rest: Vec<u8>,
    /// The first message, which has no kind, has been read.
    begun: bool,
    /// The text of each statement that the server remembers.
    remembered: HashMap<String, String>,
}

impl Asked {
    /// Reads on; gives the statements that are run by it.
    fn read(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let mut run = Vec::new();
        loop {
            let kind_bytes = usize::from(self.begun);
            let Some(length) = self.rest.get(kind_bytes..kind_bytes + 4) else { return run };
            let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
            let whole = kind_bytes + length;
            if self.rest.len() < whole {
                return run;
            }
            let message: Vec<u8> = self.rest.drain(..whole).collect();
            if !self.begun {
                // A question whether there is TLS is as long as this, and the first message comes after it.
                self.begun = length != 8;
                continue;
            }
            let mut texts = message[5..].split(|byte| *byte == 0);
            let mut text =
                || String::from_utf8_lossy(texts.next().unwrap_or_default()).into_owned();
            match message[0] {
                b'Q' => run.push(text()),
                b'P' => _ = self.remembered.insert(text(), text()),
                b'B' => {
                    let (_portal, name) = (text(), text());
                    run.push(self.remembered.get(&name).cloned().unwrap_or(name));
                }
                _ => {}
            }
        }
    }
}
