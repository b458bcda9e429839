//! Setup, fixup and cleanup as a user meets them, on stores that need none.

use std::process::Command;

use crate::common::{IN_MEMORY, flare, run};

const COMMANDS: [(&str, &str); 3] =
    [("setup", "set up"), ("fixup", "fix up"), ("cleanup", "clean up")];

#[test]
fn memory_needs_no_upkeep_and_every_part_says_so() {
    for (command, verb) in COMMANDS {
        for flag in ["--plan", "--yes"] {
            let (code, out, err) = run(flare(&[command, flag]).args(IN_MEMORY));
            let line = |part: &str| format!("{part} (memory): nothing to {verb}\n");
            assert_eq!(out, ["repository", "queue", "lease"].map(line).concat());
            assert_eq!((code, err.as_str()), (0, ""), "{command} {flag}");
        }
        let (code, out, _) = run(flare(&[command, "queue", "--plan"]).args(IN_MEMORY));
        assert_eq!((code, out), (0, format!("queue (memory): nothing to {verb}\n")));
    }
}

#[test]
fn json_is_a_plan_or_with_yes_a_report() {
    for (command, _) in COMMANDS {
        let (code, out, _) = run(flare(&[command, "repository", "--json"]).args(IN_MEMORY));
        let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
        let parts = serde_json::json!([{"part": "repository", "backend": "memory", "steps": []}]);
        assert_eq!((code, &plan), (0, &serde_json::json!({"purpose": command, "parts": parts})));

        let (code, out, _) = run(flare(&[command, "--json", "--yes"]).args(IN_MEMORY));
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, report), (0, serde_json::json!({"purpose": command, "steps": []})));
    }
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    for (command, _) in COMMANDS {
        let (code, out, err) = run(&mut flare(&[command]));
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("--yes applies without asking"), "{err}");
    }
}

/// The same on a terminal, which python makes.
#[test]
fn on_a_terminal_nothing_has_to_be_said() {
    let on_terminal = "import os, pty, sys\n\
                       sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut python = Command::new("python3");
    python.args(["-c", on_terminal, env!("CARGO_BIN_EXE_flare"), "setup", "lease"]).args(IN_MEMORY);
    let (code, out, err) = run(&mut python);
    assert_eq!((code, out.as_str()), (0, "lease (memory): nothing to set up\r\n"), "{err}");
}

#[test]
fn slips_end_with_code_2_and_say_what_is_wrong() {
    for (arguments, says) in [
        (vec!["setup", "queues", "--plan"], "must be repository, queue or lease"),
        (vec!["setup", "queue", "lease"], "lease"),
        (vec!["fixup", "--plan", "--yes"], "cannot be used with"),
        (vec!["cleanup", "--plan", "-s", "queue.engin=memory"], "did you mean queue.engine?"),
        (vec!["cleanup", "--yes", "-c", "/nowhere/flare.toml"], "there is no such file"),
    ] {
        let (code, out, err) = run(&mut flare(&arguments));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}
