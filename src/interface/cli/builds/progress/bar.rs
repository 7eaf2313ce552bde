//! Progress on a terminal: a line for each running stage, and one for the whole run.

use crate::builds::progress::pace::{RunPosition, StagePace, remark};
use crate::text::screen::Width;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pipeline::{Event, Observer, ProgressReading, StageName};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Draws lines on stderr.
pub(crate) struct BarObserver {
    screen: MultiProgress,
    style: ProgressStyle,
    state: Mutex<BarState>,
}

/// The run, and the lines on the screen.
struct BarState {
    position: RunPosition,
    /// The lines of stages, in the order in which they are drawn. Between stages that of the last one stays.
    stages: Vec<StageBar>,
    /// The line of the run, below those of stages.
    run: Option<ProgressBar>,
}

struct StageBar {
    stage: StageName,
    bar: ProgressBar,
    is_over: bool,
}

impl BarState {
    /// Updates the line of a stage, and that of the run.
    fn show(&mut self, stage: &StageName, reading: &ProgressReading, seconds: f64) {
        let columns = Width::stderr().columns;
        let is_it = |bar: &&StageBar| bar.stage == *stage && !bar.is_over;
        if let Some(StageBar { bar, .. }) = self.stages.iter().find(is_it) {
            bar.set_message(StagePace::of_event(reading, seconds).line(stage).fit(columns));
        }
        if let (Some(bar), Some(line)) = (&self.run, self.position.line()) {
            bar.set_message(line.fit(columns));
        }
    }

    fn clear(&mut self) {
        self.stages.drain(..).map(|stage| stage.bar).chain(self.run.take()).for_each(|bar| bar.finish_and_clear());
    }
}

impl BarObserver {
    /// Creates the display without drawing it.
    pub(crate) fn new() -> BarObserver {
        let style =
            ProgressStyle::with_template("{msg}").expect("the template is part of the program, and a test draws it");
        let state = Mutex::new(BarState { position: RunPosition::new(), stages: Vec::new(), run: None });
        BarObserver { screen: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()), style, state }
    }

    /// Shows a stage in the place of one that is over, or below all others.
    fn begin(&self, state: &mut BarState, stage: &StageName) {
        let line = || ProgressBar::new(1).with_style(self.style.clone());
        let run = state.run.get_or_insert_with(|| self.screen.add(line()));
        if let Some(bar) = state.stages.iter_mut().find(|bar| bar.is_over) {
            (bar.stage, bar.is_over) = (stage.clone(), false);
        } else {
            let bar = self.screen.insert_before(run, line());
            state.stages.push(StageBar { stage: stage.clone(), bar, is_over: false });
        }
        state.show(stage, &ProgressReading::default(), 0.0);
    }

    /// Removes the line of a stage that is over, unless it is the only one.
    fn end(&self, stages: &mut Vec<StageBar>, stage: &StageName) {
        let Some(at) = stages.iter().position(|bar| bar.stage == *stage && !bar.is_over) else { return };
        stages[at].is_over = true;
        if stages.len() > 1 {
            let bar = stages.remove(at).bar;
            bar.finish_and_clear();
            self.screen.remove(&bar);
        }
    }
}

impl Observer for BarObserver {
    fn notice(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.position.follow(event);
        if let Some(line) = remark(event) {
            self.screen.suspend(|| crate::text::terminal::say(line));
        }
        match event {
            Event::StageStarted { stage, .. } => self.begin(&mut state, stage),
            Event::Progress { stage, reading, seconds } => state.show(stage, reading, *seconds),
            Event::StageDone { stage, .. } => self.end(&mut state.stages, stage),
            Event::RunEnded { .. } | Event::StageFailed { .. } | Event::StageStopped { .. } => state.clear(),
            _ => {}
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(200)
    }
}

impl Drop for BarObserver {
    fn drop(&mut self) {
        // A rerun of one stage sends no end of the run.
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::journal::Measured;
    use pipeline::{Cost, Reason, SilentObserver};

    #[test]
    fn template_is_valid() {
        let bar = BarObserver::new();
        bar.notice(&Event::JournalCut { bytes: 3 });
        assert!(bar.interval() < SilentObserver.interval());
    }

    #[test]
    fn each_running_stage_has_a_line() {
        let observer = BarObserver::new();
        let name = |name: &str| name.parse::<StageName>().unwrap();
        let start = |stage: &str, number| {
            let (reason, cost) = (Reason::Forced, Cost::default());
            observer.notice(&Event::StageStarted { stage: name(stage), reason, number, steps: 9, cost });
        };
        let done = |stage: &str| {
            observer.notice(&Event::StageDone { stage: name(stage), measured: Measured::default(), bytes: 1 });
        };
        let check = |expected: &[&str]| {
            let state = observer.state.lock().unwrap();
            let words = |bar: &ProgressBar| bar.message().split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            let lines: Vec<String> = state.stages.iter().map(|stage| &stage.bar).chain(&state.run).map(words).collect();
            assert_eq!(lines, expected);
        };
        start("sweep:9", 1);
        done("sweep:9");
        check(&["sweep:9 preparing", "whole run"]);
        start("sweep:10", 2);
        start("verify:9", 3);
        check(&["sweep:10 preparing", "verify:9 preparing", "whole run"]);
        let reading = ProgressReading { done: 1, total: 2, unit: "positions", ..ProgressReading::default() };
        observer.notice(&Event::Progress { stage: name("verify:9"), reading, seconds: 1.0 });
        check(&["sweep:10 preparing", "verify:9 verifying", "whole run"]);
        done("sweep:10");
        start("capture:12", 4);
        check(&["verify:9 verifying", "capture:12 preparing", "whole run"]);
        observer.notice(&Event::StageStopped { stage: name("verify:9") });
        check(&[]);
    }
}
