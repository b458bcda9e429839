//! A disk without room: a file system of a few megabytes that only one process sees.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use flare_core::{ErrorKind, Flare};

use crate::support::Scratch;
use crate::support::disk::assert_sound;
use crate::world::{World, block_on, put, stored};

const SIZE: &str = "size=16m";
/// What gives room when it goes: more than file and log have on the rest of the disk, as the log is still there
/// while all it has is moved into the file.
const BALLAST: usize = 10 << 20;
const CONTENT: usize = 20_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Mounts a small disk where nobody else sees it, and has the rest happen there.
const MOUNT: &str = "mount -t tmpfs -o \"$1\" none \"$2\" && exec \"$0\" full \"$2\"";

fn unshare(words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]).args(words);
    command
}

pub(crate) fn is_told() {
    if !unshare(&["true"]).status().is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "this machine cannot mount a small disk");
        // Not through the test's own output, which nobody sees when it passes.
        let line = b"\n*** SKIPPED: a full disk was not tried, for unshare(1) may not mount one\n";
        std::io::stderr().write_all(line).unwrap();
        return;
    }
    let scratch = Scratch::new();
    let program = std::env::current_exe().unwrap();
    let (program, folder) = (program.to_str().unwrap(), scratch.folder().to_str().unwrap());
    let output = unshare(&["sh", "-c", MOUNT, program, SIZE, folder]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(String::from_utf8_lossy(&output.stdout).contains("room again"), "{said}");
}

/// Puts, again while the disk is still full: what the log has of before is moved first.
async fn put_soon(flare: &Flare, name: &str) {
    let began = Instant::now();
    while let Err(error) = put(flare, name, 1, CONTENT).await {
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert!(began.elapsed() < PATIENCE, "there is room, and {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// In a process of its own, on a disk of its own.
pub(crate) fn within(folder: &Path) -> ExitCode {
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![1; BALLAST]).unwrap();
    let path = folder.join("flare.db");
    let config = flare_backend_sqlite::SqliteConfig::new(&path);
    block_on(async {
        let World { flare, runtime, client } = World::open(&config).await;
        let running = runtime.spawn();
        let (mut accepted, mut refused) = (Vec::new(), 0);
        for number in 0..2_000 {
            let name = format!("early-{number}");
            match put(&flare, &name, 1, CONTENT).await {
                Ok(_) => accepted.push(name),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                    assert!(error.is_temporary(), "{error}");
                    assert!(error.to_string().contains("the disk is full"), "{error}");
                    refused += 1;
                }
            }
            if refused > 20 {
                break;
            }
        }
        assert!(refused > 20, "{} fit", accepted.len());
        assert!(!accepted.is_empty());
        // What is there can be read all the while.
        for name in &accepted {
            assert_eq!(stored(&flare, name).await.unwrap(), 1, "{name}");
        }

        fs::remove_file(&ballast).unwrap();
        for number in 0..20 {
            let name = format!("late-{number}");
            put_soon(&flare, &name).await;
            accepted.push(name);
        }
        flare.settled(PATIENCE).await.unwrap();
        let told: std::collections::BTreeSet<String> =
            client.requests().into_iter().map(|it| it.request.document.to_string()).collect();
        for name in &accepted {
            assert_eq!(stored(&flare, name).await.unwrap(), 1, "{name}");
            assert!(told.contains(&crate::world::url(name)), "{name} was not told");
        }
        drop(running);
    });
    assert_sound(&rusqlite::Connection::open(&path).unwrap());
    println!("room again");
    ExitCode::SUCCESS
}
