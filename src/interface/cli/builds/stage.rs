//! `awari stage`: reruns one stage in a scratch directory.

use crate::args::StageArgs;
use crate::builds::job_watch::{LedJob, WatchObserver, run_in_role};
use crate::builds::progress::{ProgressDisplay, exit_of};
use crate::builds::request::{ResolvedBuild, refuse_job};
use crate::error::{CliError, Result};
use crate::output::print;
use crate::text::quantity;
use crate::text::shell::{command_line, path_argument};
use crate::text::terminal::say;
use disk::RealDisk;
use pipeline::orchestrator::{OutputComparison, ScratchDirectory, StageOutput, StageRerun};
use pipeline::{Exit, Observer, Orchestrator, PipelineError, StageName};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) fn run(args: &StageArgs) -> Result<Exit> {
    run_in_role(&args.manifest, args.io, args.scratch.as_deref(), |job, stop| rerun(args, job, stop))
}

fn rerun(args: &StageArgs, job: Option<&LedJob>, stop: &AtomicBool) -> Result<Exit> {
    let disk = RealDisk::new(args.io)?;
    let mut request = ResolvedBuild::read(&disk, &args.manifest)?;
    disk.set_threads(request.settings().threads);
    let dir = request.dir();
    let scratch = match &args.scratch {
        Some(scratch) => ScratchDirectory::Directory(scratch.clone()),
        None if job.is_some() => return Err(CliError::NoSharedScratch),
        None => ScratchDirectory::Temporary(std::env::temp_dir()),
    };
    let mut watch = None;
    if let (Some(job), Some(scratch)) = (job, &args.scratch) {
        refuse_job(request.settings())?;
        request = request.led(Arc::clone(job.leader()));
        watch = Some(job.watch(scratch)?);
    }
    let shown = ProgressDisplay::new(args.progress);
    let watched = watch.map(|watch| WatchObserver::new(watch, &shown));
    let observer = watched.as_ref().map_or(&shown as &dyn Observer, |watched| watched);
    let orchestrator = Orchestrator::new(&disk, &dir, request.work(), request.options(None));
    let single = orchestrator.observer(observer).stop(stop).single(&args.stage, &scratch);
    let is_shown = shown.end();
    let single = single.map_err(|error| match error {
        PipelineError::InputMissing(missing) => {
            let next = vec![format!("to build it: {}", building(args, &dir, &missing.maker))];
            CliError::Run { error: Box::new(PipelineError::InputMissing(missing)), next }
        }
        other => other.into(),
    })?;

    for output in &single.outputs {
        print(&line(output))?;
    }
    say(outcome(&single));
    Ok(exit_of(if single.is_identical() { Exit::Done } else { Exit::Integrity }, is_shown))
}

/// Returns the command that builds the inputs of the stage.
fn building(args: &StageArgs, dir: &Path, maker: &StageName) -> String {
    let mut words: Vec<OsString> = vec!["awari".into(), "run".into(), args.manifest.manifest.clone().into()];
    words.extend(["--dir".into(), path_argument(dir).into(), "--until".into(), maker.to_string().into()]);
    for (key, value) in &args.manifest.changes.set {
        words.extend(["--set".into(), format!("{key}={value}").into()]);
    }
    command_line(words)
}

/// Formats an output: `databases/14.awari identical DIGEST`.
fn line(output: &StageOutput) -> String {
    let StageOutput { artifact, digest, comparison } = output;
    match comparison {
        OutputComparison::Identical => format!("{artifact} identical {digest}\n"),
        OutputComparison::Different(recorded) => format!("{artifact} different {digest} recorded {recorded}\n"),
        OutputComparison::NothingRecorded => format!("{artifact} nothing-recorded {digest}\n"),
        OutputComparison::Passed => format!("{artifact} passed\n"),
    }
}

fn outcome(single: &StageRerun) -> String {
    let rebuilt: Vec<String> = single.rebuilt.iter().map(ToString::to_string).collect();
    let rebuilt = match rebuilt.len() {
        0 => String::new(),
        _ => format!(", after rebuilding {} (not kept)", rebuilt.join(", ")),
    };
    let place = match &single.directory {
        Some(directory) => format!("; its results are in {}", directory.display()),
        None => String::new(),
    };
    let verdict = if single.is_identical() {
        "identical to the recorded result"
    } else {
        "the result differs from the recorded one; `awari verify` checks the recorded one"
    };
    let stage = &single.stage;
    format!("{stage} ran in {}{rebuilt}: {verdict}{place}", quantity::time(single.measured.wall_seconds))
}
