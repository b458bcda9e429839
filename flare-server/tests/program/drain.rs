//! SIGTERM under load: every change that was accepted has been delivered when the process is gone.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{Client, Server, connect};

#[test]
fn every_accepted_change_is_delivered_before_the_process_ends() {
    let mut server = Server::start(&["--set", "delivery.concurrency=8"]);
    // Slow enough that much is pending when the signal comes.
    let client = Client::start(Duration::from_millis(5));
    server.subscribe(&client.url());
    let accepted = Arc::new(Mutex::new(BTreeSet::new()));
    let next = Arc::new(AtomicU32::new(0));
    let addr = server.addr;
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (accepted, next) = (Arc::clone(&accepted), Arc::clone(&next));
            thread::spawn(move || {
                let mut stream = connect(addr);
                loop {
                    let name = next.fetch_add(1, Ordering::Relaxed);
                    let head = format!(
                        "PUT /documents/http://api.example.com/users/{name} HTTP/1.1\r\nHost: x\r\n\
                         Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{{\"revision\":1}}"
                    );
                    let mut answer = [0; 512];
                    // The server closes once it drains; what was not answered was not accepted.
                    let sent = stream.write_all(head.as_bytes()).is_ok();
                    let read = if sent { stream.read(&mut answer).unwrap_or(0) } else { 0 };
                    if !answer[..read].starts_with(b"HTTP/1.1 202") {
                        return;
                    }
                    accepted.lock().unwrap().insert(format!("/{name}"));
                }
            })
        })
        .collect();
    while accepted.lock().unwrap().len() < 500 {
        thread::sleep(Duration::from_millis(1));
    }
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    for writer in writers {
        writer.join().unwrap();
    }
    let told: BTreeSet<String> = client.told().into_iter().collect();
    let accepted = accepted.lock().unwrap();
    let lost: Vec<_> = accepted.difference(&told).collect();
    assert!(lost.is_empty(), "{} of {} are lost", lost.len(), accepted.len());
    assert!(!server.log().contains("WARN"), "{}", server.log());
}

#[test]
fn a_request_under_way_is_answered_and_a_new_one_refused() {
    let mut server = Server::start(&[]);
    let mut stream = connect(server.addr);
    let (start, end) =
        (r#"{"endpoint":"http://a.example.com/{id}","#, r#""change":{"field":"revision"}}"#);
    let head = format!(
        "POST /resources HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{start}",
        start.len() + end.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // Answered after the half request was sent, so that one has most likely been read by now.
    server.assert_well();
    server.terminate();
    while std::net::TcpStream::connect(server.addr).is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
    stream.write_all(end.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert!(server.wait().success(), "{}", server.log());
}

#[test]
fn a_client_that_is_down_delays_the_end_no_longer_than_the_limit() {
    let mut server = Server::start(&["--set", "worker.drain-timeout=500ms"]);
    server.subscribe("http://127.0.0.1:1");
    server.put("/documents/http://api.example.com/users/ada", r#"{"revision":1}"#);
    server.terminate();
    assert!(server.wait().success());
    assert!(server.log().contains("changes are lost with this process"), "{}", server.log());
}
