//! `awari status`: the progress of a run directory.

use crate::args::StatusArgs;
use crate::books::book_summary::BookSummary;
use crate::builds::merged_logs;
use crate::builds::observed_run::{ObservedRun, observe};
use crate::builds::progress::StagePace;
use crate::builds::rank_traffic;
use crate::builds::summary::DatabaseSummary;
use crate::builds::watch;
use crate::error::{CliError, Result};
use crate::output::{print_json, print_text};
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::shell::{building, command_line, path_argument};
use crate::text::table::TextTable;
use disk::{Disk, RealDisk, clock};
use oracle::Library;
use pipeline::directory::manifest_path;
use pipeline::journal::Measured;
use pipeline::status::{RunState, RunStatus, StageState, StageStatus, Status};
use pipeline::{Budget, Exit, Heartbeat, Standing};
use serde::Serialize;
use stages::distributed::{LostRank, lost_rank};
use std::fmt::Write;
use std::path::Path;

/// The most stages that are listed individually.
const STAGES_LISTED_MAX: usize = 12;

pub(crate) fn run(args: &StatusArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let Some(dir) = &args.dir else { return list(&disk, args.json) };
    if args.watch {
        return watch::run(&disk, dir, args.json);
    }
    if args.logs {
        return merged_logs::show(&disk, dir);
    }
    let seen = observe(&disk, dir)?;
    let ObservedRun { request, status } = &seen;
    let lost_rank = match &status.run {
        Some(run) => lost_rank(&disk, dir, &run.host, run.pid)?,
        None => None,
    };
    if args.json {
        print_json(&StatusReply { status, lost_rank })?;
        return Ok(Exit::Done);
    }
    let mut text = head(status, lost_rank.as_ref(), disk.bytes(&manifest_path(dir))?.is_some());
    if let Some(request) = request {
        let summary = DatabaseSummary::new(request.settings(), status);
        if !summary.is_empty() {
            let _ = write!(text, "\n{}\n{}\n", summary.table(Width::stdout()), summary.published());
        }
    }
    if let Some(book) = BookSummary::new(status) {
        let _ = writeln!(text, "{book}");
    }
    if status.artifacts.is_empty() {
        text.push_str(&unrecorded(&disk, dir)?);
    }
    print_text(&text)?;
    Ok(Exit::Done)
}

/// The reply in JSON.
#[derive(Serialize)]
struct StatusReply<'a> {
    #[serde(flatten)]
    status: &'a Status,
    /// The rank that the latest run lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_rank: Option<LostRank>,
}

/// The parent of the run directories of manifests that name none.
const RUNS: &str = "runs";

/// Lists the run directories in [`RUNS`].
fn list(disk: &RealDisk, json: bool) -> Result<Exit> {
    let mut all = Vec::new();
    for dir in disk.list_directories(Path::new(RUNS))? {
        match observe(disk, &dir) {
            Err(CliError::NoRunDirectory(_)) => {}
            seen => all.push(seen?.status),
        }
    }
    if all.is_empty() {
        return Err(CliError::NoRuns);
    }
    if json {
        print_json(&all)?;
        return Ok(Exit::Done);
    }
    let mut table = TextTable::new(&["directory", "latest run", "stages"]);
    for status in &all {
        let state = status.run.as_ref().map_or_else(|| "no run yet".to_owned(), state);
        let counts = status.counts.map_or_else(|| "no manifest".to_owned(), |counts| counts.to_string());
        table.add_row([status.directory.display().to_string(), state, counts]);
    }
    let first = command_line([path_argument(&all[0].directory)]);
    print_text(&format!("{}\none of them: awari status --dir {first}\n", table.fit(Width::stdout())))?;
    Ok(Exit::Done)
}

/// Lists the databases of a directory in which the journal records no file, as after `restore`, and how to adopt them.
fn unrecorded(disk: &RealDisk, dir: &Path) -> Result<String> {
    let mut stones = Vec::new();
    let mut bytes = 0u64;
    for path in disk.list(&dir.join("databases"))? {
        if let Some(number) = Library::stones_of(&path) {
            stones.push(number);
            bytes = bytes.saturating_add(disk.bytes(&path).ok().flatten().unwrap_or(0));
        }
    }
    stones.sort_unstable();
    if stones.is_empty() {
        return Ok(String::new());
    }
    Ok(format!(
        "databases {}, {}, are not in the journal; to adopt and verify them:\n  {}\n",
        quantity::ranges(&stones, |stones| stones + 1),
        Budget::show(bytes),
        building(dir, None)
    ))
}

/// Describes the latest run and the stages that are not done.
fn head(status: &Status, lost_rank: Option<&LostRank>, has_manifest: bool) -> String {
    let mut text = format!("{}\n", status.directory.display());
    match &status.run {
        Some(run) => text.push_str(&latest(run)),
        None => text.push_str("no run yet\n"),
    }
    if let Some(lost) = lost_rank {
        let _ = writeln!(text, "  {lost}");
    }
    if !has_manifest && !status.stages.is_empty() {
        text.push_str("there is no manifest.toml; only stages in the journal are shown\n");
    }
    if status.journal_torn_bytes > 0 {
        let _ = writeln!(
            text,
            "{} at the end of the journal torn by a crash; the next run removes them",
            quantity::plural(status.journal_torn_bytes, "byte")
        );
    }
    text.push_str(&counts_line(status));
    let heartbeat = status.run.as_ref().and_then(|run| run.heartbeat.as_ref());
    let open: Vec<&StageStatus> = status.stages.iter().filter(|stage| is_open(&stage.state)).collect();
    for stage in open.iter().take(STAGES_LISTED_MAX) {
        let _ = writeln!(text, "  {:<12} {}", stage.stage, words(stage, heartbeat));
    }
    if open.len() > STAGES_LISTED_MAX {
        let _ = writeln!(text, "  and {} more", open.len() - STAGES_LISTED_MAX);
    }
    text.push_str(&traffic(&status.stages));
    text.push_str(&rank_traffic::summary(&status.stages));
    let is_said = |what: &str| {
        let listed = open.iter().take(STAGES_LISTED_MAX);
        listed.filter_map(|stage| stage.reason.as_deref()).any(|reason| reason.ends_with(what))
    };
    for artifact in &status.artifacts {
        if let Some(what) = artifact.damage.as_ref().filter(|what| !is_said(what)) {
            let _ = writeln!(text, "  {} is damaged: {what}", artifact.artifact);
        }
    }
    text
}

fn latest(run: &RunStatus) -> String {
    let more = match &run.state {
        RunState::Running => format!(" as process {} on {}", run.pid, run.host),
        RunState::Done => String::new(),
        RunState::Stopped | RunState::Interrupted => "; the same command resumes".to_owned(),
        RunState::Failed(message) => format!(": {message}"),
    };
    let (number, command, began) = (run.number, &run.command, clock::utc(run.started_at));
    format!("run {number}: {command}\n  {}{more} (began {began})\n", state(run))
}

/// Describes the state of a run, without causes and remedies.
fn state(run: &RunStatus) -> String {
    let ended = run.ended_at.map_or(String::new(), |at| format!(" at {}", clock::utc(at)));
    match &run.state {
        RunState::Running => format!("running for {}", quantity::about(run.seconds)),
        RunState::Done => format!("done{ended}"),
        RunState::Stopped => format!("stopped on request{ended}"),
        RunState::Failed(_) => format!("failed{ended}"),
        RunState::Interrupted => format!("killed after at least {}", quantity::time(run.seconds)),
    }
}

fn is_open(state: &StageState) -> bool {
    !matches!(state, StageState::Done | StageState::NotNeeded)
}

/// Lists the bytes that stages read and wrote, with a line for each kind.
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

/// Counts the stages by standing, and those to run by state, in one line.
fn counts_line(status: &Status) -> String {
    let count = |is: fn(&StageState) -> bool| status.stages.iter().filter(|stage| is(&stage.state)).count();
    let (number, counts) = match status.counts {
        Some(counts) => (counts.stages(), counts.to_string()),
        None => (status.stages.len(), format!("{} done", count(|state| *state == StageState::Done))),
    };
    // The states of stages to run.
    let more = [
        (count(|state| *state == StageState::Running), "running"),
        (count(|state| matches!(state, StageState::Stalled(_))), "stalled"),
        (count(|state| *state == StageState::Interrupted), "interrupted"),
        (count(|state| matches!(state, StageState::Failed(_))), "failed"),
        (count(|state| *state == StageState::Stale), "stale"),
    ];
    let more: Vec<String> =
        more.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let counts = if more.is_empty() {
        counts
    } else {
        let more = more.join(", ");
        let to_run = status.counts.map(|counts| format!("{} {}", counts.to_run, Standing::ToRun)).unwrap_or_default();
        match counts.strip_prefix(&to_run).filter(|_| !to_run.is_empty()) {
            Some(rest) => format!("{to_run} ({more}){rest}"),
            // Without a manifest, the stages to run are unknown.
            None => format!("{counts} ({more})"),
        }
    };
    match number {
        0 => String::new(),
        _ => format!("{}: {counts}\n", quantity::plural(number as u64, "stage")),
    }
}

fn words(stage: &StageStatus, heartbeat: Option<&Heartbeat>) -> String {
    let state = match &stage.state {
        StageState::Done => Standing::UpToDate.to_string(),
        StageState::Running => match stage.started_at {
            Some(at) => {
                let mut parts =
                    vec![format!("running for {}", quantity::about(clock::now_seconds().saturating_sub(at) as f64))];
                let of_stage =
                    heartbeat.and_then(|heartbeat| heartbeat.stages().find(|running| running.stage == stage.stage));
                if let Some(heartbeat) = of_stage {
                    parts.extend(StagePace::of_heartbeat(heartbeat).words(&stage.stage));
                }
                parts.join(", ")
            }
            None => "running".to_owned(),
        },
        StageState::Stalled(what) => format!("stalled: {what}"),
        StageState::Interrupted => format!("{} (interrupted)", Standing::ToRun),
        StageState::Failed(message) => format!("failed: {message}"),
        // The reason says whether the stage is out of date.
        StageState::Stale | StageState::Pending => Standing::ToRun.to_string(),
        StageState::NotNeeded => Standing::NotNeeded.to_string(),
    };
    match &stage.reason {
        Some(reason) => format!("{state}: {reason}"),
        None => state,
    }
}
