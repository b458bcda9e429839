//! Takes plans and reports; gives the text that people read. Decides nothing.

use std::fmt::Display;

use flare_core::port::{Part, Purpose, Step, StepKind};
use flare_core::upkeep::{Plan, Report, StepReport, StepResult};

use crate::failure::Chain;

/// What would be done, part by part; `parts` are those that were asked for.
pub(super) fn plan(plan: &Plan, parts: &[Part]) -> String {
    let mut text = String::new();
    let nothing = format!("nothing to {}", verb(plan.purpose));
    for part in parts {
        let mut kept = plan.parts.iter().filter(|kept| kept.part == *part).peekable();
        if kept.peek().is_none() {
            line(&mut text, format_args!("{part}: {nothing}"));
        }
        for kept in kept {
            if kept.steps.is_empty() {
                line(&mut text, format_args!("{part} ({}): {nothing}", kept.backend));
                continue;
            }
            line(&mut text, format_args!("{part} ({}):", kept.backend));
            for step in &kept.steps {
                line(&mut text, format_args!("{}  — {}", change(step), why(step)));
            }
        }
    }
    if !plan.is_empty() {
        let [create, update, delete] =
            [StepKind::Create, StepKind::Update, StepKind::Delete].map(|kind| plan.count(kind));
        let counts = format!("{create} to create, {update} to update, {delete} to delete");
        text.push('\n');
        line(&mut text, format_args!("Plan: {counts}."));
    }
    text
}

/// What was done, and what was not; the steps themselves were told as they ended.
pub(super) fn report(report: &Report) -> String {
    let mut text = String::new();
    let unneeded = of(report, |result| matches!(result, StepResult::NotNeeded));
    let vanished = of(report, |result| matches!(result, StepResult::NoLongerPlanned));
    let new = of(report, |result| matches!(result, StepResult::New));
    for step in &vanished {
        line(&mut text, format_args!("{}  no longer needed", change(&step.step)));
    }
    let left_out = match unneeded.len() + vanished.len() {
        0 => String::new(),
        n => format!(", {n} no longer needed"),
    };
    text.push('\n');
    line(&mut text, format_args!("Done: {}{left_out}.", steps(report.done())));
    if !new.is_empty() {
        let again = format!("run flare {} again to see and apply them", report.purpose);
        text.push('\n');
        line(&mut text, format_args!("New since the plan, and not applied ({again}):"));
        for StepReport { part, backend, step, .. } in new {
            let place = format!("{part} ({backend})");
            line(&mut text, format_args!("{}  — {}; {place}", change(step), why(step)));
        }
    }
    text
}

/// Which step failed, what was done before it, and what to do now; nothing if none did.
pub(super) fn failure(report: &Report) -> Option<String> {
    let (StepReport { part, backend, step, .. }, error) = report.failure()?;
    let untried = of(report, |result| matches!(result, StepResult::NotTried)).len();
    Some(clean(&format!(
        "cannot {} {} of the {part} ({backend}): {}; before it {} done, after it {} not tried; \
         running flare {} again is safe, and goes on with what is left",
        step.kind,
        step.subject,
        Chain(error),
        were(report.done()),
        were(untried),
        report.purpose,
    )))
}

/// A step as it is listed.
pub(super) fn change(step: &Step) -> String {
    let sign = match step.kind {
        StepKind::Create => '+',
        StepKind::Update => '~',
        StepKind::Delete => '-',
    };
    format!("  {sign} {}  {}", step.kind, step.subject)
}

fn why(step: &Step) -> String {
    match step.amount {
        None => step.reason.clone(),
        Some(1) => format!("{} (1 entry)", step.reason),
        Some(amount) => format!("{} ({amount} entries)", step.reason),
    }
}

fn verb(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Setup => "set up",
        Purpose::Fixup => "fix up",
        Purpose::Cleanup => "clean up",
    }
}

fn of(report: &Report, which: impl Fn(&StepResult) -> bool) -> Vec<&StepReport> {
    report.steps.iter().filter(|step| which(&step.result)).collect()
}

fn steps(count: usize) -> String {
    if count == 1 { "1 step".to_owned() } else { format!("{count} steps") }
}

fn were(count: usize) -> String {
    format!("{} {}", steps(count), if count == 1 { "was" } else { "were" })
}

fn line(text: &mut String, line: impl Display) {
    text.push_str(&clean(&line.to_string()));
    text.push('\n');
}

/// Names come from stores, which may hold anything, and a terminal acts on some of it.
pub(super) fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}
