//! Takes the repository this is built in, if there is one; gives the commit and its date to
//! `version.rs`. Never fails: a build from an archive has neither and says `unknown`.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let date = git(&["show", "--no-patch", "--format=%cd", "--date=format:%Y%m%d", "HEAD"]);
    tell("rerun-if-changed=build.rs");
    tell(&format!("rustc-env=FLARE_BUILD_COMMIT={}", commit.as_deref().unwrap_or("unknown")));
    tell(&format!("rustc-env=FLARE_BUILD_DATE={}", date.as_deref().unwrap_or("unknown")));
    // HEAD names a branch and rarely changes; its log grows with every commit and every switch.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file])
            && Path::new(&path).exists()
        {
            tell(&format!("rerun-if-changed={path}"));
        }
    }
}

/// What git answers, in one word; nothing without git, without a repository, or in somebody
/// else's (the sources of a package that was unpacked within one are not that repository's).
fn git(arguments: &[&str]) -> Option<String> {
    let known = Command::new("git").args(["ls-files", "--error-unmatch", "build.rs"]).output();
    if !known.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}

#[allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]
fn tell(line: &str) {
    println!("cargo::{line}");
}
