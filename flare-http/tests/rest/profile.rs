//! A profile of a process that is really busy.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flare_http::auth::{Scope, Tokens};

use crate::support::Server;

/// What keeps this process busy. It calls the work, which has a frame of its own however this is built.
#[inline(never)]
fn hunts_for_needles(until: &AtomicBool) -> u64 {
    let mut found = 0;
    while !until.load(Ordering::Relaxed) {
        found += black_box(looks_through_hay(black_box(found)));
    }
    black_box(found)
}

/// A block so aligned has the frame pointer set up by any build.
#[repr(align(64))]
struct Hay([u64; 64]);

#[inline(never)]
fn looks_through_hay(seed: u64) -> u64 {
    let mut hay = Hay([seed; 64]);
    for round in 0..20_000_u64 {
        let place = (round % 64) as usize;
        hay.0[place] =
            black_box(&hay).0[63 - place].wrapping_mul(6_364_136_223_846_793_005) ^ round;
    }
    hay.0[0] & 1
}

/// Keeps a thread busy until it is dropped.
struct Busy(Arc<AtomicBool>, Option<std::thread::JoinHandle<u64>>);

impl Busy {
    fn new() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        Self(stop, Some(std::thread::spawn(move || hunts_for_needles(&until))))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().map(std::thread::JoinHandle::join);
    }
}

/// There is one profile in a process at a time, so this is one test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_names_what_keeps_the_process_busy() {
    const READ: &str = "read-read-read-read";
    const ADMIN: &str = "admin-admin-admin-admin";
    let tokens = Tokens::new().with(READ, Scope::Read).unwrap().with(ADMIN, Scope::Admin).unwrap();
    let server = Server::with(|api| api.auth(tokens).timeout(Duration::from_secs(600))).await;
    let ask = async |token: &str, query: &str| {
        let bearer = format!("Bearer {token}");
        let path = format!("/debug/profile{query}");
        server.send("GET", &path, &[("authorization", &*bearer)], b"").await
    };
    let _busy = Busy::new();
    ask(READ, "?seconds=1").await.is(403);
    server.get("/debug/profile").await.is(401);
    for (query, field) in [
        ("seconds=0", "seconds"),
        ("seconds=61", "seconds"),
        ("seconds=1&seconds=1", "seconds"),
        ("format=png", "format"),
        ("hertz=9", "hertz"),
    ] {
        ask(ADMIN, &format!("?{query}")).await.refuses(400, field);
    }

    // Two at once: one is taken and the other refused, unless they happen one after the other.
    let graph = loop {
        let (one, other) = tokio::join!(ask(ADMIN, "?seconds=3"), ask(ADMIN, "?seconds=3"));
        let (taken, refused) = if one.status == 409 { (other, one) } else { (one, other) };
        if refused.status == 409 {
            assert!(refused.body.contains("another profile"), "{refused:?}");
            break taken.is(200);
        }
        refused.is(200);
    };
    assert_eq!(graph.header("content-type"), Some("image/svg+xml"));
    assert!(graph.body.contains("<svg") && graph.body.contains("hunts_for_needles"), "{graph:?}");

    let file = ask(ADMIN, "?seconds=2&format=pprof").await.is(200);
    assert_eq!(file.header("content-type"), Some("application/octet-stream"));
    assert!(file.body.contains("hunts_for_needles"), "the names are in it as they are");
}
