//! The console in a real browser: a Chromium, driven by the scenarios of `tests/console/`, at a real server. Each
//! leaves pictures of its pages below the target directory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::print_stderr, reason = "what a browser says is worth a line")]

mod common;

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use common::{Folder, Server};
use flare_testkit::{Service, Trials};

/// What runs a script that drives a browser.
const BROWSER: Service = Service::new("browser", "FLARE_TEST_BROWSER");

const READ: &str = "a-token-that-may-look";
const ADMIN: &str = "a-token-that-may-do-everything";

fn main() -> ExitCode {
    // Both cores are wanted by one browser and what it looks at.
    Trials::on(BROWSER)
        .at_a_time(2)
        // The longest first.
        .test("every_page", async |browser| alone(&browser, "every_page"))
        .test("first_visit", async |browser| alone(&browser, "first_visit"))
        .test("failing_client", async |browser| alone(&browser, "failing_client"))
        .test("backfill", backfill)
        .test("live", async |browser| alone(&browser, "live"))
        .test("consumer", consumer)
        .test("tokens", tokens)
        .test("two_nodes", two_nodes)
        .test("keyboard", async |browser| alone(&browser, "keyboard"))
        .test("without_scripts", async |browser| alone(&browser, "without_scripts"))
        .run()
}

/// Scenarios at a server of their own, open to everybody.
fn alone(browser: &str, scenario: &str) {
    let server = Server::start(&[]);
    run(browser, scenario, &[server.url()], &[&server]);
}

/// With slots for single subscriptions.
async fn backfill(browser: String) {
    let server = Server::start(&["--set", "cluster.pinned-slots=4"]);
    run(&browser, "backfill", &[server.url()], &[&server]);
}

/// A source that cannot be reached is enough to see what a consumer says.
async fn consumer(browser: String) {
    let aws = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];
    let allowed = [
        "--set",
        "consumers.aws.region=us-east-1",
        "--set",
        "consumers.aws.endpoints=http://127.0.0.1:1",
    ];
    let server = Server::start_with(&aws, &allowed);
    run(&browser, "consumer", &[server.url()], &[&server]);
}

async fn tokens(browser: String) {
    let folder = Folder::new("console-tokens");
    let file = folder.path().join("flare.toml");
    let token = |name, token, scope| {
        format!(
            "[[http.auth.tokens]]\nname = \"{name}\"\ntoken = \"{token}\"\nscope = \"{scope}\"\n"
        )
    };
    let tokens = token("dashboard", READ, "read") + &token("ann", ADMIN, "admin");
    std::fs::write(&file, tokens).unwrap();
    let file = file.display().to_string();
    let server = Server::start(&["-c", &file]);
    let arguments = [server.url(), READ.to_owned(), ADMIN.to_owned()];
    run(&browser, "tokens", &arguments, &[&server]);
}

/// Two processes that share a file.
async fn two_nodes(browser: String) {
    let folder = Folder::new("console-nodes");
    let node =
        |name: &str| Server::start_in(folder.path(), &["--set", &format!("cluster.name={name}")]);
    let (first, second) = (node("first"), node("second"));
    run(&browser, "two_nodes", &[first.url(), second.url()], &[&first, &second]);
}

/// Runs a scenario to its end, and fails with what it said.
fn run(browser: &str, scenario: &str, arguments: &[String], servers: &[&Server]) {
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console").join(scenario);
    drop(std::fs::remove_dir_all(&pictures));
    std::fs::create_dir_all(&pictures).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/console/run.cjs");
    let output = Command::new(browser)
        .arg(script)
        .arg(scenario)
        .arg(&pictures)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if !output.status.success() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let logs: Vec<String> = servers.iter().map(|server| server.log()).collect();
        let said = text(&output.stdout) + &text(&output.stderr);
        panic!("{said}\npictures are in {}\n{}", pictures.display(), logs.join("\n"));
    }
}
