//! The program without a file of its own: everything is in `flare.db`, outlives the process, and is kept in
//! order by the same commands as any other store.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{Client, Folder, PATIENCE, Server, flare, run};

const ADA: &str = "/documents/http://api.example.com/users/ada";

/// Whoever tests run as, this user is another one.
const NOBODY: u32 = 65_534;

fn command(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    run(flare(arguments).current_dir(folder))
}

/// Looks until something holds, for as long as a test has patience.
fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let pause = Duration::from_millis(10);
    let looks = PATIENCE.as_millis() / pause.as_millis();
    (0..looks).any(|_| {
        std::thread::sleep(pause);
        holds()
    })
}

/// Waits until a client was told so many times.
fn hears(client: &Client, times: usize) -> bool {
    eventually(|| client.told().len() >= times)
}

#[test]
fn with_nothing_said_everything_is_in_a_file_and_outlives_the_process() {
    let folder = Folder::new("default");
    let client = Client::start(Duration::ZERO);
    let mut first = Server::start_in(folder.path(), &[]);
    first.subscribe(&client.url());
    assert_eq!(first.put(ADA, r#"{"revision":1}"#).0, 202);
    assert!(hears(&client, 1), "{}", first.log());
    let path = folder.path().join("flare.db");
    let said = format!("everything is kept in {} (repository.sqlite.path)", path.display());
    assert!(first.log().contains(&said), "{}", first.log());
    // Nobody is asked to end in good order.
    first.kill();

    let mut next = Server::start_in(folder.path(), &[]);
    assert_eq!(next.get(ADA).0, 200);
    let (_, answer) = next.put(ADA, r#"{"revision":2}"#);
    assert!(hears(&client, 2), "{answer} {}", next.log());
    next.terminate();
    assert!(next.wait().success(), "{}", next.log());
    assert!(!next.log().contains("WARN"), "{}", next.log());
}

#[test]
fn two_servers_in_one_directory_share_the_file() {
    let folder = Folder::new("two");
    let client = Client::start(Duration::ZERO);
    let one = Server::start_in(folder.path(), &[]);
    let other = Server::start_in(folder.path(), &[]);
    one.subscribe(&client.url());
    assert_eq!(other.put(ADA, r#"{"revision":1}"#).0, 202);
    assert!(hears(&client, 1), "{}\n{}", one.log(), other.log());
}

#[test]
fn memory_is_a_word_away_and_leaves_nothing_behind() {
    let folder = Folder::new("memory");
    let server = Server::start_in(folder.path(), &["--set", "repository.engine=memory"]);
    server.assert_well();
    assert!(!server.log().contains("everything is kept in"), "{}", server.log());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_that_cannot_be_written_stops_the_start_and_names_what_to_set() {
    let folder = Folder::new("denied");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // Where everybody may start it.
    let (bin, program) = (Folder::new("denied-program"), env!("CARGO_BIN_EXE_flare"));
    let copy = bin.path().join("flare");
    fs::copy(program, &copy).unwrap();
    let mut start = Command::new(&copy);
    start.args(["start", "--addr", "127.0.0.1:0"]).current_dir(folder.path());
    if fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
        // Nothing is denied to root.
        start.uid(NOBODY);
    }
    assert_names_what_to_set(run(&mut start));
}

#[test]
fn a_directory_that_is_not_there_does_too() {
    let folder = Folder::new("missing");
    let path = ["--addr", "127.0.0.1:0", "--set", "repository.sqlite.path=deep/down/flare.db"];
    assert_names_what_to_set(run(flare(&["start"]).args(path).current_dir(folder.path())));
}

fn assert_names_what_to_set((code, _, err): (i32, String, String)) {
    assert_eq!(code, 1, "{err}");
    for word in ["flare.db", "repository.sqlite.path", "repository.engine=memory"] {
        assert!(err.contains(word), "{word} in {err}");
    }
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn the_file_is_kept_in_order_by_the_same_commands() {
    let folder = Folder::new("upkeep");
    let (code, out, err) = command(folder.path(), &["setup", "--plan"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("repository (sqlite):\n  + create  schema version 1"), "{out}");
    assert!(!folder.path().join("flare.db").exists(), "whoever only looks makes none");
    for purpose in ["fixup", "cleanup"] {
        let (code, out, err) = command(folder.path(), &[purpose, "--plan"]);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("queue (sqlite): nothing to"), "{out}");
    }
    let (code, out, err) = command(folder.path(), &["setup", "--yes"]);
    assert_eq!(code, 0, "{out}{err}");
    let server = Server::start_in(folder.path(), &[]);
    for purpose in ["setup", "fixup", "cleanup"] {
        let (code, out, err) = command(folder.path(), &[purpose, "--yes"]);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert!(out.contains("repository (sqlite): nothing to"), "beside a server: {out}");
    }
    server.assert_well();
}

#[test]
fn config_and_status_know_it() {
    let folder = Folder::new("shown");
    let (_, out, _) = command(folder.path(), &["config"]);
    assert!(out.contains("[repository.sqlite]\npath = \"flare.db\""), "{out}");
    let server = Server::start_in(folder.path(), &[]);
    // It takes its slots while it answers already.
    let green = eventually(|| {
        let (code, out, err) = command(folder.path(), &["status", "--url", &server.url()]);
        assert_eq!(code, 0, "{err}");
        out.contains("green")
    });
    assert!(green, "{}", server.log());
}

#[test]
fn a_copy_is_made_while_the_server_runs_and_can_be_started_on() {
    let (folder, other) = (Folder::new("backup"), Folder::new("restored"));
    let server = Server::start_in(folder.path(), &[]);
    server.subscribe("http://127.0.0.1:1");
    assert_eq!(server.put(ADA, r#"{"revision":1}"#).0, 202);
    let copy = other.path().join("flare.db");
    let copy = copy.to_str().unwrap();
    let (code, out, err) = command(folder.path(), &["backup", copy]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("complete, and checked"), "{out}");
    assert!(err.contains("copied: 100 %"), "{err}");
    server.assert_well();

    let (code, out, err) = command(folder.path(), &["backup", copy]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("is there already, and is not written over"), "{err}");
    let left: Vec<_> = fs::read_dir(other.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");

    let restored = Server::start_in(other.path(), &[]);
    assert_eq!(restored.get(ADA).0, 200, "{}", restored.log());
}

#[test]
fn what_cannot_be_copied_says_what_to_use_instead() {
    let folder = Folder::new("no-backup");
    let (code, _, err) = command(folder.path(), &["backup", "copy.db"]);
    assert_eq!(code, 1);
    assert!(err.contains("there is no flare.db to copy"), "{err}");
    let in_memory = ["backup", "copy.db", "--set", "repository.engine=memory"];
    let (code, _, err) = command(folder.path(), &in_memory);
    assert_eq!(code, 1);
    assert!(err.contains("flare-backend-sqlite"), "{err}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
