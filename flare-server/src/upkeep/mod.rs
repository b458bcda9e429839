//! Takes `setup`, `fixup` or `cleanup` and the configuration; gives the stores kept in order: shows
//! the plan, asks, applies it, says what became of it. Never changes anything that was not shown, or
//! agreed to beforehand by `--yes`.

mod follow;
mod show;
mod talk;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::slice;

use clap::Args;
use flare_core::port::{Part, Purpose};
use flare_core::upkeep::{Caretaker, Plan};
use serde::Serialize;

use self::follow::Follower;
use self::talk::{Talk, Terminal};
use crate::cli::Source;
use crate::failure::Failure;
use crate::stores;

/// What to keep in order, and how far to go.
#[derive(Debug, Default, Args)]
pub(crate) struct UpkeepOptions {
    /// Only this part: repository, queue or lease.
    part: Option<Part>,
    /// Show what would be done, and stop.
    #[arg(long, conflicts_with = "yes")]
    plan: bool,
    /// Do it without asking.
    #[arg(long)]
    yes: bool,
    /// Print JSON: the plan, or with --yes what became of it.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: Source,
}

pub(crate) fn carry_out(purpose: Purpose, options: &UpkeepOptions) -> Result<(), Failure> {
    let config = options.source.read()?;
    // Whether there is anything to do or not: a script should not work by luck.
    if options.asks() && !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "nobody can be asked, for standard input is no terminal: --yes applies without asking, \
             --plan only shows",
        ));
    }
    // Several threads: connections are kept alive while this one waits for an answer.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("cannot start threads", error))?;
    let outcome = runtime.block_on(async {
        let caretaker = stores::caretaker(&config, purpose, options.parts()).await?;
        keep(&caretaker, purpose, options, &Terminal).await
    });
    runtime.shutdown_background();
    outcome
}

impl UpkeepOptions {
    fn asks(&self) -> bool {
        !(self.plan || self.yes || self.json)
    }

    fn parts(&self) -> &[Part] {
        self.part.as_ref().map_or(&Part::ALL, slice::from_ref)
    }
}

async fn keep(
    caretaker: &Caretaker,
    purpose: Purpose,
    options: &UpkeepOptions,
    talk: &dyn Talk,
) -> Result<(), Failure> {
    let plan = caretaker.plan(purpose, options.parts()).await.map_err(|error| {
        Failure::because(format!("cannot plan the {purpose}, nothing was changed"), error)
    })?;
    if options.json && !options.yes {
        talk.say(&json(&plan)?);
        return Ok(());
    }
    if !options.json {
        talk.say(&show::plan(&plan, options.parts()));
    }
    if options.plan || (plan.is_empty() && !options.json) {
        return Ok(());
    }
    if !options.yes && !agreed(&plan, talk)? {
        return Err(Failure::new("nothing was changed"));
    }
    apply(caretaker, &plan, options, talk).await
}

fn agreed(plan: &Plan, talk: &dyn Talk) -> Result<bool, Failure> {
    let question = match plan.len() {
        1 => "\nApply this step? [y/N] ".to_owned(),
        steps => format!("\nApply these {steps} steps? [y/N] "),
    };
    let answer = talk.ask(&question);
    let answer =
        answer.map_err(|error| Failure::because("no answer, so nothing was changed", error))?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

async fn apply(
    caretaker: &Caretaker,
    plan: &Plan,
    options: &UpkeepOptions,
    talk: &dyn Talk,
) -> Result<(), Failure> {
    let report = caretaker.apply(plan, &Follower::new(talk, !options.json)).await;
    let report = report.map_err(|error| {
        Failure::because(
            format!("cannot plan the {} again, nothing was changed", plan.purpose),
            error,
        )
    })?;
    talk.say(&if options.json { json(&report)? } else { show::report(&report) });
    match show::failure(&report) {
        None => Ok(()),
        Some(what) => Err(Failure::new(what)),
    }
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| Failure::because("cannot be shown as JSON", error))?;
    Ok(format!("{text}\n"))
}
