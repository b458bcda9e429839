//! The binary as a new user meets it: each command, each slip, and what it says to that.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Client, IN_MEMORY, Server, flare, run};

/// A file that is gone when the test is.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("flare-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

#[test]
fn version_has_the_commit_and_its_date() {
    let (code, out, _) = run(&mut flare(&["version"]));
    assert_eq!(code, 0);
    let (version, built) = out.trim().split_once('+').unwrap();
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let (commit, date) = built.split_once('.').unwrap();
    let known = commit.len() == 12 && commit.chars().all(|c| c.is_ascii_hexdigit());
    let dated = date.len() == 8 && date.chars().all(|c| c.is_ascii_digit());
    assert!((known && dated) || (commit, date) == ("unknown", "unknown"), "{out}");
    assert!(run(&mut flare(&["--version"])).1.contains(out.trim()));
}

#[test]
fn a_filter_is_tried_on_a_file() {
    let file = Scratch::new("order.json", r#"{"total":9007199254740993}"#);
    let cases = [
        ("document.total == 9007199254740993 && params.shop == 'bern'", 0, "true\n", ""),
        ("document.total > 9007199254740993", 0, "false\n", ""),
        ("document.missing", 1, "", "the filter fails on it: there is no document.missing"),
        ("document.total >", 2, "", "filter: line 1, column 17:"),
    ];
    for (filter, code, out, said) in cases {
        let asked = ["filter", filter, file.path(), "--param", "shop=bern"];
        let (found, answer, errors) = run(&mut flare(&asked));
        assert_eq!((found, answer.as_str()), (code, out), "{filter}: {errors}");
        assert!(errors.contains(said), "{filter}: {errors}");
    }
    let (code, _, errors) = run(&mut flare(&["filter", "true", "/nowhere/at-all.json"]));
    assert_eq!(code, 1);
    assert!(errors.contains("cannot read /nowhere/at-all.json"), "{errors}");
    assert_eq!(run(&mut flare(&["filter", "true", file.path(), "-p", "shop"])).0, 2);
}

#[test]
fn config_shows_what_is_in_effect_and_no_secret() {
    let file = Scratch::new(
        "config.toml",
        "[log]\nlevel = \"warn\"\n[worker]\nenable = false\n\
         [[http.auth.tokens]]\ntoken = \"secret-word-of-ours\"\nscope = \"read\"",
    );
    let arguments =
        ["config", "-c", file.path(), "--addr", "127.0.0.1:1", "-s", "queue.engine=sqlite"];
    let (code, out, _) = run(flare(&arguments).env("FLARE_LOG__LEVEL", "error"));
    assert_eq!(code, 0);
    for line in ["addr = \"127.0.0.1:1\"", "level = \"error\"", "enable = false", "token = \"***\""]
    {
        assert!(out.contains(line), "{line} in {out}");
    }
    assert!(!out.contains("secret-word"), "{out}");
}

#[test]
fn the_sample_file_is_accepted() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/flare.sample.toml");
    let (code, out, _) = run(&mut flare(&["config", "-c", sample]));
    assert_eq!(code, 0);
    assert_eq!(out, run(&mut flare(&["config"])).1);
}

#[test]
fn slips_end_with_code_2_and_say_what_is_wrong() {
    let typo = Scratch::new("typo.toml", "[http.server]\nbody-limt = \"1MiB\"\n");
    let broken = Scratch::new("broken.toml", "[http.server\n");
    for (arguments, says) in [
        (vec!["start", "-c", "/nowhere/flare.toml"], "/nowhere/flare.toml: there is no such file"),
        (vec!["start", "-c", typo.path()], "did you mean http.server.body-limit?"),
        (vec!["start", "-c", broken.path()], "line 1"),
        (vec!["start", "--addr", "localhost"], "http.server.addr must be an IP address and port"),
        (vec!["start", "--log-level", "loud"], "log.level must be"),
        (vec!["start", "--set", "worker.enable"], "must be KEY=VALUE"),
        (vec!["start", "--set", "worker.enabled=1"], "did you mean worker.enable?"),
        (
            vec!["start", "--set", "repository.engine=postgres"],
            "repository.engine must be \"sqlite\", \"memory\", \"mongodb\"",
        ),
        (vec!["begin"], "begin"),
        (vec!["status", "--url", "here"], "--url"),
        (vec![], "Usage: flare"),
    ] {
        let (code, _, err) = run(&mut flare(&arguments));
        assert_eq!(code, 2, "{arguments:?}: {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
    let (code, _, err) = run(flare(&["start"]).env("FLARE_HTTP__SERVER__ADRR", "127.0.0.1:1"));
    assert_eq!(code, 2);
    assert!(err.contains("did you mean FLARE_HTTP__SERVER__ADDR?"), "{err}");
}

#[test]
fn what_cannot_be_done_ends_with_code_1_and_what_to_do() {
    let server = Server::start(&[]);
    let taken = server.addr.to_string();
    for (arguments, says) in [
        (vec!["start", "--addr", &taken], "the port is in use by another process"),
        (vec!["start", "--addr", "192.0.2.1:8080"], "this machine has no address 192.0.2.1"),
        (
            vec!["start", "--set", "log.output=/nowhere/flare.log"],
            "cannot write the log to /nowhere",
        ),
        (vec!["status", "--url", "http://127.0.0.1:1"], "is it running?"),
    ] {
        let mut command = flare(&arguments);
        if arguments[0] == "start" {
            command.args(IN_MEMORY);
        }
        let (code, _, err) = run(&mut command);
        assert_eq!(code, 1, "{arguments:?}: {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}

#[test]
fn status_shows_server_cluster_and_subscriptions() {
    let server = Server::start(&[]);
    let client = Client::start(Duration::ZERO);
    let subscription = server.subscribe(&client.url());
    let (code, out, err) = run(&mut flare(&["status", "--url", &server.url()]));
    assert_eq!(code, 0, "{err}");
    let id = subscription.rsplit('/').next().unwrap();
    for word in ["green", "uptime", "http://api.example.com/users/{id}", id, "active", "LAG"] {
        assert!(out.contains(word), "{word} in {out}");
    }
}

#[test]
fn status_is_watched_until_ctrl_c_whatever_happens_to_the_server() {
    let server = Server::start(&[]);
    let asked = ["status", "--watch", "--interval", "50ms", "--url", &server.url()];
    let mut watching = flare(&asked).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut seen = String::new();
    while seen.matches("SLOTS  STATE").count() < 2 {
        seen += &format!("{}\n", lines.next().unwrap());
    }
    for word in ["green", "NODE", "this one", "1024", "owned", "0 subscriptions", "LAST ERROR"] {
        assert!(seen.contains(word), "{word} in {seen}");
    }
    assert!(!seen.contains('\u{1b}'), "no terminal, no screen to clear");
    drop(server);
    for _ in 0..2 {
        assert!(lines.any(|line| line.contains("is it running?")));
    }
    let id = watching.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(watching.wait().unwrap().success());
}

#[test]
fn watching_shows_first_who_is_furthest_behind() {
    let server = Server::start(&[]);
    let client = Client::start(Duration::ZERO);
    let subscriptions = format!("/resources/{}/subscriptions", server.users());
    let [well, behind] = [client.url(), "http://127.0.0.1:1".to_owned()].map(|url| {
        let wish = format!(r#"{{"endpoint":{{"url":"{url}"}}}}"#);
        let (status, said) = server.post(&subscriptions, &wish);
        assert_eq!(status, 201, "{said}");
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        said["id"].as_str().unwrap().to_owned()
    });
    for id in ["ada", "bob"] {
        let path = format!("/documents/http://api.example.com/users/{id}");
        assert_eq!(server.put(&path, r#"{"revision":1}"#).0, 202);
    }
    let asked =
        ["status", "--watch", "--interval", "50ms", "--order", "lag", "--url", &server.url()];
    let mut watching = flare(&asked).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    // Both are shown in a round in which the one is told and the other is not.
    let mut first = None;
    for line in lines {
        let cells: Vec<&str> = line.split_whitespace().collect();
        match cells.as_slice() {
            [id, "active", lag, ..] if *id == behind && *lag == "2" => first = Some(line.clone()),
            [id, "active", "0", ..] if *id == well && first.is_some() => break,
            [id, ..] if *id == well => first = None,
            _ => {}
        }
    }
    assert!(first.unwrap().contains("127.0.0.1:1"), "with its url");
    let id = watching.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(watching.wait().unwrap().success());
}

#[test]
fn watching_the_wrong_server_or_without_a_token_ends_with_the_reason() {
    let (code, _, err) = run(&mut flare(&["status", "--watch", "--url", "http://127.0.0.1:1"]));
    assert_eq!(code, 1);
    assert!(err.contains("is it running?"), "{err}");
    let tokens = "http.auth.tokens=[{ token = \"secret-word-of-ours\", scope = \"read\" }]";
    let server = Server::start(&["--set", tokens]);
    let (code, _, err) = run(&mut flare(&["status", "--watch", "--url", &server.url()]));
    assert_eq!(code, 1);
    assert!(err.contains("401") && err.contains("FLARE_TOKEN"), "{err}");
    let client = Client::start(Duration::ZERO);
    let (code, _, err) = run(&mut flare(&["status", "--watch", "--url", &client.url()]));
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("answers") || err.contains("is no Flare server"), "{err}");
}

#[test]
fn an_interval_is_a_time_and_needs_watching() {
    for (arguments, says) in [
        (vec!["status", "--watch", "--interval", "1"], "500ms"),
        (vec!["status", "--watch", "--interval", "0s"], "from 10ms to 1h"),
        (vec!["status", "--interval", "1s"], "--watch"),
        (vec!["status", "--order", "lag"], "--watch"),
        (vec!["status", "--watch", "--order", "age"], "must be lag, oldest, failures or rate"),
    ] {
        let (code, _, err) = run(&mut flare(&arguments));
        assert_eq!(code, 2, "{arguments:?}: {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}

#[test]
fn with_tokens_only_their_holders_are_answered() {
    let tokens = "http.auth.tokens=[{ token = \"secret-word-of-ours\", scope = \"read\" }]";
    let server = Server::start(&["--set", tokens]);
    server.assert_well();
    assert_eq!(server.get("/resources").0, 401);
    let (code, _, err) = run(&mut flare(&["status", "--url", &server.url()]));
    assert_eq!(code, 1);
    assert!(err.contains("FLARE_TOKEN"), "{err}");
    let mut command = flare(&["status", "--url", &server.url()]);
    let (code, _, err) = run(command.env("FLARE_TOKEN", "secret-word-of-ours"));
    assert_eq!(code, 0, "{err}");
    assert!(!server.log().contains("secret"), "{}", server.log());
}

#[test]
fn listening_to_everybody_without_tokens_is_warned_of() {
    let open = Server::start(&["--addr", "0.0.0.0:0"]);
    crate::common::request(([127, 0, 0, 1], open.addr.port()).into(), "GET", "/", "");
    let mut open = open;
    open.terminate();
    assert!(open.wait().success());
    assert!(open.log().contains("may do everything"), "{}", open.log());
    let mut closed = Server::start(&[]);
    closed.terminate();
    assert!(closed.wait().success());
    assert!(!closed.log().contains("WARN"), "{}", closed.log());
}

#[test]
fn tokens_that_cross_a_network_in_the_clear_are_warned_of() {
    let tokens = "http.auth.tokens=[{ token = \"secret-word-of-ours\", scope = \"read\" }]";
    for (addr, warned) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let mut server = Server::start(&["--addr", addr, "--set", tokens]);
        server.terminate();
        assert!(server.wait().success());
        let log = server.log();
        assert_eq!(log.contains("in the clear"), warned, "{log}");
        assert_eq!(log.contains("WARN"), warned, "{log}");
        assert!(!log.contains("secret-word"), "{log}");
    }
}

#[test]
fn json_logs_are_objects_with_the_commit() {
    let mut server = Server::start(&["--set", "log.format=json"]);
    server.terminate();
    assert!(server.wait().success());
    let log = server.log();
    assert!(log.lines().count() > 2, "{log}");
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["commit"].is_string() && line["message"].is_string(), "{line}");
    }
}

#[test]
fn logs_go_to_the_file_that_is_named() {
    let file = Scratch::new("log", "");
    let output = format!("log.output={}", file.path());
    // Nothing comes on standard error, so the port has to be known before.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let addr = port.to_string();
    let mut command = flare(&["start", "--addr", &addr, "--set", &output]);
    let mut child = command.args(IN_MEMORY).spawn().unwrap();
    let found = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        fs::read_to_string(&file.0).unwrap().contains("flare listens on http://")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(found);
}

#[test]
fn without_a_worker_changes_are_taken_and_nothing_is_delivered() {
    let mut server = Server::start(&["--set", "worker.enable=false"]);
    let client = Client::start(Duration::ZERO);
    let subscription = server.subscribe(&client.url());
    let (status, body) =
        server.put("/documents/http://api.example.com/users/ada", r#"{"revision":1}"#);
    assert_eq!(status, 202, "{body}");
    let (_, shown) = server.get(&format!("{subscription}/status"));
    assert!(shown.contains("\"spreading\":1"), "{shown}");
    server.terminate();
    assert!(server.wait().success());
    assert!(server.log().contains("nothing will be delivered"), "{}", server.log());
    assert_eq!(client.told(), Vec::<String>::new());
}

#[test]
fn metrics_are_served_as_prometheus_reads_them() {
    let server = Server::start(&[]);
    server.subscribe("http://127.0.0.1:1");
    server.put("/documents/http://api.example.com/users/ada", r#"{"revision":1}"#);
    let (status, text) = server.get("/metrics");
    assert_eq!(status, 200);
    assert!(text.contains("# TYPE flare_accepted_total counter"), "{text}");
    assert!(text.contains("flare_accepted_total 1"), "{text}");
}

#[cfg(feature = "profile")]
#[test]
fn a_profile_of_a_busy_server_is_written_to_a_file() {
    let tokens =
        "http.auth.tokens=[{ name = \"ops\", token = \"secret-word-of-ours\", scope = \"admin\" }]";
    let server = Server::start(&["--set", tokens]);
    let file = Scratch::new("profile.pb", "");
    let url = server.url();
    let arguments = ["profile", file.path(), "--url", &url, "--format", "pprof", "--seconds", "1"];
    let (code, _, err) = run(&mut flare(&arguments));
    assert_eq!(code, 1);
    assert!(err.contains("401") && err.contains("FLARE_TOKEN"), "{err}");
    let (code, out, err) = run(flare(&arguments).env("FLARE_TOKEN", "secret-word-of-ours"));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("profile.pb"), "{out}");
    let profile = std::fs::read(file.path()).unwrap();
    let has = |words: &[u8]| profile.windows(words.len()).any(|part| part == words);
    assert!(has(b"nanoseconds"), "{} bytes that are no profile", profile.len());
    assert_eq!(run(&mut flare(&["profile", file.path(), "--seconds", "61"])).0, 2);
}
