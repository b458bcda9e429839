//! A process of this very program in another role, killed when it is dropped.

use std::process::{Child, Command, Stdio};

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
}

/// What this process is to be, if it was started as one of these.
pub(crate) fn role() -> Option<Role> {
    let role = std::env::var(ROLE).ok()?;
    let mut words = role.split(' ').map(str::to_owned);
    let mut word = || words.next().unwrap();
    let (name, uri, schema) = (word(), word(), word());
    Some(Role { name, uri, schema, seed: word().parse().unwrap(), many: word().parse().unwrap() })
}

/// A process that runs.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(role: &Role) -> Self {
        let Role { name, uri, schema, seed, many } = role;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(ROLE, format!("{name} {uri} {schema} {seed} {many}"));
        Self(command.stdin(Stdio::null()).spawn().unwrap())
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
