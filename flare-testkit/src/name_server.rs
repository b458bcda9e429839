//! Takes a rule; gives a name server: DNS over UDP on loopback that answers by the rule, or keeps
//! silent, and keeps every question. It has a thread of its own, as a server has a machine.

use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What a [`NameServer`] says of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameAnswer {
    /// Nothing at all.
    Silence,
    /// There is no such name; so many seconds long.
    Unknown(u32),
    /// The server itself has a problem.
    Failure,
    /// These addresses; so many seconds long.
    At(Vec<IpAddr>, u32),
}

/// A name server on 127.0.0.1, gone when it is dropped.
///
/// ```
/// use flare_testkit::{NameAnswer, NameServer};
///
/// let server = NameServer::start(|name| match name {
///     "client.test" => NameAnswer::At(vec![[127, 0, 0, 1].into()], 60),
///     _ => NameAnswer::Silence,
/// });
/// assert!(server.address().ip().is_loopback());
/// assert!(server.questions().is_empty());
/// ```
pub struct NameServer {
    address: SocketAddr,
    questions: Arc<Mutex<Vec<String>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl NameServer {
    /// Starts one; it is asked for names in lower case without the dot at the end.
    pub fn start(rule: impl Fn(&str) -> NameAnswer + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port on loopback");
        let address = socket.local_addr().expect("a bound socket has an address");
        let questions = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&questions);
        let thread = Some(thread::spawn(move || serve(&socket, &asked, rule)));
        Self { address, questions, thread }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every question so far, in order, as `A client.test`. One that is sent again after silence
    /// counts again.
    pub fn questions(&self) -> Vec<String> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        // An empty datagram is no question: it says that this is the end.
        let told =
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(&[], self.address));
        if let (Ok(_), Some(thread)) = (told, self.thread.take()) {
            drop(thread.join());
        }
    }
}

impl fmt::Debug for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameServer").field("address", &self.address).finish_non_exhaustive()
    }
}

fn serve(
    socket: &UdpSocket,
    questions: &Mutex<Vec<String>>,
    rule: impl Fn(&str) -> NameAnswer + Send,
) {
    let mut buffer = [0; 1500];
    while let Ok((read @ 1.., client)) = socket.recv_from(&mut buffer) {
        let Some(question) = Question::read(&buffer[..read]) else { continue };
        let said = format!("{} {}", question.kind(), question.name);
        questions.lock().unwrap_or_else(PoisonError::into_inner).push(said);
        if let Some(answer) = question.answer(&rule(&question.name)) {
            // A client that has gone asks no more.
            drop(socket.send_to(&answer, client));
        }
    }
}

/// The one question of a message (RFC 1035, 4.1).
struct Question<'m> {
    id: [u8; 2],
    /// Name, type and class, as they came.
    raw: &'m [u8],
    name: String,
    record: u16,
}

const HEADER: usize = 12;
const A: u16 = 1;
const SOA: u16 = 6;
const AAAA: u16 = 28;

impl<'m> Question<'m> {
    fn read(message: &'m [u8]) -> Option<Self> {
        let mut labels = Vec::new();
        let mut at = HEADER;
        loop {
            let length = usize::from(*message.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(message.get(at..at + length)?).to_lowercase());
            at += length;
        }
        let record = u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?);
        let raw = message.get(HEADER..at + 4)?;
        Some(Self { id: message.get(..2)?.try_into().ok()?, raw, name: labels.join("."), record })
    }

    fn kind(&self) -> String {
        match self.record {
            A => "A".to_owned(),
            AAAA => "AAAA".to_owned(),
            other => other.to_string(),
        }
    }

    fn answer(&self, answer: &NameAnswer) -> Option<Vec<u8>> {
        match answer {
            NameAnswer::Silence => None,
            NameAnswer::Failure => Some(self.message(2, &[], None)),
            NameAnswer::Unknown(seconds) => Some(self.message(3, &[], Some(*seconds))),
            NameAnswer::At(addresses, seconds) => {
                let mut records = Vec::new();
                for address in addresses {
                    let data = match address {
                        IpAddr::V4(v4) => (A, v4.octets().to_vec()),
                        IpAddr::V6(v6) => (AAAA, v6.octets().to_vec()),
                    };
                    if data.0 == self.record {
                        records.push(record(data.0, *seconds, &data.1));
                    }
                }
                let nothing_for = records.is_empty().then_some(*seconds);
                Some(self.message(0, &records, nothing_for))
            }
        }
    }

    /// A message with this result code, these records, and a statement on how long there is
    /// nothing.
    fn message(&self, code: u8, answers: &[Vec<u8>], nothing_for: Option<u32>) -> Vec<u8> {
        let mut message = self.id.to_vec();
        // An answer to a question that wanted recursion, which is available.
        message.extend([0x81, 0x80 | code]);
        for count in [1, answers.len() as u16, u16::from(nothing_for.is_some()), 0] {
            message.extend(count.to_be_bytes());
        }
        message.extend(self.raw);
        message.extend(answers.concat());
        if let Some(seconds) = nothing_for {
            // Two empty names, then serial, refresh, retry, expire and the time that counts.
            let mut data = vec![0, 0];
            for number in [1, 1, 1, 1, seconds] {
                data.extend(number.to_be_bytes());
            }
            message.extend(record(SOA, seconds, &data));
        }
        message
    }
}

/// A record of the name that was asked for.
fn record(record: u16, seconds: u32, data: &[u8]) -> Vec<u8> {
    // A pointer to the name of the question, and the class of the Internet.
    let mut bytes = vec![0xc0, HEADER as u8];
    bytes.extend(record.to_be_bytes());
    bytes.extend(1_u16.to_be_bytes());
    bytes.extend(seconds.to_be_bytes());
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend(data);
    bytes
}
