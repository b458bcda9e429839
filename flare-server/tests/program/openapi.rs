//! What the server says about itself, tried by schemathesis: no 5xx, and no answer that differs
//! from the OpenAPI document it serves.

use std::fs;
use std::io::Write;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::Server;

/// Its exit code when schemathesis cannot be installed.
const UNAVAILABLE: i32 = 3;

/// What Python 3.11 says when its own parser meets a deep stack (CPython issue 106905): schemathesis
/// itself has crashed then, and has found out nothing.
const PYTHON_CRASHED: &str = "AST constructor recursion depth mismatch";
const TRIES: usize = 4;

/// What it says; asked again if Python crashed under it.
fn say(server: &Server, more: &[&str]) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/schemathesis");
    let run = || Command::new(script).arg(server.url()).args(more).output().unwrap();
    let crashed = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout);
        text.contains(PYTHON_CRASHED) && !text.contains("= FAILURES =")
    };
    let mut output = run();
    for _ in 1..TRIES {
        if !crashed(&output) {
            break;
        }
        output = run();
    }
    output
}

fn schemathesis(server: &Server, more: &[&str]) {
    let output = say(server, more);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => assert!(text.contains("passed"), "{text}"),
        Some(UNAVAILABLE) if std::env::var_os("CI").is_none() => {
            // Not through the test's own output, which nobody sees when it passes.
            let line = format!("\n*** SKIPPED: the OpenAPI document was not tried. {errors}\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        }
        code => panic!("{code:?}\n{text}\n{errors}\n{}", server.log()),
    }
    server.assert_well();
}

#[test]
fn made_up_input_meets_no_5xx_and_no_surprise() {
    let server = Server::start(&["--log-level", "warn,flare_server=info"]);
    schemathesis(&server, &[]);
}

#[test]
fn neither_does_what_exists() {
    let server = Server::start(&["--log-level", "warn,flare_server=info"]);
    let subscription = server.subscribe("http://127.0.0.1:1");
    let ids: Vec<_> = subscription.split('/').collect();
    let (status, _) =
        server.put("/documents/http://api.example.com/users/ada", r#"{"revision":1}"#);
    assert_eq!(status, 202);
    // Deleting would leave nothing for the rest to meet.
    schemathesis_of(&server, &ids, &["--exclude-method", "DELETE"]);
}

#[test]
fn neither_does_a_client_that_pulls() {
    let server = Server::start(&["--log-level", "warn,flare_server=info"]);
    let active = server.subscribe("http://127.0.0.1:1");
    let (subscriptions, _) = active.rsplit_once('/').unwrap();
    let wish = r#"{"mode":"passive","endpoint":{"url":"http://127.0.0.1:2/{id}"}}"#;
    let (status, passive) = server.post(subscriptions, wish);
    assert_eq!(status, 201, "{passive}");
    let passive: serde_json::Value = serde_json::from_str(&passive).unwrap();
    let path = format!("{subscriptions}/{}", passive["id"].as_str().unwrap());
    let put = |number: u32| {
        let document = format!("/documents/http://api.example.com/users/{number}");
        let (status, said) = server.put(&document, r#"{"revision":1}"#);
        assert_eq!(status, 202, "{said}");
    };
    // What the document says of a pull, a settlement and a demand that find something is met at least once.
    put(0);
    put(1);
    let (status, pulled) = server.post(&format!("{path}/pull"), r#"{"max":1,"waitSeconds":20}"#);
    assert_eq!(status, 200, "{pulled}");
    let pulled: serde_json::Value = serde_json::from_str(&pulled).unwrap();
    let receipt = pulled["notifications"][0]["receipt"].as_str().unwrap();
    let outcome = format!(r#"{{"receipts":[{{"receipt":"{receipt}","outcome":"success"}}]}}"#);
    let (status, settled) = server.post(&format!("{path}/settle"), &outcome);
    assert!(status == 200 && settled.contains(r#""settled""#), "{status}: {settled}");

    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A pull may ask to wait for longer than schemathesis waits for an answer; so that it never has to,
        // there is always another document.
        scope.spawn(|| {
            for number in 2.. {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                put(number);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let _ends = Ends(&ended);
        // It pauses and replaces nothing here, so all that is answered is answered to a client that pulls.
        let ids: Vec<_> = path.split('/').collect();
        schemathesis_of(&server, &ids, &["--include-path-regex", "/(pull|settle|demand)$"]);
    });
}

/// Says that something is over, whatever ended it.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tries what exists: the subscription whose path this is, and a document.
fn schemathesis_of(server: &Server, path: &[&str], more: &[&str]) {
    let config = format!(
        "[parameters]\n\"path.rid\" = \"{}\"\n\"path.id\" = \"{}\"\n\"path.url\" = \
         \"http://api.example.com/users/ada\"\n",
        path[2], path[4]
    );
    let name = format!("flare-schemathesis-{}-{}.toml", std::process::id(), path[4]);
    let file = std::env::temp_dir().join(name);
    fs::write(&file, config).unwrap();
    schemathesis(server, &[&["--config-file", file.to_str().unwrap()], more].concat());
    fs::remove_file(file).unwrap();
}
