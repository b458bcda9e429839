//! What reaches the log: every fault once, with the request it belongs to, and no secret.

use std::io::{Result, Write};
use std::sync::{Arc, Mutex};

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_http::auth::{Scope, Tokens};
use flare_testkit::{FaultPlan, FaultyRepository};
use tracing_subscriber::fmt;

use crate::support::Server;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Lines {
    fn about(&self, words: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn a_fault_is_logged_once_and_a_refusal_never() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    // Were it the only one, a test beside this that has none would decide for both of them what is
    // not worth logging.
    let _second = tracing::Dispatch::new(fmt().with_writer(std::io::sink).finish());
    // The test's runtime has one thread, so that this is heard of everything.
    let _guard = tracing::subscriber::set_default(subscriber);

    const TOKEN: &str = "a-token-that-must-not-show";
    let backend = MemoryBackend::new();
    let plan = FaultPlan::seeded(1).with_before(1.0);
    let faulty = FaultyRepository::new(backend.repository(), plan);
    let builder = Flare::builder(backend).repository(Arc::new(faulty));
    let tokens = Tokens::new().with_named("ops", TOKEN, Scope::Read).unwrap();
    let panics = || panic!("on purpose");
    let server =
        Server::on(builder, false, |api| api.auth(tokens).metrics(panics).commit("abc1234")).await;
    let bearer = format!("Bearer {TOKEN}");
    let ask = async |path: &str, id: &str| {
        let headers = [("authorization", &*bearer), ("x-request-id", id)];
        server.send("GET", path, &headers, b"").await
    };
    ask("/resources", "failing").await.is(503);
    ask("/metrics", "panicking").await.is(500);
    ask("/resources?x=1", "refused").await.is(400);
    ask("/nowhere", "refused").await.is(404);
    server.get("/resources").await.is(401);

    let [failed] = &lines.about("failing")[..] else { panic!("{:?}", lines.about("")) };
    assert!(failed.contains("ERROR") && failed.contains("flare.request"), "{failed}");
    assert!(failed.contains("list_resources"), "which call it was: {failed}");
    assert!(failed.contains("caller=\"ops\""), "who asked: {failed}");
    let began =
        failed.contains("origin=flare-testkit/src/") && failed.contains("commit=\"abc1234\"");
    assert!(began, "where it began, in which commit: {failed}");
    let [panicked] = &lines.about("panicking")[..] else { panic!("{:?}", lines.about("")) };
    assert!(panicked.contains("on purpose"), "{panicked}");
    assert_eq!(lines.about("id=\"refused\""), [""; 0]);
    let [signed] = &lines.about("flare.audit")[..] else { panic!("{:?}", lines.about("")) };
    assert!(signed.contains("subject=sign-in/no-token"), "{signed}");
    assert_eq!(lines.about(TOKEN), [""; 0]);
}
