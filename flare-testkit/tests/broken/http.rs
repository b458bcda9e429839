//! Takes a delivery request; makes it over a bare TCP stream, honestly or with one fault. Only for
//! trying the suite: no TLS, no kept connections, no address guard.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::model::Timestamp;
use flare_core::port::{
    Delivery, DeliveryOutcome, DeliveryRequest, FailureKind, Reply, RetryAfter,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    None,
    FollowsRedirects,
    RetriesUnavailable,
    RetriesClosed,
    NormalisesUrls,
    AddsItsOwnAgent,
    SendsChunks,
    OnlyPosts,
    FailsOnRedirects,
    FailsOnStatus,
    TakesTheInterim,
    UnsentOnTimeout,
    Smuggles,
    IgnoresDates,
    UnderstandsNonsense,
    ReadsOn,
    KeepsItAll,
    IsLate,
    TimesEachRead,
    CallsItBroken,
    OneAtATime,
    FailsOnStall,
    FailsOnCut,
    CallsItWhole,
    NeverWhole,
}

#[derive(Debug)]
pub(crate) struct HttpOverTcp {
    pub(crate) fault: Fault,
    pub(crate) turn: Mutex<()>,
}

type Failure = (FailureKind, String);

const FOR_EVER: Duration = Duration::from_secs(3600);

struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    fn value(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }
}

#[async_trait]
#[allow(clippy::disallowed_methods, reason = "sockets know no clock but the real one")]
impl Delivery for HttpOverTcp {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let _turn = match self.fault {
            Fault::OneAtATime => Some(self.turn.lock().await),
            _ => None,
        };
        let sent = AtomicBool::new(false);
        let limit = match self.fault {
            Fault::IsLate => request.timeout * 10,
            Fault::TimesEachRead => FOR_EVER,
            _ => request.timeout,
        };
        let answered = tokio::time::timeout(limit, self.exchange(&request, &sent)).await;
        let mut whole = false;
        let reply = match answered {
            Ok(Ok((reply, all))) => {
                whole = match self.fault {
                    Fault::CallsItWhole => true,
                    Fault::NeverWhole => false,
                    _ => all,
                };
                reply
            }
            Ok(Err((kind, message))) => Reply::Failed { kind, message },
            Err(_) => {
                if self.fault == Fault::UnsentOnTimeout {
                    sent.store(false, Ordering::Relaxed);
                }
                let kind = match self.fault {
                    Fault::CallsItBroken => FailureKind::Broken,
                    _ => FailureKind::Timeout,
                };
                Reply::Failed { kind, message: "time ran out".into() }
            }
        };
        let sent = sent.load(Ordering::Relaxed);
        match reply {
            Reply::Failed { kind, message } => DeliveryOutcome::failed(kind, message, sent),
            reply => {
                let mut outcome = DeliveryOutcome::answered(0);
                (outcome.reply, outcome.whole) = (reply, whole);
                outcome
            }
        }
    }
}

impl HttpOverTcp {
    async fn exchange(
        &self,
        request: &DeliveryRequest,
        sent: &AtomicBool,
    ) -> Result<(Reply, bool), Failure> {
        let mut url = request.url.clone();
        for first in [true, false] {
            let (head, reply, whole) = match self.once(request, &url, sent).await {
                Err((FailureKind::Broken, _)) if first && self.fault == Fault::RetriesClosed => {
                    continue;
                }
                answered => answered?,
            };
            let location = head.value("location").map(str::to_owned);
            match (self.fault, head.status, location) {
                (Fault::FollowsRedirects, 300..400, Some(to)) if first => {
                    url = if to.starts_with('/') { format!("{}{to}", origin(&url)) } else { to };
                }
                (Fault::RetriesUnavailable, 503, _) if first => {}
                (Fault::FailsOnStatus, 429 | 503, _) => return Ok((reply, whole)),
                (Fault::FailsOnRedirects, 300..400, _) | (Fault::FailsOnStatus, 400..600, _) => {
                    return Err((FailureKind::Broken, format!("status {}", head.status)));
                }
                _ => return Ok((reply, whole)),
            }
        }
        Err((FailureKind::Broken, "tried twice".into()))
    }

    #[allow(clippy::disallowed_methods, reason = "sockets know no clock but the real one")]
    async fn once(
        &self,
        request: &DeliveryRequest,
        url: &str,
        sent: &AtomicBool,
    ) -> Result<(Head, Reply, bool), Failure> {
        let (authority, bytes) = self.bytes(request, url)?;
        let connected = TcpStream::connect(&authority).await;
        let mut stream = connected.map_err(|error| (FailureKind::Connect, error.to_string()))?;
        sent.store(true, Ordering::Relaxed);
        stream.write_all(&bytes).await.map_err(broken)?;
        let mut buffer = Vec::new();
        let head = loop {
            let head = self.head(&mut stream, &mut buffer, request).await?;
            if head.status >= 200 || self.fault == Fault::TakesTheInterim {
                break head;
            }
        };
        let bodiless = matches!(head.status, 100..200 | 204 | 304);
        let length = if bodiless { Some(0) } else { content_length(&head)? };
        let limit = match self.fault {
            Fault::KeepsItAll => 2 << 20,
            _ => request.excerpt_limit,
        };
        let wanted = match self.fault {
            Fault::ReadsOn => length.unwrap_or(usize::MAX),
            _ => length.unwrap_or(limit).min(limit),
        };
        // What the body may take, so that the rest of the time suffices to say that it was read.
        let time = match (self.fault, length) {
            (Fault::FailsOnStall | Fault::TimesEachRead, _) | (Fault::ReadsOn, None) => FOR_EVER,
            _ => request.timeout / 2,
        };
        let mut ended = false;
        let reading = async {
            let mut read = buffer.len();
            while read < wanted {
                let more = match self.read(&mut stream, &mut buffer, request).await {
                    Err(failure) if self.fault == Fault::FailsOnCut => return Err(failure),
                    read => read.unwrap_or(0),
                };
                if more == 0 && length.is_some() && self.fault == Fault::FailsOnCut {
                    return Err((FailureKind::Broken, "cut off".into()));
                }
                if more == 0 {
                    ended = true;
                    break;
                }
                read += more;
                buffer.truncate(limit.max(1));
            }
            Ok(())
        };
        tokio::time::timeout(time, reading).await.unwrap_or(Ok(()))?;
        let whole = match length {
            Some(length) => length <= request.excerpt_limit && buffer.len() >= length,
            None => ended && buffer.len() <= request.excerpt_limit,
        };
        buffer.truncate(limit.min(length.unwrap_or(limit)));
        let retry_after = head.value("retry-after").and_then(|text| self.retry_after(text));
        let excerpt = Bytes::from(buffer);
        let reply = Reply::Answered { status: head.status, retry_after, excerpt };
        Ok((head, reply, whole))
    }

    /// Whom to connect to, and what to say.
    fn bytes(&self, request: &DeliveryRequest, url: &str) -> Result<(String, Vec<u8>), Failure> {
        let unsendable = |what: &str| (FailureKind::Unsendable, format!("{what} is not valid"));
        let rest = url.strip_prefix("http://").ok_or_else(|| unsendable("the URL"))?;
        let (authority, path) = rest.split_at(rest.find('/').ok_or_else(|| unsendable("the URL"))?);
        let path = match self.fault {
            Fault::NormalisesUrls => path.replace("%7E", "~"),
            _ => path.to_owned(),
        };
        let method = match self.fault {
            Fault::OnlyPosts => "POST".to_owned(),
            _ => format!("{:?}", request.method).to_uppercase(),
        };
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\n");
        for (name, value) in &request.headers {
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~".contains(&byte);
            let good = !name.is_empty()
                && name.bytes().all(token)
                && value.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control());
            if !good && self.fault != Fault::Smuggles {
                return Err(unsendable("a header"));
            }
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.fault == Fault::AddsItsOwnAgent {
            head.push_str("User-Agent: http-over-tcp\r\n");
        }
        let body = &request.body;
        if self.fault == Fault::SendsChunks && !body.is_empty() {
            head.push_str(&format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len()));
            return Ok((authority.into(), [head.as_bytes(), body, b"\r\n0\r\n\r\n"].concat()));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        Ok((authority.into(), [head.as_bytes(), body].concat()))
    }

    async fn head(
        &self,
        stream: &mut TcpStream,
        buffer: &mut Vec<u8>,
        request: &DeliveryRequest,
    ) -> Result<Head, Failure> {
        let no_http = || (FailureKind::Broken, "no HTTP".to_owned());
        let end = loop {
            if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if self.read(stream, buffer, request).await? == 0 {
                return Err(no_http());
            }
        };
        let text = String::from_utf8_lossy(&buffer[..end]).into_owned();
        buffer.drain(..end + 4);
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
        let status = status.and_then(|line| line.get(..3)?.parse().ok()).ok_or_else(no_http)?;
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.into(), value.trim().into())).collect();
        Ok(Head { status, headers })
    }

    #[allow(clippy::disallowed_methods, reason = "sockets know no clock but the real one")]
    async fn read(
        &self,
        stream: &mut TcpStream,
        buffer: &mut Vec<u8>,
        request: &DeliveryRequest,
    ) -> Result<usize, Failure> {
        let read = tokio::time::timeout(request.timeout, stream.read_buf(buffer));
        match self.fault {
            Fault::TimesEachRead => match read.await {
                Ok(read) => read.map_err(broken),
                Err(_) => Err((FailureKind::Timeout, "a read took too long".into())),
            },
            _ => stream.read_buf(buffer).await.map_err(broken),
        }
    }

    fn retry_after(&self, text: &str) -> Option<RetryAfter> {
        let seconds = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok());
        match (seconds.flatten(), self.fault) {
            (Some(seconds), _) => Some(RetryAfter::Delay(Duration::from_secs(seconds))),
            (None, Fault::IgnoresDates) => None,
            (None, Fault::UnderstandsNonsense) => {
                Some(date(text).unwrap_or(RetryAfter::Delay(Duration::ZERO)))
            }
            (None, _) => date(text),
        }
    }
}

fn broken(error: std::io::Error) -> Failure {
    (FailureKind::Broken, error.to_string())
}

fn origin(url: &str) -> &str {
    url.splitn(4, '/').nth(3).map_or(url, |path| &url[..url.len() - path.len() - 1])
}

fn content_length(head: &Head) -> Result<Option<usize>, Failure> {
    let length = head.value("content-length").map(str::parse).transpose();
    length.map_err(|_| (FailureKind::Broken, "a length that is none".into()))
}

/// `Tue, 14 Nov 2023 22:13:20 GMT`
fn date(text: &str) -> Option<RetryAfter> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, rest) = text.strip_suffix(" GMT")?.split_once(", ")?;
    let parts: Vec<&str> = rest.split([' ', ':']).collect();
    let &[day, month, year, hour, minute, second] = &parts[..] else { return None };
    let month = MONTHS.find(month)? as i64 / 3 + 1;
    let number = |text: &str| text.parse::<i64>().ok();
    let (day, year) = (number(day)?, number(year)?);
    // Days since 1970, counting years from March so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    let days = 365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = (number(hour)? * 60 + number(minute)?) * 60 + number(second)?;
    Some(RetryAfter::At(Timestamp::from_unix_seconds(days * 86_400 + seconds)))
}
