//! `awari status`: how far a run directory is.

use crate::args::StatusArgs;
use crate::databases::artifact;
use crate::error::CliError;
use crate::output::{print_json, print_text, say};
use crate::progress::Pace;
use crate::quantity;
use crate::request::Request;
use crate::screen::Width;
use crate::summary::Summary;
use crate::together;
use crate::watch;
use disk::{Disk, RealDisk, clock};
use pipeline::directory::{journal_path, manifest_path};
use pipeline::record::Measured;
use pipeline::status::{RunState, RunStatus, StageState, StageStatus, Status, status};
use pipeline::{Budget, Exit, Heartbeat, Keep, Standing, Work};
use std::fmt::Write;
use std::path::Path;

/// The most stages that are listed one by one.
const STAGES_LISTED_MAX: usize = 12;

pub(crate) fn run(args: &StatusArgs) -> Result<Exit, CliError> {
    let disk = RealDisk::default();
    let dir = &args.dir;
    if args.watch {
        return watch::run(&disk, dir, args.json);
    }
    let Seen { request, status } = look(&disk, dir)?;
    if args.json {
        print_json(&status)?;
        return Ok(Exit::Done);
    }
    let mut text = head(&status, disk.bytes(&manifest_path(dir))?.is_some());
    if let Some(request) = &request {
        let summary = Summary::new(request.settings(), &status);
        if !summary.is_empty() {
            let _ = write!(text, "\n{}\n{}\n", summary.table(Width::stdout()), summary.published());
        }
    }
    print_text(&text)?;
    Ok(Exit::Done)
}

/// A run directory at one moment.
pub(crate) struct Seen {
    /// What it is built for, if that is known.
    pub(crate) request: Option<Request>,
    pub(crate) status: Status,
}

/// Looks at a run directory.
pub(crate) fn look(disk: &RealDisk, dir: &Path) -> Result<Seen, CliError> {
    let request = match Request::of_directory(disk, dir) {
        Ok(request) => request,
        Err(error) => {
            error.show();
            say("showing the journal without the manifest");
            None
        }
    };
    let is_run = disk.bytes(&journal_path(dir))?.is_some() || request.is_some();
    if !is_run && disk.bytes(&artifact(0).below(dir))?.is_none() {
        return Err(CliError::NoRunDirectory(dir.to_path_buf()));
    }
    let keep = request.as_ref().map_or(Keep::Targets, |request| request.settings().keep);
    let status = status(disk, dir, request.as_ref().map(|request| request.work() as &dyn Work), keep)?;
    Ok(Seen { request, status })
}

/// The latest run, and the stages that are not done.
fn head(status: &Status, has_manifest: bool) -> String {
    let mut text = format!("{}\n", status.directory.display());
    match &status.run {
        Some(run) => text.push_str(&latest(run)),
        None => text.push_str("no run yet\n"),
    }
    if !has_manifest {
        text.push_str("there is no manifest.toml; only stages in the journal are shown\n");
    }
    if status.journal_torn_bytes > 0 {
        let _ = writeln!(
            text,
            "the last {} bytes of the journal were torn by a crash; the next run removes them",
            status.journal_torn_bytes
        );
    }
    text.push_str(&counts(status));
    let heartbeat = status.run.as_ref().and_then(|run| run.heartbeat.as_ref());
    let open: Vec<&StageStatus> = status.stages.iter().filter(|stage| is_open(&stage.state)).collect();
    for stage in open.iter().take(STAGES_LISTED_MAX) {
        let _ = writeln!(text, "  {:<12} {}", stage.stage, words(stage, heartbeat));
    }
    if open.len() > STAGES_LISTED_MAX {
        let _ = writeln!(text, "  and {} more", open.len() - STAGES_LISTED_MAX);
    }
    text.push_str(&traffic(&status.stages));
    text.push_str(&together::told(&status.stages));
    for artifact in &status.artifacts {
        if let Some(what) = &artifact.damage {
            let _ = writeln!(text, "  {} is damaged: {what}", artifact.artifact);
        }
    }
    text
}

fn latest(run: &RunStatus) -> String {
    let began = clock::utc(run.started_at);
    let mut text = format!("run {}: {}\n  ", run.number, run.command);
    let ended = run.ended_at.map_or(String::new(), |at| format!(" at {}", clock::utc(at)));
    match &run.state {
        RunState::Running => {
            let _ = write!(text, "running for {} as process {} on {}", quantity::about(run.seconds), run.pid, run.host);
        }
        RunState::Done => {
            let _ = write!(text, "done{ended}");
        }
        RunState::Stopped => {
            let _ = write!(text, "stopped on request{ended}; the same command resumes");
        }
        RunState::Failed(message) => {
            let _ = write!(text, "failed{ended}: {message}");
        }
        RunState::Interrupted => {
            let _ = write!(text, "killed after at least {}; the same command resumes", quantity::time(run.seconds));
        }
    }
    let _ = writeln!(text, " (began {began})");
    text
}

fn is_open(state: &StageState) -> bool {
    !matches!(state, StageState::Done | StageState::NotNeeded)
}

/// What the stages read and wrote, in a line for each kind.
fn traffic(stages: &[StageStatus]) -> String {
    let mut kinds: Vec<(&str, u64, u64)> = Vec::new();
    for stage in stages {
        let Some(Measured { read_bytes: Some(read), written_bytes: Some(written), .. }) = &stage.measured else {
            continue;
        };
        match kinds.iter_mut().find(|(kind, ..)| *kind == stage.stage.kind()) {
            Some((_, reads, writes)) => {
                (*reads, *writes) = (reads.saturating_add(*read), writes.saturating_add(*written));
            }
            None => kinds.push((stage.stage.kind(), *read, *written)),
        }
    }
    let lines =
        kinds.into_iter().filter(|(_, read, written)| *read > 0 || *written > 0).map(|(kind, read, written)| {
            format!("  {kind:<12} {} read, {} written\n", Budget::show(read), Budget::show(written))
        });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("bytes read and written, mapped files not counted:\n{lines}") }
}

/// How many stages have which standing, and what is known of those to run beyond that, in one line.
fn counts(status: &Status) -> String {
    let count = |is: fn(&StageState) -> bool| status.stages.iter().filter(|stage| is(&stage.state)).count();
    let (number, counts) = match status.counts {
        Some(counts) => (counts.stages(), counts.to_string()),
        None => (status.stages.len(), format!("{} done", count(|state| *state == StageState::Done))),
    };
    let more = [
        (count(|state| *state == StageState::Running), "running"),
        (count(|state| matches!(state, StageState::Stalled(_))), "stalled"),
        (count(|state| *state == StageState::Interrupted), "begun"),
        (count(|state| matches!(state, StageState::Failed(_))), "failed"),
        (count(|state| *state == StageState::Stale), "out of date"),
    ];
    let more: Vec<String> =
        more.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    match (number, more.is_empty()) {
        (0, _) => String::new(),
        (_, true) => format!("{}: {counts}\n", quantity::plural(number as u64, "stage")),
        (_, false) => format!("{}: {counts}; {}\n", quantity::plural(number as u64, "stage"), more.join(", ")),
    }
}

fn words(stage: &StageStatus, heartbeat: Option<&Heartbeat>) -> String {
    let state = match &stage.state {
        StageState::Done => Standing::UpToDate.to_string(),
        StageState::Running => match stage.started_at {
            Some(at) => {
                let mut parts =
                    vec![format!("running for {}", quantity::about(clock::now_seconds().saturating_sub(at) as f64))];
                if let Some(heartbeat) = heartbeat.filter(|heartbeat| heartbeat.stage == stage.stage) {
                    parts.extend(Pace::of_heartbeat(heartbeat).words());
                }
                parts.join(", ")
            }
            None => "running".to_owned(),
        },
        StageState::Stalled(what) => format!("stalled: {what}"),
        StageState::Interrupted => "begun, not finished".to_owned(),
        StageState::Failed(message) => format!("failed: {message}"),
        StageState::Stale => "out of date".to_owned(),
        StageState::Pending => Standing::ToRun.to_string(),
        StageState::NotNeeded => Standing::NotNeeded.to_string(),
    };
    match &stage.reason {
        Some(reason) => format!("{state}: {reason}"),
        None => state,
    }
}
