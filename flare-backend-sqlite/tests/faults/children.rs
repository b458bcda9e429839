//! Starts this program again as another process, also as a user whom things are denied.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Whoever tests run as, this user is another one.
const NOBODY: u32 = 65_534;

/// This program with other arguments.
pub(crate) fn this(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments);
    command
}

/// The same, by somebody to whom a mode is a mode: root it would say nothing. The program is copied to a
/// directory that everybody may enter.
pub(crate) fn this_as_nobody(folder: &Path, arguments: &[&str]) -> Command {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return this(arguments);
    }
    let copy = folder.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = Command::new(copy);
    command.args(arguments).uid(NOBODY);
    command
}

/// What a process said that ended well.
pub(crate) fn answer(command: &mut Command) -> String {
    let output = loop {
        match command.output() {
            // Another test forked while this one copied the program: the child has the copy open for writing
            // until it is another program itself.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    out
}
