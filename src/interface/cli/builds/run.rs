//! `awari run`: builds the databases of a manifest.

use crate::args::{ProgressMode, RunArgs, SelectionArgs};
use crate::books::book_summary::BookSummary;
use crate::builds::codecs;
use crate::builds::disk_choice::DiskChoiceObserver;
use crate::builds::idle_changes::idle_changes;
use crate::builds::job_watch::{LedJob, WatchObserver, run_in_role};
use crate::builds::logs::{self, LogObserver};
use crate::builds::progress::{ProgressDisplay, exit_of};
use crate::builds::request::{ResolvedBuild, refuse_job};
use crate::builds::summary::DatabaseSummary;
use crate::error::{CliError, Result};
use crate::files::databases::library;
use crate::files::stats::recorded;
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::shell::{command_line, own_command, path_argument};
use crate::text::terminal::{say, say_unwrapped};
use disk::{Disk, DiskError, Io, RealDisk, machine};
use pipeline::journal::JournalError;
use pipeline::preflight::PreflightError;
use pipeline::status::status;
use pipeline::{Budget, Exit, HeartbeatObserver, Observer, Orchestrator, PipelineError, Plan, RunOptions};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The position that the message about a finished build asks for. Both position sets hold it.
const EXAMPLE: [u32; 12] = [0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0];

pub(crate) fn run(args: &RunArgs) -> Result<Exit> {
    run_in_role(&args.manifest, args.io, None, |job, stop| build(args, job, stop))
}

fn build(args: &RunArgs, job: Option<&LedJob>, stop: &AtomicBool) -> Result<Exit> {
    let disk = RealDisk::new(args.io)?;
    let mut request = ResolvedBuild::read(&disk, &args.manifest)?;
    disk.set_threads(request.settings().threads);
    if let Some(job) = job {
        refuse_job(request.settings())?;
        request = request.led(Arc::clone(job.leader()));
    }
    let dir = request.dir();
    // Each run replaces the manifest of the directory.
    let before = ResolvedBuild::of_directory(&disk, &dir).ok().flatten();
    let watch = job.map(|job| job.watch(&dir)).transpose()?;
    let shown = ProgressDisplay::new(args.progress);
    let attempts_max = args.attempts.map(|attempts| attempts as usize);
    let options = RunOptions { attempts_max, ..request.options(Some(&args.selection)) };
    let budget = options.memory.bytes();
    // In addition to the threads of a stage, which has at least one, one thread draws progress and one writes
    // or runs it. The first threads of a stage that goes on with more of them wait until it ends.
    let (threads, stages) = (options.threads, options.stages_max());
    machine::probe_threads(2 * threads.max(stages) + 2 * stages).map_err(CliError::Thread)?;
    let orchestrator = Orchestrator::new(&disk, &dir, request.work(), options);
    let beating = HeartbeatObserver::new(&disk, &dir, &shown, stop);
    let is_quiet = args.progress == ProgressMode::None;
    let chosen = DiskChoiceObserver::new(&disk, &dir, is_quiet, &beating);
    let of_auto = if args.io == Io::Auto && job.is_none() { &chosen as &dyn Observer } else { &beating };
    let logged = LogObserver::new(&disk, &dir, of_auto);
    let watched = watch.map(|watch| WatchObserver::new(watch, &logged));
    let observer = watched.as_ref().map_or(&logged as &dyn Observer, |watched| watched);
    let done = orchestrator.observer(observer).stop(stop).run();
    // Removes the bar before anything else is printed.
    let is_shown = shown.end();
    if let Some(why) = disk.ring_refusal().filter(|_| !is_quiet) {
        say(format_args!(
            "io_uring was not used: {why}; the kernel, a container or a limit forbids it (`awari doctor` shows what it gains)"
        ));
    }
    let done = done.map_err(|error| {
        let next = NextSteps { args, dir: &dir }.lines(&error);
        CliError::Run { error: Box::new(error), next }
    })?;

    let status = status(&disk, &dir, Some(request.work()), request.settings().keep)?;
    let has_news = !done.ran.is_empty() || done.exit() == Exit::Stopped;
    let summary = DatabaseSummary::new(request.settings(), &status);
    if has_news && !is_quiet && !summary.is_empty() {
        say(summary.table(Width::stderr()));
    }
    if let Some(peak) = done.memory_peak_bytes.filter(|_| !done.ran.is_empty() && !is_quiet) {
        let (peak, budget) = (Budget::show(peak), Budget::show(budget));
        // The message about a stopped run has the counts.
        match done.exit() {
            Exit::Stopped => say(format_args!("peak memory {peak} of {budget}")),
            _ => {
                // Less than the times of databases together where stages ran side by side.
                let took = status
                    .run
                    .as_ref()
                    .map_or_else(String::new, |run| format!("took {}, ", quantity::time(run.seconds)));
                say(format_args!("{}; {took}peak {peak} of {budget} budget", done.plan.stage_counts()));
            }
        }
    }
    if done.exit() == Exit::Stopped {
        let ran = quantity::plural(done.ran.len() as u64, "stage");
        say(format_args!("stopped after {ran}: {}; to resume:", done.plan.stage_counts()));
        let ran: BTreeSet<String> = done.ran.iter().map(|ran| ran.stage.to_string()).collect();
        say_unwrapped(format_args!("  {}", resuming(args, &ran)));
        return Ok(done.exit());
    }
    if is_quiet {
        return Ok(exit_of(done.exit(), is_shown));
    }
    if done.ran.is_empty() {
        let bytes = status.artifacts.iter().map(|artifact| artifact.bytes).fold(0, u64::saturating_add);
        say(idle(&done.plan, bytes));
        idle_changes(before.as_ref(), request.settings(), &status, &dir).into_iter().for_each(say);
    } else {
        say(summary.published());
        if let Some(book) = BookSummary::new(&status) {
            say(book);
        }
    }
    if let Some(kept) = codecs::kept(&disk, request.settings(), &dir, &done.plan) {
        say(kept);
    }
    if !done.ran.is_empty() {
        present(&disk, &dir, request.settings().stones_max());
    }
    Ok(exit_of(done.exit(), is_shown))
}

/// Shows what a finished build is good for: the scores of its largest database, and commands that ask the databases.
/// Does nothing if that database has no statistics yet.
fn present(disk: &dyn Disk, dir: &Path, stones: u32) {
    let Ok(library) = library(disk, dir) else { return };
    let Some(statistics) = recorded(disk, dir, &library, &[stones]).remove(&stones) else { return };
    if stones < EXAMPLE.iter().sum() {
        return;
    }
    say_unwrapped(format_args!("\n{}", check::bars(&statistics, Width::stderr().columns)));
    // The name under which the program was started, so that the commands can be pasted.
    let program = std::env::args_os().next().unwrap_or_else(|| "awari".into());
    let command = |label: &str, verb: &str, more: &str| {
        let dir = path_argument(dir);
        let words = [program.as_os_str(), OsStr::new(verb), OsStr::new("--dir"), dir.as_os_str()];
        say_unwrapped(format_args!("{label:<7} {}{more}", command_line(words)));
    };
    let position = EXAMPLE.map(|stones| stones.to_string()).join(" ");
    command("probe:", "probe", &format!(" {position}"));
    command("page:", "serve", "  # open http://127.0.0.1:8080/");
    command("game:", "play", "");
    command("chart:", "stats", " --format svg > scores.svg");
}

/// Advice on a run that ended early.
struct NextSteps<'a> {
    args: &'a RunArgs,
    dir: &'a Path,
}

impl NextSteps<'_> {
    /// Returns lines with commands to paste, each with its purpose.
    fn lines(&self, error: &PipelineError) -> Vec<String> {
        let dir = path_argument(self.dir).display().to_string();
        let command = |words: &[&str]| command_line(words.iter().map(|word| (*word).to_owned()));
        let again = resuming(self.args, &BTreeSet::new());
        match error {
            PipelineError::StageFailed { stage, .. } | PipelineError::Integrity { stage, .. } => {
                vec![format!("its log:  {}", logs::path(self.dir, Some(stage)).display()), format!("resume:   {again}")]
            }
            PipelineError::WrongAgain { stage, .. } => vec![
                format!("its log:  {}", logs::path(self.dir, Some(stage)).display()),
                format!("find it:  {}", command(&["awari", "verify", "--dir", &dir])),
                format!("rebuild:  {again}"),
            ],
            PipelineError::Locked { .. }
            | PipelineError::Journal(JournalError::Overtaken { .. })
            | PipelineError::Disk(DiskError::Overtaken { .. }) => {
                vec![format!("watch it: {}", command(&["awari", "status", "--dir", &dir, "--watch"]))]
            }
            PipelineError::Preflight(PreflightError::Foreign { .. }) => Vec::new(),
            PipelineError::Preflight(_) => vec![
                "finished work is kept".to_owned(),
                format!("to check the machine: {}", command(&["awari", "doctor", "--dir", &dir])),
                format!("to see the costs:     {}", planning(&again)),
            ],
            PipelineError::Journal(_) | PipelineError::Disk(_) => {
                vec![format!("to resume once that is fixed: {again}")]
            }
            PipelineError::Frozen { .. } => {
                let explain = self.args.manifest.manifest.display().to_string();
                vec![format!("why: {} STAGE", command(&["awari", "explain", &explain]))]
            }
            PipelineError::Replaces { .. } => vec!["nothing was changed".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// Returns the `awari plan` command for an `awari run` command, which a launcher may precede.
fn planning(run: &str) -> String {
    // Options that `plan` does not have.
    const OF_RUNS_ONLY: [&str; 4] = ["--progress", "--io", "--log", "--attempts"];
    let mut words = Vec::new();
    let mut rest = run.split(' ');
    while let Some(word) = rest.next() {
        if let ("run", Some(program), false) = (word, words.last().copied(), words.contains(&"plan")) {
            words = vec![program, "plan"];
        } else if OF_RUNS_ONLY.contains(&word) {
            rest.next();
        } else if !OF_RUNS_ONLY.iter().any(|option| word.split('=').next() == Some(option)) {
            words.push(word);
        }
    }
    words.join(" ")
}

/// Describes the checks of a run in which no stage had to run.
fn idle(plan: &Plan, bytes: u64) -> String {
    format!(
        "nothing to do: {}; {} match the journal (size, header, index); `awari verify` reads every byte",
        plan.stage_counts(),
        Budget::show(bytes),
    )
}

/// Returns the command that resumes the run: the same one, without `--force` for stages that are done.
fn resuming(args: &RunArgs, ran: &BTreeSet<String>) -> String {
    let SelectionArgs { force, .. } = &args.selection;
    let done: Vec<&String> = force.iter().filter(|name| ran.contains(*name)).collect();
    let mut words = Vec::new();
    let is_done = |stage: &OsStr| done.iter().any(|done| stage == done.as_str());
    let mut arguments = own_command().into_iter();
    while let Some(word) = arguments.next() {
        if word == "--force" {
            match arguments.next() {
                Some(stage) if !is_done(&stage) => words.extend([word, stage]),
                _ => {}
            }
        } else if word
            .to_str()
            .and_then(|word| word.strip_prefix("--force="))
            .is_none_or(|stage| !is_done(stage.as_ref()))
        {
            words.push(word);
        }
    }
    command_line(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_commands_omit_options_of_runs_only() {
        let run = "awari run 'a b.toml' --progress none --dir x --log=debug --memory 1GiB --io plain";
        assert_eq!(planning(run), "awari plan 'a b.toml' --dir x --memory 1GiB");
        assert_eq!(planning("mpirun -n 4 ./awari run m.toml --dir run"), "./awari plan m.toml --dir run");
    }
}
