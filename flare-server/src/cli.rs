//! Takes arguments and environment; gives a command carried out and its exit code.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use flare_core::port::Purpose;

use crate::config::{Config, Layers};
use crate::failure::Failure;
#[cfg(feature = "profile")]
use crate::profile;
use crate::{backup, filter, start, status, upkeep, version};

/// Tells clients when documents change.
///
/// Exit codes: 0 it went well; 1 it was tried and failed; 2 wrong arguments or configuration.
#[derive(Debug, Parser)]
#[command(name = "flare", version = version::VERSION, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server until SIGTERM or ctrl-c, then drain.
    Start(Source),
    /// Create all that the stores need, and bring what they hold to the format of this version.
    Setup(upkeep::UpkeepOptions),
    /// Create again what is missing in the stores, and put right what is wrong.
    Fixup(upkeep::UpkeepOptions),
    /// Remove from the stores what belongs to nothing.
    Cleanup(upkeep::UpkeepOptions),
    /// Copy everything that is stored into a new file, while the server runs or not.
    Backup(backup::BackupOptions),
    /// Ask a running server how it and its subscriptions are doing.
    Status(status::Question),
    /// Watch what a running server uses the processor for, and write it into a file.
    #[cfg(feature = "profile")]
    Profile(profile::ProfileOptions),
    /// Try a subscription's filter on a document.
    Filter(filter::FilterQuestion),
    /// Print the configuration in effect as TOML, secrets masked.
    Config(Source),
    /// Print version, commit and date.
    Version,
}

/// Where the configuration comes from: flags beat the environment, which beats the file.
#[derive(Debug, Default, Args)]
pub(crate) struct Source {
    /// Read this file; without it every key has its default.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen there: http.server.addr.
    #[arg(long, value_name = "IP:PORT")]
    addr: Option<String>,
    /// Write logs of this level: log.level.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Set any key; may be repeated.
    #[arg(short, long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Source {
    pub(crate) fn read(&self) -> Result<Config, Failure> {
        let mut layers = Layers::new()?;
        if let Some(file) = &self.config {
            layers = layers.file(file)?;
        }
        layers = layers.environment(environment())?;
        for pair in &self.set {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                Failure::usage(format!("--set {pair}: must be KEY=VALUE, as worker.enable=false"))
            })?;
            layers = layers.flag("--set", key.trim(), value.trim())?;
        }
        for (flag, key, value) in [
            ("--addr", "http.server.addr", &self.addr),
            ("--log-level", "log.level", &self.log_level),
        ] {
            if let Some(value) = value {
                layers = layers.flag(flag, key, value)?;
            }
        }
        Ok(layers.finish()?)
    }
}

/// The whole program: reads the process's arguments and environment, and does what they say.
pub fn run() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Start(source) => source.read().and_then(|config| start::start(&config)),
        Command::Setup(options) => upkeep::carry_out(Purpose::Setup, &options),
        Command::Fixup(options) => upkeep::carry_out(Purpose::Fixup, &options),
        Command::Cleanup(options) => upkeep::carry_out(Purpose::Cleanup, &options),
        Command::Backup(options) => backup::carry_out(&options),
        Command::Status(question) => status::ask(&question),
        #[cfg(feature = "profile")]
        Command::Profile(options) => profile::take(&options),
        Command::Filter(question) => filter::ask(&question),
        Command::Config(source) => source.read().and_then(|config| show(&config)),
        Command::Version => {
            say(&format!("{}\n", version::VERSION));
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn show(config: &Config) -> Result<(), Failure> {
    say(&config.to_toml()?);
    Ok(())
}

/// Says the command's answer; a reader that went away (`| head`) is no failure.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    drop(std::io::stdout().write_all(text.as_bytes()));
}

/// The variables that could be ours. One that is not text is nobody's key, or refused as a value.
fn environment() -> impl Iterator<Item = (String, String)> {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}
