//! `awari run`: builds what a manifest says.

use crate::args::{RunArgs, SelectionArgs};
use crate::error::CliError;
use crate::output::say;
use crate::progress::observer;
use crate::quantity;
use crate::request::{Request, command_line};
use crate::signals;
use crate::summary::Summary;
use disk::RealDisk;
use pipeline::plan::Why;
use pipeline::status::status;
use pipeline::{Budget, Exit, Orchestrator, Plan};
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) fn run(args: &RunArgs) -> Result<Exit, CliError> {
    let disk = RealDisk::new(args.io)?;
    let request = Request::read(&disk, &args.manifest)?;
    let dir = request.dir();
    let stop = signals::stop_flag()?;
    let observer = observer(args.progress);
    let options = request.options(Some(&args.selection));
    let budget = options.memory.bytes();
    let orchestrator = Orchestrator::new(&disk, &dir, request.work(), options);
    let done = orchestrator.observer(&*observer).stop(&stop).run();
    // Takes the bar away before anything is said about the end.
    drop(observer);
    let done = done?;

    let status = status(&disk, &dir, Some(request.work()))?;
    let summary = Summary::new(request.settings(), &status);
    if !summary.is_empty() {
        say(summary.table());
    }
    if let Some(peak) = done.memory_peak_bytes.filter(|_| !done.ran.is_empty()) {
        say(format_args!("peak {} of {} budget", quantity::mebibytes(peak), quantity::mebibytes(budget)));
    }
    if done.exit() == Exit::Stopped {
        let stages = done.ran.len();
        say(format_args!("stopped after {stages} stages, {} are left; to go on:", done.plan.steps.len()));
        let ran: BTreeSet<String> = done.ran.iter().map(|ran| ran.stage.to_string()).collect();
        say(format_args!("  {}", resuming(args, &ran)));
        return Ok(done.exit());
    }
    if done.ran.is_empty() {
        let bytes = status.artifacts.iter().map(|artifact| artifact.bytes).fold(0, u64::saturating_add);
        say(idle(&dir, &done.plan, bytes));
    }
    say(summary.published());
    Ok(done.exit())
}

/// Why there was nothing to do, and what has been looked at.
fn idle(dir: &Path, plan: &Plan, bytes: u64) -> String {
    let count = |why: Why| plan.fresh.iter().filter(|settled| settled.why == why).count();
    let mut parts = vec![format!("{} stages are up to date", count(Why::Recorded) + count(Why::Adopted))];
    if count(Why::NotNeeded) > 0 {
        parts.push(format!("{} are not needed", count(Why::NotNeeded)));
    }
    if count(Why::NotAsked) > 0 {
        parts.push(format!("{} come after --until", count(Why::NotAsked)));
    }
    format!(
        "nothing to do: {}; {} in {} are what the journal says (headers, sizes and block indexes were looked at; \
         `awari verify --dir {}` reads everything)",
        parts.join(", "),
        Budget::show(bytes),
        dir.display(),
        dir.display()
    )
}

/// The command that goes on: the same one, but what was forced and is done is not forced again.
fn resuming(args: &RunArgs, ran: &BTreeSet<String>) -> String {
    let SelectionArgs { force, .. } = &args.selection;
    let done: Vec<&String> = force.iter().filter(|name| ran.contains(*name)).collect();
    let mut words = Vec::new();
    let mut arguments = std::env::args();
    while let Some(word) = arguments.next() {
        if word == "--force" {
            match arguments.next() {
                Some(stage) if !done.contains(&&stage) => words.extend([word, stage]),
                _ => {}
            }
        } else if word.strip_prefix("--force=").is_none_or(|stage| !done.iter().any(|done| *done == stage)) {
            words.push(word);
        }
    }
    command_line(words)
}
