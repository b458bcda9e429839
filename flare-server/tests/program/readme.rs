//! The README's way from nothing to a delivered notification: those very commands, run.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Folder;

const README: &str = include_str!("../../../README.md");
const SECTION: &str = "## From nothing to a delivered notification with curl";

/// The commands of the section, without the one that installs what is under test.
fn commands() -> String {
    let section = README.split_once(SECTION).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let fences = section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let commands: Vec<_> = fences.filter(|fence| !fence.starts_with("cargo install")).collect();
    assert_eq!(commands.len(), 3, "start, tell, end");
    commands.concat()
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

#[test]
fn the_readme_s_commands_deliver_a_notification() {
    // The same words, on ports that nobody else uses just now.
    let (server, client) = (free_port(), free_port());
    let url = format!("http://127.0.0.1:{server}");
    let script = commands()
        .replace("9000", &client)
        .replace("8080", &server)
        .replace("flare start", &format!("flare start --addr 127.0.0.1:{server}"))
        .replace("flare status", &format!("flare status --url {url}"))
        // A person reads between the commands; a script has to wait for what it wants to see.
        .replace("kill %1", "read -t 60 line || true; kill %1")
        .replace("serve_forever()'", "serve_forever()' 2>/dev/null");
    // Whatever fails, nothing is left running.
    let script = format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}\nwait");
    let program = Path::new(env!("CARGO_BIN_EXE_flare")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    // Nobody's files are touched: the server keeps its own where it is started.
    let folder = Folder::new("readme");
    let mut bash = bash
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(folder.path())
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    for line in BufReader::new(bash.stdout.take().unwrap()).lines().map_while(Result::ok) {
        seen.push_str(&line);
        seen.push('\n');
        let (told, shown) = (seen.contains("told: /ada "), seen.contains("SUBSCRIPTION"));
        if told && shown && seen.contains("active") {
            // Enough seen: the script reads this as the end of waiting.
            drop(bash.stdin.take());
        }
    }
    let mut errors = String::new();
    bash.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    bash.wait().unwrap();
    for word in [
        "HTTP/1.1 202 Accepted",
        "flare-change: created",
        "\"action\":\"create\"",
        "\"name\": \"Ada\"",
        "green",
    ] {
        assert!(seen.contains(word), "{word} in\n{seen}\n{errors}");
    }
    assert!(errors.contains("flare has ended"), "{errors}");
    assert!(folder.path().join("flare.db").exists(), "{errors}");
}
