//! `awari status --watch`: follows a run from another terminal.

use crate::builds::observed_run::{ObservedRun, observe};
use crate::builds::progress::{StagePace, run_line};
use crate::error::{CliError, Result};
use crate::output::{print, print_controls, print_json_line};
use crate::text::quantity;
use crate::text::terminal::{printable, say};
use console::{Alignment, Term, pad_str, truncate_str};
use disk::{Disk, RealDisk};
use pipeline::status::{RunState, StageState, StageStatus, Status};
use pipeline::{Budget, Exit, Heartbeat, Standing};
use planner::Settings;
use std::path::Path;
use std::time::Duration;

/// The time between refreshes.
const INTERVAL: Duration = Duration::from_secs(1);

/// Lines and columns when stdout is not a terminal.
const SIZE: (u16, u16) = (24, 80);

/// Shows a directory until its run ends. If no run is active, or the directory does not exist, waits for a run.
pub(crate) fn run(disk: &RealDisk, dir: &Path, json: bool) -> Result<Exit> {
    let term = Term::stdout();
    // A run that had ended before the first refresh is not the one to wait for.
    let mut old = None;
    for is_first in std::iter::once(true).chain(std::iter::repeat(false)) {
        match observe(disk, dir) {
            Ok(seen) => {
                let run = seen.status.run.as_ref();
                let is_running = run.is_some_and(|run| run.state == RunState::Running);
                let number = run.map(|run| run.number);
                if is_first && !is_running {
                    old = number;
                }
                if json {
                    print_json_line(&seen.status)?;
                } else {
                    let (lines, columns) = if term.is_term() { term.size() } else { SIZE };
                    let frame = frame(&seen, disk.free_bytes(dir).ok(), usize::from(lines), usize::from(columns));
                    show(&term, &frame)?;
                }
                if number != old && !is_running {
                    break;
                }
            }
            Err(CliError::NoRunDirectory(_)) if is_first => {
                say(format_args!("waiting for a run in {}", dir.display()));
            }
            Err(CliError::NoRunDirectory(_)) => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(Exit::Done)
}

/// Redraws the screen; prints frames one after the other if stdout is not a terminal.
fn show(term: &Term, frame: &[String]) -> Result<()> {
    if !term.is_term() {
        return print(&(frame.join("\n") + "\n\n"));
    }
    let lines: Vec<String> = frame.iter().map(|line| format!("{line}\u{1b}[K")).collect();
    term.move_cursor_to(0, 0).map_err(CliError::Stdout)?;
    print_controls(&(lines.join("\n") + "\n\u{1b}[J"))
}

/// Renders a run for a screen of this size.
fn frame(seen: &ObservedRun, free_bytes: Option<u64>, lines: usize, columns: usize) -> Vec<String> {
    let ObservedRun { status, request } = seen;
    let mut frame = head(status, columns);
    let stored: u64 = status.artifacts.iter().map(|artifact| artifact.bytes).sum();
    let free = free_bytes.map_or(String::new(), |free| format!(", {} free", Budget::show(free)));
    let heartbeat = status.run.as_ref().and_then(|run| run.heartbeat.as_ref());
    let memory = heartbeat.and_then(|heartbeat| heartbeat.memory_bytes);
    let memory = memory.map_or(String::new(), |bytes| format!("memory {}, ", quantity::mebibytes(bytes)));
    frame.push(format!("{memory}files {}{free}", Budget::show(stored)));
    if let Some(request) = request {
        let databases = databases(status, request.settings());
        // One more line is for the cursor.
        let room = lines.saturating_sub(frame.len() + 4).max(3);
        frame.push(String::new());
        frame.push(row(&["stones", "positions", "state", "time", "memory"].map(str::to_owned)));
        frame.extend(fitting(&databases, room));
    }
    frame.iter().map(|line| truncate_str(&printable(line), columns, "…").into_owned()).collect()
}

/// Renders the state of the run and its current stage.
fn head(status: &Status, columns: usize) -> Vec<String> {
    let Some(run) = &status.run else {
        return vec![status.directory.display().to_string(), "no run; waiting for one to begin".into()];
    };
    let elapsed = run.seconds;
    let state = match &run.state {
        RunState::Running => format!("running for {}", quantity::about(elapsed)),
        RunState::Done => format!("done in {}", quantity::about(elapsed)),
        RunState::Stopped => "stopped on request; the same command resumes".to_owned(),
        RunState::Failed(message) => format!("failed: {message}"),
        RunState::Interrupted => "killed; the same command resumes".to_owned(),
    };
    let mut head = vec![format!("{}  run {}, {state}", status.directory.display(), run.number), run.command.clone()];
    match &run.heartbeat {
        Some(heartbeat) => {
            let number = heartbeat.stages().map(|stage| stage.number).max().unwrap_or(0);
            head.push(run_line(number, heartbeat.steps, elapsed, heartbeat.run_left_seconds).fit(columns));
            head.extend(current_stages(status, heartbeat, columns));
        }
        None => head.extend(status.counts.map(|counts| counts.to_string())),
    }
    for stage in &status.stages {
        if let StageState::Failed(message) = &stage.state {
            head.push(format!("{} failed: {message}", stage.stage));
        }
    }
    head
}

/// Describes the current stages, a line each.
fn current_stages(status: &Status, heartbeat: &Heartbeat, columns: usize) -> Vec<String> {
    let is_open = |stage: &&StageStatus| matches!(stage.state, StageState::Running | StageState::Stalled(_));
    let describe = |stage: &StageStatus| match &stage.state {
        StageState::Stalled(what) => format!("{} is stalled: {what}", stage.stage),
        _ => match heartbeat.stages().find(|running| running.stage == stage.stage) {
            Some(running) => StagePace::of_heartbeat(running).line(&running.stage).fit(columns),
            None => format!("{}: starting", stage.stage),
        },
    };
    status.stages.iter().filter(is_open).map(describe).collect()
}

/// The line of a database.
struct DatabaseLine {
    cells: [String; 5],
    /// Whether stages of the database remain.
    is_open: bool,
}

/// Returns a line for each database of the build.
fn databases(status: &Status, settings: &Settings) -> Vec<DatabaseLine> {
    let line = |stones: u32| {
        let stages = status.stages.iter().filter(|stage| stage.stage.parameters().first() == Some(&stones));
        let stages: Vec<&StageStatus> = stages.collect();
        let seconds: f64 =
            stages.iter().filter_map(|stage| stage.measured.as_ref()).map(|measured| measured.wall_seconds).sum();
        let peak = stages.iter().filter_map(|stage| stage.measured.as_ref()?.memory_peak_bytes).max();
        let state = state(&stages);
        DatabaseLine {
            is_open: state != Standing::UpToDate.words(),
            cells: [
                stones.to_string(),
                quantity::grouped(settings.set.positions(stones)),
                state,
                if seconds > 0.0 { quantity::time(seconds) } else { String::new() },
                peak.map_or_else(String::new, quantity::mebibytes),
            ],
        }
    };
    settings.stones().map(line).collect()
}

/// Summarizes the states of the stages of a database.
fn state(stages: &[&StageStatus]) -> String {
    let count = |is: fn(&StageState) -> bool| stages.iter().filter(|stage| is(&stage.state)).count();
    let first = |is: fn(&StageState) -> bool| stages.iter().find(|stage| is(&stage.state));
    let is_settled = |state: &StageState| matches!(state, StageState::Done | StageState::NotNeeded);
    let (settled, all) = (count(is_settled), stages.len());
    if let Some(stage) = first(|state| matches!(state, StageState::Failed(_))) {
        format!("{} failed", stage.stage)
    } else if let Some(stage) = first(|state| matches!(state, StageState::Stalled(_))) {
        format!("{} stalled", stage.stage)
    } else if let Some(stage) = first(|state| *state == StageState::Running) {
        format!("{}, {settled} of {all} stages done", stage.stage)
    } else if settled == all {
        Standing::UpToDate.to_string()
    } else if first(|state| *state == StageState::Stale).is_some() {
        Standing::ToRun.to_string()
    } else if settled > 0 || first(|state| *state == StageState::Interrupted).is_some() {
        format!("{settled} of {all} stages done")
    } else {
        Standing::ToRun.to_string()
    }
}

/// Returns at most `room` lines, around the first open one.
fn fitting(lines: &[DatabaseLine], room: usize) -> Vec<String> {
    let open = lines.iter().position(|line| line.is_open).unwrap_or(lines.len().saturating_sub(1));
    let last = (open + 1 + room / 4).max(room).min(lines.len());
    let shown = &lines[last.saturating_sub(room)..last];
    let mut text: Vec<String> = shown.iter().map(|line| row(&line.cells)).collect();
    if shown.len() < lines.len() {
        text.push(format!("       ({} of {} databases shown)", shown.len(), lines.len()));
    }
    text
}

fn row(cells: &[String; 5]) -> String {
    let [stones, positions, state, time, memory] = cells;
    let right = |text: &str, columns| pad_str(text, columns, Alignment::Right, None).into_owned();
    format!(
        "{} {}  {} {} {}",
        right(stones, 6),
        right(positions, 15),
        pad_str(state, 32, Alignment::Left, Some("…")),
        right(time, 12),
        right(memory, 10)
    )
    .trim_end()
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stones: u32, is_open: bool) -> DatabaseLine {
        let state = if is_open { "to run" } else { "up to date" };
        DatabaseLine { cells: [stones.to_string(), "1".into(), state.into(), String::new(), String::new()], is_open }
    }

    #[test]
    fn the_current_database_is_shown() {
        for done in 0..=30 {
            let lines: Vec<DatabaseLine> = (0..30).map(|stones| line(stones, stones >= done)).collect();
            for room in 3..40 {
                let shown = fitting(&lines, room);
                assert!(shown.len() <= room + 1);
                let current = row(&lines[done.min(29) as usize].cells);
                assert!(shown.contains(&current), "{done} {room}");
            }
        }
    }

    #[test]
    fn rows_fit_eighty_columns() {
        let cells = ["24", "600,805,296", "process:24:12, 62 of 99 stages done", "59 min 59 s", "2,048 MiB"];
        let text = row(&cells.map(str::to_owned));
        assert!(console::measure_text_width(&text) <= 80, "{text}");
    }
}
