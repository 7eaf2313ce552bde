//! Progress as plain lines: one for each finished database, and one every few seconds.

use crate::builds::progress::pace::{RunPosition, StagePace, remark};
use crate::text::quantity;
use crate::text::terminal::say;
use pipeline::journal::Measured;
use pipeline::{Event, Observer, StageName};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Prints lines on stderr.
pub(crate) struct PlainObserver {
    so_far: Mutex<PlainState>,
}

/// The events of a run so far.
struct PlainState {
    position: RunPosition,
    /// The finished stages of the databases that have no line yet.
    databases: Vec<DatabaseTally>,
    /// The running stages.
    running: Vec<StageName>,
    /// The most stages that ran at a time.
    running_max: usize,
}

/// The finished stages of a database, summed up.
struct DatabaseTally {
    stones: u32,
    seconds: f64,
    positions: u64,
    /// The position of the run after the last finished stage.
    count: String,
}

impl PlainObserver {
    /// Creates the display.
    pub(crate) fn new() -> PlainObserver {
        PlainObserver { so_far: Mutex::new(PlainState::new()) }
    }
}

impl Observer for PlainObserver {
    fn notice(&self, event: &Event) {
        let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.lines(event).into_iter().for_each(say);
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(5)
    }
}

impl Drop for PlainObserver {
    fn drop(&mut self) {
        // A rerun of one stage sends no end of the run.
        let so_far = self.so_far.get_mut().unwrap_or_else(PoisonError::into_inner);
        so_far.databases.iter().for_each(|database| say(database.line()));
    }
}

/// A database has its line when a stage of another one begins; with several stages at a time, when none of its stages runs and
/// one begins of this many stones more: its checks may run after the start of the next.
const STONES_BETWEEN: u32 = 3;

impl PlainState {
    fn new() -> PlainState {
        PlainState { position: RunPosition::new(), databases: Vec::new(), running: Vec::new(), running_max: 0 }
    }

    /// Returns the lines to print for an event.
    fn lines(&mut self, event: &Event) -> Vec<String> {
        let count = match event {
            Event::StageDone { stage, .. } => self.position.count(stage),
            _ => String::new(),
        };
        self.position.follow(event);
        let mut lines = Vec::new();
        match event {
            Event::StageStarted { stage, .. } => {
                self.running.push(stage.clone());
                self.running_max = self.running_max.max(self.running.len());
                lines.extend(self.over(|database| !database.is_of(stage), stones_of(stage)));
            }
            Event::StageFailed { .. } | Event::StageStopped { .. } | Event::RunEnded { .. } => {
                lines.extend(self.databases.drain(..).map(|database| database.line()));
            }
            _ => {}
        }
        match event {
            Event::RunStarted { directory, counts, seconds, .. } => {
                // For a run without stages, the line at its end suffices.
                if counts.to_run > 0 {
                    lines.push(format!("{}: {counts}; about {}", directory.display(), quantity::about(*seconds)));
                }
            }
            Event::Progress { stage, reading, seconds } => {
                let mut parts = StagePace::of_event(reading, *seconds).words(stage);
                parts.push(self.position.count(stage));
                parts.extend(self.position.left());
                lines.push(format!("{stage}: {}", parts.join(", ")));
            }
            Event::StageDone { stage, measured, .. } => {
                self.running.retain(|running| running != stage);
                let at = self.databases.iter().position(|database| database.is_of(stage)).unwrap_or_else(|| {
                    self.databases.push(DatabaseTally::new(stage));
                    self.databases.len() - 1
                });
                self.databases[at].add(measured, count);
            }
            _ => lines.extend(remark(event)),
        }
        lines
    }

    /// Returns the lines of the databases that are over when a stage of some stones begins.
    fn over(&mut self, is_other: impl Fn(&DatabaseTally) -> bool, stones: u32) -> Vec<String> {
        let (running, is_alone) = (&self.running, self.running_max == 1);
        let is_over = |database: &mut DatabaseTally| {
            let is_running = running.iter().any(|stage| database.is_of(stage));
            let is_past = is_alone || database.stones.saturating_add(STONES_BETWEEN) <= stones;
            is_other(database) && is_past && !is_running
        };
        self.databases.extract_if(.., is_over).map(|database| database.line()).collect()
    }
}

/// Returns the stones of the database of a stage.
fn stones_of(stage: &StageName) -> u32 {
    stage.parameters().first().copied().unwrap_or(0)
}

impl DatabaseTally {
    fn new(stage: &StageName) -> DatabaseTally {
        DatabaseTally { stones: stones_of(stage), seconds: 0.0, positions: 0, count: String::new() }
    }

    fn is_of(&self, stage: &StageName) -> bool {
        stage.parameters().first() == Some(&self.stones)
    }

    fn add(&mut self, measured: &Measured, count: String) {
        self.seconds += measured.wall_seconds;
        self.positions = self.positions.max(measured.report.positions);
        self.count = count;
    }

    fn line(&self) -> String {
        let mut parts = vec![format!("done in {}", quantity::time(self.seconds))];
        if self.positions >= quantity::POSITIONS_MIN {
            parts.extend(quantity::rate_over(self.positions, self.seconds));
        }
        parts.push(self.count.clone());
        format!("{}: {}", quantity::plural(self.stones.into(), "stone"), parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::journal::RunEnd;
    use pipeline::{Cost, ProgressReading, Reason, StageCounts, StageReport};

    fn begins(so_far: &mut PlainState, name: &str, number: usize) -> Vec<String> {
        let (stage, cost) = (name.parse().unwrap(), Cost { seconds: 40.0, ..Cost::default() });
        so_far.lines(&Event::StageStarted { stage, reason: Reason::Forced, number, steps: 4, cost })
    }

    #[test]
    fn lines_show_progress() {
        let mut so_far = PlainState::new();
        let counts = StageCounts { to_run: 4, up_to_date: 2, ..StageCounts::default() };
        let started = Event::RunStarted { directory: "x".into(), run: 1, steps: 4, counts, seconds: 100.0 };
        assert_eq!(so_far.lines(&started), ["x: 4 to run, 2 up to date; about 1 min 40 s"]);
        begins(&mut so_far, "sweep:9", 2);
        let reading =
            ProgressReading { done: 1_000_000, total: 4_000_000, unit: "positions", ..ProgressReading::default() };
        let event = Event::Progress { stage: "sweep:9".parse().unwrap(), reading, seconds: 0.5 };
        let expected = "sweep:9: solving, 25 %, 2.0 M/s, 2 s left, stage 2 of 4, 1 min 30 s left in all";
        assert_eq!(so_far.lines(&event), [expected]);
    }

    #[test]
    fn each_database_has_one_line() {
        let mut so_far = PlainState::new();
        let done = |so_far: &mut PlainState, name: &str, wall_seconds| {
            let measured = Measured { wall_seconds, report: StageReport::new(3_000_000), ..Measured::default() };
            so_far.lines(&Event::StageDone { stage: name.parse().unwrap(), measured, bytes: 7 })
        };
        let mut said = Vec::new();
        for (number, name) in ["capture:9", "sweep:9", "verify:9", "capture:10"].into_iter().enumerate() {
            said.extend(begins(&mut so_far, name, number + 1));
            said.extend(done(&mut so_far, name, 0.5));
        }
        assert_eq!(said, ["9 stones: done in 1.50 s, 2.0 M/s, stage 3 of 4"]);
        let ended = so_far.lines(&Event::RunEnded { how: RunEnd::Done, seconds: 2.0 });
        assert_eq!(ended, ["10 stones: done in 0.50 s, 6.0 M/s, stage 4 of 4"]);
    }

    #[test]
    fn databases_side_by_side_have_a_line_each() {
        let mut so_far = PlainState::new();
        let done = |so_far: &mut PlainState, name: &str| {
            let measured = Measured { wall_seconds: 0.5, ..Measured::default() };
            so_far.lines(&Event::StageDone { stage: name.parse().unwrap(), measured, bytes: 7 })
        };
        let mut said = Vec::new();
        for (number, names) in [["capture:9", "capture:10"], ["sweep:9", "sweep:10"]].into_iter().enumerate() {
            for name in names {
                said.extend(begins(&mut so_far, name, number + 1));
            }
            for name in names {
                said.extend(done(&mut so_far, name));
            }
        }
        // Its checks begin after the next database.
        said.extend(begins(&mut so_far, "capture:11", 3));
        said.extend(begins(&mut so_far, "verify:9", 4));
        said.extend(done(&mut so_far, "verify:9"));
        assert_eq!(said, [""; 0]);
        assert_eq!(begins(&mut so_far, "capture:12", 4), ["9 stones: done in 1.50 s, stage 4 of 4"]);
        let ended = so_far.lines(&Event::RunEnded { how: RunEnd::Done, seconds: 2.0 });
        assert_eq!(ended, ["10 stones: done in 1.00 s, stage 2 of 4"]);
    }
}
