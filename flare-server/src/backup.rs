//! Takes a file's name and the configuration; gives a copy of the stores in that file, made beside the running
//! server.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use flare_core::port::StepProgress;

use crate::cli::{Source, say};
use crate::failure::Failure;
use crate::stores;

/// What to copy, and where to.
#[derive(Debug, Args)]
pub(crate) struct BackupOptions {
    /// Where to: a file that is not there yet.
    #[arg(value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    source: Source,
}

pub(crate) fn carry_out(options: &BackupOptions) -> Result<(), Failure> {
    let config = options.source.read()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("cannot start", error))?;
    runtime.block_on(async {
        let upkeep = stores::repository_upkeep(&config).await?;
        let copied = upkeep.backup(&options.to, &Shown::default()).await;
        copied.map_err(|error| Failure::new(format!("there is no copy: {error}")))
    })?;
    say(&format!("{}: complete, and checked ({})\n", options.to.display(), size(&options.to)));
    Ok(())
}

fn size(path: &Path) -> String {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    format!("{} KiB", bytes.div_ceil(1 << 10))
}

/// Says how far it is, at every tenth.
#[derive(Debug, Default)]
struct Shown {
    tenths: AtomicU64,
}

impl StepProgress for Shown {
    fn advanced(&self, done: u64, total: Option<u64>) {
        let tenth = total.and_then(|total| (done * 10).checked_div(total)).unwrap_or(0);
        if tenth > self.tenths.fetch_max(tenth, Ordering::Relaxed) {
            note(&format!("copied: {} %", tenth * 10));
        }
    }
}

/// Beside the command's answer, for whoever waits.
fn note(line: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "{line}"));
}
