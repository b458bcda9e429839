//! Takes whatever ends a command; gives the line for people and the exit code for scripts.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use crate::config::ConfigError;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration is wrong: exit code 2, as for wrong arguments.
    Config(ConfigError),
    /// An argument is wrong in a way the parser cannot know: exit code 2.
    Usage(String),
    /// It was tried and did not work: exit code 1.
    Failed { what: String, source: Option<Box<dyn Error + Send + Sync>> },
    /// As `Failed`, and the log has it already.
    Logged,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), source: None }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::Usage(what.into())
    }

    /// A setting is wrong, by the key it has in the configuration: libraries name it as hosts write it, in Rust.
    pub(crate) fn setting(table: &str, field: &str, reason: &str) -> Self {
        Self::Usage(format!("{table}.{} {reason}", field.replace('_', "-")))
    }

    pub(crate) fn because(
        what: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Failed { what: what.into(), source: Some(source.into()) }
    }

    /// Says it on standard error, where whoever started the command looks.
    #[allow(clippy::print_stderr, reason = "the command's own words to whoever called it")]
    pub(crate) fn report(&self) -> ExitCode {
        if !matches!(self, Self::Logged) {
            eprintln!("flare: {self}");
        }
        match self {
            Self::Config(_) | Self::Usage(_) => ExitCode::from(2),
            Self::Failed { .. } | Self::Logged => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Usage(what) | Self::Failed { what, source: None } => f.write_str(what),
            Self::Failed { what, source: Some(source) } => {
                write!(f, "{what}: {}", Chain(source.as_ref()))
            }
            Self::Logged => f.write_str("it failed, and the log says why"),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

/// An error and everything behind it, in one line.
pub(crate) struct Chain<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.to_string();
        f.write_str(&shown)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            // Some errors have the next one in their own words already.
            let text = error.to_string();
            if !shown.ends_with(&text) {
                write!(f, ": {text}")?;
            }
            shown = text;
            source = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use flare_core::{Error, ErrorKind};

    use super::Chain;

    #[test]
    fn a_chain_has_every_source_once() {
        let below = io::Error::other("disk on fire");
        let error =
            Error::new(ErrorKind::Unavailable, "put").with_detail("no store").with_source(below);
        assert_eq!(Chain(&error).to_string(), "put: unavailable: no store: disk on fire");
    }
}
