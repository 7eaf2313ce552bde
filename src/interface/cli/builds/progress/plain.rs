//! Progress as plain lines: one for each finished database, and one every few seconds.

use crate::builds::progress::pace::{RunPosition, StagePace, remark};
use crate::text::quantity;
use crate::text::terminal::say;
use pipeline::journal::Measured;
use pipeline::{Event, Observer, StageName};
use std::collections::BTreeMap;
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
    /// The stages of the plan that are left, by the stones of their database.
    left: BTreeMap<u32, usize>,
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
        so_far.rest().into_iter().for_each(say);
    }
}

impl PlainState {
    fn new() -> PlainState {
        PlainState { position: RunPosition::new(), databases: Vec::new(), left: BTreeMap::new() }
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
            Event::RunEnded { .. } => lines.extend(self.rest()),
            Event::RunStarted { directory, counts, run_seconds, stages, .. } => {
                self.left.clear();
                stages.iter().for_each(|stage| *self.left.entry(stones_of(stage)).or_default() += 1);
                // For a run without stages, the line at its end suffices.
                if counts.to_run > 0 {
                    lines.push(format!("{}: {counts}; about {}", directory.display(), quantity::about(*run_seconds)));
                }
            }
            Event::Progress { stage, reading, seconds } => {
                let mut parts = StagePace::of_event(reading, *seconds).words(stage);
                parts.push(self.position.count(stage));
                parts.extend(self.position.left());
                lines.push(format!("{stage}: {}", parts.join(", ")));
            }
            Event::StageDone { stage, measured, .. } => {
                let at = self.databases.iter().position(|database| database.is_of(stage)).unwrap_or_else(|| {
                    self.databases.push(DatabaseTally::new(stage));
                    self.databases.len() - 1
                });
                self.databases[at].add(measured, count);
                if self.is_last(stage) {
                    lines.push(self.databases.remove(at).line());
                }
            }
            _ => lines.extend(remark(event)),
        }
        lines
    }

    /// Returns the lines of the databases of which no stage is left, and that have no line yet.
    fn rest(&mut self) -> Vec<String> {
        let left = &self.left;
        let is_done = |database: &DatabaseTally| left.get(&database.stones).is_none_or(|left| *left == 0);
        self.databases.drain(..).filter(is_done).map(|database| database.line()).collect()
    }

    /// Notes that a stage is done. Returns whether it was the last one of its database. Stages that the plan
    /// did not have, since they mend what turned out to be damaged, are summed up at the end of the run.
    fn is_last(&mut self, stage: &StageName) -> bool {
        let Some(left) = self.left.get_mut(&stones_of(stage)).filter(|left| **left > 0) else { return false };
        *left -= 1;
        *left == 0
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
        let started = Event::RunStarted {
            directory: "x".into(),
            run: 1,
            steps: 4,
            counts,
            seconds: 100.0,
            run_seconds: 100.0,
            stages: Vec::new(),
        };
        assert_eq!(so_far.lines(&started), ["x: 4 to run, 2 up to date; about 1 min 40 s"]);
        begins(&mut so_far, "sweep:9", 2);
        let reading =
            ProgressReading { done: 1_000_000, total: 4_000_000, unit: "positions", ..ProgressReading::default() };
        let event = Event::Progress { stage: "sweep:9".parse().unwrap(), reading, seconds: 0.5 };
        let expected = "sweep:9: solving, 25 %, 2.0 M/s, 2 s left, stage 2 of 4, 1 min 30 s left in all";
        assert_eq!(so_far.lines(&event), [expected]);
    }

    /// A run of these stages.
    fn run_of(stages: &[&str]) -> PlainState {
        let mut so_far = PlainState::new();
        let (steps, counts) = (stages.len(), StageCounts { to_run: stages.len(), ..StageCounts::default() });
        let stages = stages.iter().map(|stage| stage.parse().unwrap()).collect();
        let (seconds, run_seconds) = (100.0, 100.0);
        so_far.lines(&Event::RunStarted { directory: "x".into(), run: 1, steps, counts, seconds, run_seconds, stages });
        so_far
    }

    fn ends(so_far: &mut PlainState, name: &str) -> Vec<String> {
        let measured = Measured { wall_seconds: 0.5, report: StageReport::new(3_000_000), ..Measured::default() };
        so_far.lines(&Event::StageDone { stage: name.parse().unwrap(), measured, bytes: 7 })
    }

    #[test]
    fn each_database_has_one_line() {
        let mut so_far = run_of(&["capture:9", "sweep:9", "verify:9", "capture:10", "sweep:10"]);
        let mut said = Vec::new();
        for (number, name) in ["capture:9", "sweep:9", "verify:9", "capture:10"].into_iter().enumerate() {
            said.extend(begins(&mut so_far, name, number + 1));
            said.extend(ends(&mut so_far, name));
        }
        assert_eq!(said, ["9 stones: done in 1.50 s, 2.0 M/s, stage 3 of 4"]);
        // The sweep of 10 stones is left.
        assert_eq!(so_far.lines(&Event::RunEnded { how: RunEnd::Stopped, seconds: 2.0 }), [""; 0]);
    }

    /// The checks of a database may end after later databases are solved. Stages that the plan did not have
    /// are summed up at the end.
    #[test]
    fn databases_side_by_side_have_a_line_each() {
        let mut so_far = run_of(&["capture:9", "sweep:9", "verify:9", "capture:10", "sweep:10"]);
        let mut said = Vec::new();
        let mut ran = |so_far: &mut PlainState, names: &[&str]| {
            names.iter().zip(1..).for_each(|(name, number)| said.extend(begins(so_far, name, number)));
            names.iter().for_each(|name| said.extend(ends(so_far, name)));
            std::mem::take(&mut said)
        };
        assert_eq!(ran(&mut so_far, &["capture:9", "capture:10"]), [""; 0]);
        assert_eq!(ran(&mut so_far, &["sweep:9", "sweep:10"]), ["10 stones: done in 1.00 s, 3.0 M/s, stage 2 of 4"]);
        assert_eq!(ran(&mut so_far, &["verify:9"]), ["9 stones: done in 1.50 s, 2.0 M/s, stage 1 of 4"]);
        assert_eq!(ran(&mut so_far, &["sweep:9", "verify:9"]), [""; 0]);
        let ended = so_far.lines(&Event::RunEnded { how: RunEnd::Done, seconds: 2.0 });
        assert_eq!(ended, ["9 stones: done in 1.00 s, 3.0 M/s, stage 2 of 4"]);
    }
}
