//! Takes a Flare; serves its REST interface as the server does, and puts documents through it over
//! real HTTP, with a client that costs as little as a client can.

use std::net::SocketAddr;

use bytes::Bytes;
use flare_core::Flare;
use flare_http::Api;
use flare_server::{Limits, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::fill;
use crate::Result;

/// Where the REST interface is.
#[derive(Debug, Clone)]
pub(super) struct Rest {
    addr: SocketAddr,
}

impl Rest {
    /// Serves until the process ends.
    pub(super) async fn start(flare: &Flare) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let router = Api::new(flare.clone()).router();
        tokio::spawn(async move {
            let never = std::future::pending();
            serve(listener, router, &Limits::default(), never, Default::default()).await
        });
        Ok(Self { addr })
    }

    /// Puts documents one after the other on one connection, each known by its index and its number; gives when
    /// each was answered.
    pub(super) async fn put(
        self,
        numbers: Vec<(usize, usize)>,
        content: Bytes,
    ) -> Result<Vec<(usize, u64)>> {
        let mut stream = TcpStream::connect(self.addr).await?;
        stream.set_nodelay(true)?;
        let mut put_at = Vec::new();
        let (mut request, mut answer) = (Vec::new(), Vec::new());
        for (index, number) in numbers {
            request.clear();
            let head = format!(
                "PUT /documents/{} HTTP/1.1\r\nHost: bench\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                fill::url(number),
                content.len()
            );
            request.extend_from_slice(head.as_bytes());
            request.extend_from_slice(&content);
            stream.write_all(&request).await?;
            answer.clear();
            // An accepted put is answered without a body.
            while !answer.ends_with(b"\r\n\r\n") {
                if stream.read_buf(&mut answer).await? == 0 {
                    return Err("the server closed the connection".into());
                }
                if answer.len() > 12 && !answer.starts_with(b"HTTP/1.1 202") {
                    return Err(String::from_utf8_lossy(&answer).into_owned().into());
                }
            }
            put_at.push((index, super::now_nanos()));
        }
        Ok(put_at)
    }
}
