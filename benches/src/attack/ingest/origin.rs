//! Takes a Flare; puts into it over real HTTP, on many connections, each as fast as it is answered;
//! gives how long every put took and how it was answered.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use flare_core::Flare;
use flare_http::Api;
use flare_server::{Limits, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::Result;
use crate::world::body;

/// Bytes of a document.
const BODY: usize = 300;

/// How one put was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) took: Duration,
}

/// Serves the REST interface as the server does, until the process ends.
pub(super) async fn serve_rest(flare: &Flare) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Api::new(flare.clone()).router();
    tokio::spawn(async move {
        let never = std::future::pending();
        serve(listener, router, &Limits::default(), never, Duration::ZERO).await
    });
    Ok(address)
}

/// Puts on `connections` for `time`; every connection changes a document of its own, and one that was
/// refused puts `again` after that time.
#[allow(clippy::disallowed_methods, reason = "what is attacked here is real")]
pub(super) async fn put(
    rest: SocketAddr,
    connections: usize,
    time: Duration,
    again: Duration,
) -> Result<Vec<Answer>> {
    let mut putting = JoinSet::new();
    // All connect before the first one puts.
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(rest).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let until = Instant::now() + time;
    for (number, stream) in streams.into_iter().enumerate() {
        putting.spawn(put_on(stream, number, until, again));
    }
    let mut answers = Vec::new();
    while let Some(given) = putting.join_next().await {
        answers.extend(given??);
    }
    Ok(answers)
}

#[allow(clippy::disallowed_methods, reason = "what is attacked here is real")]
async fn put_on(
    mut stream: TcpStream,
    number: usize,
    until: Instant,
    again: Duration,
) -> Result<Vec<Answer>> {
    let mut answers = Vec::new();
    for revision in 1.. {
        let begun = Instant::now();
        if begun >= until {
            break;
        }
        let content = body(revision, BODY);
        let mut request = format!(
            "PUT /documents/http://api.example.com/items/{number} HTTP/1.1\r\nHost: attack\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            content.len()
        )
        .into_bytes();
        request.extend_from_slice(&content);
        stream.write_all(&request).await?;
        let status = read_answer(&mut stream).await?;
        answers.push(Answer { status, took: begun.elapsed() });
        if status == 429 {
            tokio::time::sleep(again).await;
        }
    }
    Ok(answers)
}

/// Reads one answer to its end; gives its status.
async fn read_answer(stream: &mut TcpStream) -> Result<u16> {
    let mut answer = Vec::new();
    loop {
        if let Some((status, length)) = head(&answer)?
            && answer.len() >= length
        {
            return Ok(status);
        }
        if stream.read_buf(&mut answer).await? == 0 {
            return Err("the server closed the connection".into());
        }
    }
}

/// The status of an answer and the bytes it has, once its head is there.
fn head(answer: &[u8]) -> Result<Option<(u16, usize)>> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&answer[..end])?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Ok(0), |(_, value)| value.trim().parse::<usize>())?;
    Ok(Some((status.parse()?, end + 4 + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_its_body() {
        let accepted = b"HTTP/1.1 202 Accepted\r\nflare-change: created\r\n\r\n";
        assert_eq!(head(accepted).unwrap(), Some((202, accepted.len())));
        let refused = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{";
        assert_eq!(head(refused).unwrap(), Some((429, refused.len() + 1)));
        assert_eq!(head(&refused[..40]).unwrap(), None);
    }
}
