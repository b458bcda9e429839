//! A process of this very program in another role, killed when it is dropped.

use std::process::{Child, ChildStdout, Command, Stdio};

const ROLE: &str = "FLARE_CRASH_ROLE";

/// What a process is to be.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) uri: String,
    pub(crate) schema: String,
    pub(crate) seed: u64,
    /// How much there is to do.
    pub(crate) many: i64,
    /// How long to rest after each of it, in milliseconds.
    pub(crate) rest: u64,
}

/// What this process is to be, if it was started as one of these.
pub(crate) fn role() -> Option<Role> {
    let role = std::env::var(ROLE).ok()?;
    let mut words = role.split(' ').map(str::to_owned);
    let mut word = || words.next().unwrap();
    let (name, uri, schema) = (word(), word(), word());
    let (seed, many) = (word().parse().unwrap(), word().parse().unwrap());
    Some(Role { name, uri, schema, seed, many, rest: word().parse().unwrap() })
}

/// A process that runs.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(role: &Role) -> Self {
        Self(Self::command(role).spawn().unwrap())
    }

    /// One whose every line is read.
    pub(crate) fn start_heard(role: &Role) -> (Self, ChildStdout) {
        Self::heard(&mut Self::command(role))
    }

    /// The same of any program.
    pub(crate) fn heard(command: &mut Command) -> (Self, ChildStdout) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = child.stdout.take().unwrap();
        (Self(child), lines)
    }

    fn command(role: &Role) -> Command {
        let Role { name, uri, schema, seed, many, rest } = role;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(ROLE, format!("{name} {uri} {schema} {seed} {many} {rest}"));
        command.stdin(Stdio::null());
        command
    }

    /// Whether it ended by itself, and well.
    pub(crate) fn is_done(&mut self) -> bool {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none_or(|status| status.success()), "{ended:?}");
        ended.is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // As a crash would, in the middle of whatever it does.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}
