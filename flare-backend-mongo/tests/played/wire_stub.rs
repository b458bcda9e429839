//! Takes answers to give; is a server that gives them, wrong ones included. Speaks `OP_MSG` and
//! nothing else; what it has no answer for it answers as a standalone server that is set up.

#![allow(dead_code, unreachable_pub, clippy::expect_used, reason = "helpers of tests")]

use std::collections::{HashMap, VecDeque};
use std::io::{Cursor, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use flare_backend_mongo::Migration;
use mongodb::bson::{Document, doc};

/// The one operation both sides use.
const OP_MSG: i32 = 2013;
/// Length, request, response to, operation.
const HEADER: usize = 16;

/// What becomes of a command.
#[derive(Debug, Clone)]
pub enum Reply {
    /// It is answered.
    With(Document),
    /// It is answered once somebody says so.
    Once(Arc<Gate>, Document),
    /// Its answer breaks off in the middle.
    CutOff,
    /// It is never answered.
    Silence,
    /// Its answer is none.
    Garbage,
}

impl Reply {
    /// The server refuses it.
    pub fn refusal(code: i32, message: &str) -> Self {
        Self::With(doc! { "ok": 0, "code": code, "errmsg": message })
    }
}

/// Holds an answer back until it is opened.
#[derive(Debug, Default)]
pub struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub fn open(&self) {
        *self.open.lock().expect("no panic") = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let closed = self.open.lock().expect("no panic");
        drop(self.opened.wait_while(closed, |open| !*open).expect("no panic"));
    }
}

/// A server that does as it is told.
#[derive(Debug, Clone)]
pub struct WireStub {
    address: String,
    play: Arc<Play>,
}

#[derive(Debug)]
struct Play {
    wire_version: i32,
    replies: Mutex<HashMap<&'static str, VecDeque<Reply>>>,
    heard: Mutex<Vec<Document>>,
}

impl WireStub {
    /// A server of MongoDB 8.0.
    pub fn start() -> Self {
        Self::of_wire_version(25)
    }

    /// A server that says it is of this version. It listens until the test program ends.
    pub fn of_wire_version(wire_version: i32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let play =
            Arc::new(Play { wire_version, replies: Mutex::default(), heard: Mutex::default() });
        let stub = Self { address, play: Arc::clone(&play) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let play = Arc::clone(&play);
                // An error is the other side gone.
                thread::spawn(move || play.serve(stream));
            }
        });
        stub
    }

    pub fn uri(&self) -> String {
        format!("mongodb://{}/?directConnection=true", self.address)
    }

    /// Where it listens: `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What becomes of the next `command` that has no reply yet.
    pub fn next(&self, command: &'static str, reply: Reply) -> &Self {
        let mut replies = self.play.replies.lock().expect("no panic");
        replies.entry(command).or_default().push_back(reply);
        drop(replies);
        self
    }

    /// How often a command came.
    pub fn heard(&self, command: &str) -> usize {
        let heard = self.play.heard.lock().expect("no panic");
        heard.iter().filter(|it| name(it) == command).count()
    }
}

impl Play {
    fn serve(&self, mut stream: TcpStream) -> Result<()> {
        loop {
            let (request, command) = receive(&mut stream)?;
            let scripted = {
                let mut replies = self.replies.lock().expect("no panic");
                replies.get_mut(name(&command)).and_then(VecDeque::pop_front)
            };
            let reply = scripted.unwrap_or_else(|| Reply::With(self.usual(&command)));
            self.heard.lock().expect("no panic").push(command);
            match reply {
                Reply::With(answer) => stream.write_all(&message(request, &answer))?,
                Reply::Once(gate, answer) => {
                    gate.pass();
                    stream.write_all(&message(request, &answer))?;
                }
                Reply::CutOff => {
                    let answer = message(request, &doc! { "ok": 1 });
                    return stream.write_all(&answer[..answer.len() / 2]);
                }
                Reply::Garbage => return stream.write_all(&[0x5a; 200]),
                Reply::Silence => {}
            }
        }
    }

    /// What a standalone server answers that is set up.
    fn usual(&self, command: &Document) -> Document {
        match name(command) {
            "hello" | "isMaster" | "ismaster" => doc! {
                "ok": 1,
                "helloOk": true,
                "isWritablePrimary": true,
                "ismaster": true,
                "minWireVersion": 0,
                "maxWireVersion": self.wire_version,
                "maxBsonObjectSize": 16 << 20,
                "maxMessageSizeBytes": 48_000_000,
                "maxWriteBatchSize": 100_000,
            },
            "find" => doc! {
                "ok": 1,
                "cursor": {
                    "id": 0_i64,
                    "ns": "flare.flare_schema",
                    "firstBatch": [schema(command)],
                },
            },
            "$changeStream" => doc! { "ok": 0, "code": 40573, "errmsg": "only on replica sets" },
            "aggregate" => doc! {
                "ok": 1,
                "cursor": {
                    "id": 0_i64,
                    "ns": "flare.flare_lease",
                    "firstBatch": [{
                        "_id": "state",
                        "revision": 7_i64,
                        "compacted": 0_i64,
                        "events": [],
                        "due": false,
                        "at": 7_i64,
                    }],
                },
            },
            "update" => doc! { "ok": 1, "n": 1, "nModified": 0 },
            "findAndModify" => doc! {
                "ok": 1,
                "value": {
                    "_id": "state",
                    "revision": 7_i64,
                    "last": [{ "outcome": "done", "found": null, "revision": 7_i64 }],
                },
            },
            _ => doc! { "ok": 1 },
        }
    }
}

/// The record that says how far an area has come: as far as this version wants it.
fn schema(find: &Document) -> Document {
    let area = find.get_document("filter").and_then(|filter| filter.get_str("_id"));
    let area = area.unwrap_or("lease");
    let newest = Migration::of_the_repository().len() as i32;
    doc! { "_id": area, "version": if area == "repository" { newest } else { 1 } }
}

/// A command's name is its first field; to open a change stream is an aggregate with a name of its
/// own here.
fn name(command: &Document) -> &str {
    let stages = command.get_array("pipeline").ok();
    let first = stages.and_then(|stages| stages.first()?.as_document());
    if first.is_some_and(|stage| stage.contains_key("$changeStream")) {
        return "$changeStream";
    }
    command.keys().next().map_or("", String::as_str)
}

/// A request's number and its command, document sequences put in as arrays.
fn receive(stream: &mut TcpStream) -> Result<(i32, Document)> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let field = |at: usize| {
        i32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    assert_eq!(field(12), OP_MSG, "the driver speaks OP_MSG");
    let mut body = vec![0; usize::try_from(field(0)).expect("a length") - HEADER];
    stream.read_exact(&mut body)?;
    Ok((field(4), sections(&body[4..])))
}

fn sections(body: &[u8]) -> Document {
    let mut command = Document::new();
    let mut sequences = Document::new();
    let mut rest = Cursor::new(body);
    while let Some(kind) = byte(&mut rest) {
        if kind == 0 {
            command = Document::from_reader(&mut rest).expect("a document");
            continue;
        }
        let mut size = [0; 4];
        let start = rest.position();
        rest.read_exact(&mut size).expect("a size");
        let end = start + u64::from(u32::from_le_bytes(size));
        let name: Vec<u8> = std::iter::from_fn(|| byte(&mut rest).filter(|it| *it != 0)).collect();
        let mut documents = Vec::new();
        while rest.position() < end {
            documents.push(Document::from_reader(&mut rest).expect("a document"));
        }
        sequences.insert(String::from_utf8_lossy(&name), documents);
    }
    command.extend(sequences);
    command
}

fn byte(from: &mut Cursor<&[u8]>) -> Option<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte).ok().map(|()| byte[0])
}

fn message(request: i32, answer: &Document) -> Vec<u8> {
    let answer = answer.to_vec().expect("it can be written");
    let length = i32::try_from(HEADER + 5 + answer.len()).expect("it is short");
    let mut message = Vec::new();
    for field in [length, 1, request, OP_MSG, 0] {
        message.extend(field.to_le_bytes());
    }
    message.push(0);
    message.extend(answer);
    message
}
