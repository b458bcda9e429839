//! Takes what the command has to say or ask; gives it to whoever called it, and their answer.

use std::io::{self, Write};

/// Whom the command talks to.
pub(super) trait Talk: Send + Sync {
    /// The command's answer.
    fn say(&self, text: &str);

    /// What is worth knowing meanwhile, apart from the answer.
    fn note(&self, line: &str);

    /// The line that is answered to a question; empty if there is none.
    fn ask(&self, question: &str) -> io::Result<String>;
}

/// The process's own standard streams.
pub(super) struct Terminal;

impl Talk for Terminal {
    fn say(&self, text: &str) {
        crate::cli::say(text);
    }

    fn note(&self, line: &str) {
        drop(writeln!(io::stderr(), "{line}"));
    }

    fn ask(&self, question: &str) -> io::Result<String> {
        crate::cli::say(question);
        io::stdout().flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(answer)
    }
}
