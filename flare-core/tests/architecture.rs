//! The rules of ARCHITECTURE.md that a machine can check, over the sources of the whole house.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// All files below `folder` with one of the endings, build output apart.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(files(&path, endings));
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
    found
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// The crates of the workspace and those of ours they depend on outside their tests.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let mut edges = BTreeMap::new();
    for manifest in files(&root(), &["Cargo.toml"]) {
        let manifest = text(&manifest);
        let Some(name) = manifest.lines().find_map(|line| line.strip_prefix("name = ")) else {
            continue;
        };
        let mut section = "";
        let mut ours = BTreeSet::new();
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            } else if section == "[dependencies]" && line.starts_with("flare-") {
                ours.insert(line.split(['.', ' ', '=']).next().unwrap().to_owned());
            }
        }
        edges.insert(name.trim_matches('"').to_owned(), ours);
    }
    edges
}

#[test]
fn crates_depend_only_in_the_allowed_direction() {
    let edges = edges();
    assert!(edges.len() >= 3, "the manifests are read: {edges:?}");
    for (name, ours) in &edges {
        let allowed = |other: &str| match name.as_str() {
            "flare-core" => false,
            "flare-server" | "flare-examples" | "flare-benches" => true,
            "flare-console" => matches!(other, "flare-core" | "flare-http"),
            _ => other == "flare-core",
        };
        for other in ours {
            assert!(allowed(other), "{name} must not depend on {other}");
        }
    }
}

/// The modules of the core that a file names with `crate::`.
fn modules_used(source: &str) -> BTreeSet<String> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut used = BTreeSet::new();
    for line in code {
        for (at, _) in line.match_indices("crate::") {
            let rest = &line[at + "crate::".len()..];
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            used.insert(name);
        }
    }
    used
}

fn assert_room(room: &str, allowed: &[&str]) {
    let folder = root().join("flare-core/src").join(room);
    for file in files(&folder, &[".rs"]) {
        for module in modules_used(&text(&file)) {
            assert!(
                allowed.contains(&module.as_str()),
                "{}: {room} may use {allowed:?}, not crate::{module}",
                file.display()
            );
        }
    }
}

#[test]
fn the_model_uses_nothing_but_itself() {
    assert_room("model", &["model"]);
}

#[test]
fn ports_use_only_model_and_error() {
    assert_room("port", &["port", "model", "error", "Error", "ErrorKind", "Result"]);
}

#[test]
fn delivery_over_http_uses_only_model_port_error_and_tools() {
    assert_room("http", &["http", "port", "model", "error", "tools"]);
}

#[test]
fn filters_use_only_model_and_tools() {
    assert_room("filter", &["filter", "model", "tools"]);
}

#[test]
fn upkeep_uses_only_model_port_and_error() {
    assert_room("upkeep", &["upkeep", "port", "model", "error"]);
}

#[test]
fn the_cluster_uses_only_model_port_error_and_the_names_of_what_is_observed() {
    let rooms = ["cluster", "audit", "ownership", "port", "model", "error", "observe", "tools"];
    assert_room("cluster", &rooms);
}

#[test]
fn the_log_of_what_was_done_uses_only_model_port_error_and_the_names_of_what_is_observed() {
    assert_room("audit", &["audit", "port", "model", "error", "observe", "tools"]);
}

#[test]
fn the_words_of_ownership_use_only_model_and_port() {
    assert_room("ownership", &["ownership", "port", "model"]);
}

#[test]
fn pipeline_and_cluster_do_not_know_each_other() {
    for (room, other) in [("pipeline", "cluster"), ("cluster", "pipeline")] {
        let folder = root().join("flare-core/src").join(room);
        if !folder.exists() {
            continue;
        }
        for file in files(&folder, &[".rs"]) {
            let used = modules_used(&text(&file));
            assert!(!used.contains(other), "{} uses {other}", file.display());
        }
    }
}

#[test]
fn every_example_in_the_documentation_is_run() {
    for file in files(&root(), &[".rs", ".md"]) {
        for (number, line) in text(&file).lines().enumerate() {
            let fence =
                line.trim_start().trim_start_matches("///").trim_start_matches("//!").trim();
            let Some(tags) = fence.strip_prefix("```") else { continue };
            let skipped = tags.split(',').any(|tag| matches!(tag.trim(), "ignore" | "no_run"));
            assert!(!skipped, "{}:{}: {fence}", file.display(), number + 1);
        }
    }
}

#[test]
fn every_crate_opts_into_the_workspace_s_lints_and_metadata() {
    for file in files(&root(), &["Cargo.toml"]) {
        let manifest = text(&file);
        if !manifest.contains("[package]") {
            continue;
        }
        for line in [
            "[lints]\nworkspace = true",
            "edition.workspace = true",
            "rust-version.workspace = true",
            "license.workspace = true",
            "description = ",
        ] {
            assert!(manifest.contains(line), "{}: {line:?} is missing", file.display());
        }
    }
}

/// The entries of a list in the workspace's manifest.
fn listed(name: &str) -> BTreeSet<String> {
    let manifest = text(&root().join("Cargo.toml"));
    let line = manifest.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let list = line.trim_start_matches([' ', '=', '[']).trim_end_matches(']');
    list.split(", ").map(|entry| entry.trim_matches('"').to_owned()).collect()
}

#[test]
fn only_what_needs_protoc_is_left_out_of_a_plain_build() {
    const NEEDS_PROTOC: &str = "flare-backend-etcd";
    let (all, plain) = (listed("members"), listed("default-members"));
    let left_out: Vec<_> = all.difference(&plain).collect();
    assert_eq!(left_out, [NEEDS_PROTOC]);
    assert!(plain.is_subset(&all));
    // Its settings need none: whoever wants more says so.
    let workspace = text(&root().join("Cargo.toml"));
    let named = workspace.lines().find(|line| line.starts_with(NEEDS_PROTOC)).unwrap();
    assert!(named.contains("default-features = false"), "{named}");
    for member in plain {
        let manifest = text(&root().join(&member).join("Cargo.toml"));
        let needs = |line: &str| {
            let asks = line.contains("client") || line.contains("default-features");
            line.starts_with(NEEDS_PROTOC) && asks && !line.contains("optional = true")
        };
        assert!(!manifest.lines().any(needs), "{member} cannot be built without protoc");
    }
}

#[test]
fn the_readme_s_settings_have_the_values_it_says() {
    let settings = flare_core::Settings::default();
    let readme = text(&root().join("flare-core/README.md"));
    let seconds = |time: std::time::Duration| format!("{} s", time.as_secs());
    for (fields, values) in [
        ("`partition_limit`", vec![settings.partition_limit.to_string()]),
        ("`pinned_slots`", vec![settings.pinned_slots.to_string()]),
        ("`workers`, `batch`", vec![settings.workers.to_string(), settings.batch.to_string()]),
        ("`ingest_limit`", vec![settings.ingest_limit.to_string()]),
        (
            "`concurrency`, `in_flight_limit`",
            vec![settings.concurrency.to_string(), settings.in_flight_limit.to_string()],
        ),
        ("`timeout`", vec![seconds(settings.timeout)]),
        ("`jobs_every`", vec![seconds(settings.jobs_every)]),
        ("`sample_every`", vec![seconds(settings.sample_every)]),
        ("`metered_subscriptions`", vec![settings.metered_subscriptions.to_string()]),
        ("`drain_limit`", vec![seconds(settings.drain_limit)]),
    ] {
        let row = readme.lines().find(|line| line.starts_with(&format!("| {fields} |")));
        let row = row.unwrap_or_else(|| panic!("there is no row {fields}"));
        let said = row.split('|').nth(2).unwrap().replace("1,", "1").trim().to_owned();
        assert_eq!(said, values.join(", "), "{row}");
    }
}

#[test]
fn every_source_file_says_what_it_is_for() {
    for file in files(&root(), &[".rs"]) {
        let source = text(&file);
        let opening = source.lines().next().unwrap_or_default();
        let documented = opening.starts_with("//!") || opening.starts_with("#![doc = include_str!");
        assert!(documented, "{} does not open with //!", file.display());
    }
}

/// An implementor that has to write `_ =>` would answer wrongly to what is new to it.
#[test]
fn an_implementor_of_a_port_can_match_whatever_it_is_given() {
    const ONLY_MADE: [&str; 3] = ["FailureKind", "Part", "Reply"];
    let mut open = BTreeSet::new();
    for file in files(&root().join("flare-core/src/port"), &[".rs"]) {
        for rest in text(&file).split("#[non_exhaustive]\n").skip(1) {
            let Some(rest) = rest.strip_prefix("pub enum ") else { continue };
            open.insert(rest.split(' ').next().unwrap().to_owned());
        }
    }
    assert_eq!(open, ONLY_MADE.map(str::to_owned).into());
}

#[test]
fn the_checks_see_what_they_look_for() {
    let used = modules_used("use crate::pipeline::Task; // crate::cluster\n// crate::http\n");
    assert!(used.contains("pipeline") && !used.contains("http"));
}

/// The files and folders that a text names in backticks: `a/b.rs`, `a/b/`, and each of `a/{b, c}`.
fn paths_named(text: &str) -> Vec<String> {
    let is_path = |name: &String| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
    };
    let mut named = Vec::new();
    for name in text.split('`').skip(1).step_by(2).filter(|name| !name.contains('\n')) {
        let list = name.split_once('{').and_then(|(before, rest)| {
            let (list, after) = rest.split_once('}')?;
            (list.contains(',') && before.contains(['/', '-'])).then_some((before, list, after))
        });
        match list {
            Some((before, list, after)) => {
                let each = list.split(',').map(|item| format!("{before}{}{after}", item.trim()));
                named.extend(each.filter(is_path));
            }
            None if name.ends_with(".rs") || name.ends_with('/') && name.len() > 1 => {
                named.extend(Some(name.to_owned()).filter(is_path));
            }
            None => {}
        }
    }
    named
}

#[test]
fn every_file_that_the_map_names_is_there() {
    let there: Vec<String> =
        files(&root(), &[".rs"]).iter().map(|file| file.display().to_string()).collect();
    let is_there = |name: &str| {
        let name = name.trim_end_matches('/');
        let (file, module, folder) =
            (format!("/{name}"), format!("/{name}.rs"), format!("/{name}/"));
        there
            .iter()
            .any(|path| path.ends_with(&file) || path.ends_with(&module) || path.contains(&folder))
    };
    let named = paths_named(&text(&root().join("ARCHITECTURE.md")));
    let missing: Vec<_> = named.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
    assert!(named.len() > 120, "only {} files are named", named.len());
}

#[test]
fn the_map_is_read_whole() {
    let named =
        paths_named("see `a/b.rs`, `a/c/`, `a/{d, e.rs}`, `Row::apply`, `put {id}` and `x/`");
    assert_eq!(named, ["a/b.rs", "a/c/", "a/d", "a/e.rs", "x/"]);
}

/// A riddle is a missing sentence: it is the lane's owner, the reconciler, an operator.
#[test]
fn the_core_and_the_map_name_who_does_something() {
    let core = root().join("flare-core/src");
    let mut read = files(&core, &[".rs"]);
    read.push(root().join("ARCHITECTURE.md"));
    for file in read {
        for (number, line) in text(&file).lines().enumerate() {
            let apart = |c: char| !c.is_alphabetic() && c != '_';
            let mut words = line.split(apart).map(str::to_lowercase);
            let unnamed = ["somebody", "whoever", "whomever", "nobody"];
            let found = words.find(|word| unnamed.contains(&word.as_str()));
            assert!(found.is_none(), "{}:{}: who? {line}", file.display(), number + 1);
        }
    }
}

#[test]
fn no_type_name_of_the_core_occurs_twice() {
    let mut defined: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files(&root().join("flare-core/src"), &[".rs"]) {
        let name = file.display().to_string();
        if name.contains("tests") {
            continue;
        }
        let text = text(&file);
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for line in code.lines() {
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let line = match line.strip_prefix("pub(") {
                Some(rest) => rest.split_once(") ").map_or(line, |(_, rest)| rest),
                None => line,
            };
            let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
            let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else {
                continue;
            };
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            defined.entry(rest[..end].to_owned()).or_default().insert(name.clone());
        }
    }
    assert!(defined.len() > 300, "only {} types were found", defined.len());
    let doubled: Vec<_> = defined.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(doubled.is_empty(), "one word, one meaning: {doubled:#?}");
}
