//! Progress as bars on a terminal, one for each running stage: its speed, and the time left for the run.

use crate::builds::progress::pace::{RunPosition, StagePace, remark};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pipeline::{Event, Observer, StageName};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The resolution of a bar.
const STEPS: u64 = 1000;

/// Draws bars on stderr.
pub(crate) struct BarObserver {
    screen: MultiProgress,
    style: ProgressStyle,
    state: Mutex<BarState>,
}

/// The run, and the bars of its running stages.
struct BarState {
    position: RunPosition,
    /// In the order in which they are drawn. Between stages the bar of the last one stays.
    bars: Vec<StageBar>,
}

struct StageBar {
    stage: StageName,
    bar: ProgressBar,
    is_over: bool,
}

impl StageBar {
    fn set(&self, share: f64, words: impl Iterator<Item = String>) {
        self.bar.set_position((share * STEPS as f64) as u64);
        self.bar.set_message(words.collect::<Vec<_>>().join(", "));
    }
}

impl BarObserver {
    /// Creates the display without drawing it.
    pub(crate) fn new() -> BarObserver {
        let style = ProgressStyle::with_template("{prefix:>14} {bar:12} {wide_msg}")
            .expect("the template is part of the program, and a test draws it")
            .progress_chars("━╸ ");
        let state = Mutex::new(BarState { position: RunPosition::new(), bars: Vec::new() });
        BarObserver { screen: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()), style, state }
    }

    /// Shows a stage in the place of one that is over, or below all others.
    fn begin(&self, bars: &mut Vec<StageBar>, stage: &StageName) {
        if !bars.iter().any(|bar| bar.is_over) {
            let bar = self.screen.add(ProgressBar::new(STEPS));
            bar.set_style(self.style.clone());
            bars.push(StageBar { stage: stage.clone(), bar, is_over: true });
        }
        if let Some(bar) = bars.iter_mut().find(|bar| bar.is_over) {
            bar.bar.set_prefix(stage.to_string());
            (bar.stage, bar.is_over) = (stage.clone(), false);
        }
    }

    /// Removes the bar of a stage that is over, unless it is the only one.
    fn end(&self, bars: &mut Vec<StageBar>, stage: &StageName) {
        let Some(at) = bars.iter().position(|bar| bar.stage == *stage && !bar.is_over) else { return };
        bars[at].is_over = true;
        if bars.len() > 1 {
            let bar = bars.remove(at).bar;
            bar.finish_and_clear();
            self.screen.remove(&bar);
        }
    }
}

impl Observer for BarObserver {
    fn notice(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let BarState { position, bars } = &mut *state;
        position.follow(event);
        if let Some(line) = remark(event) {
            self.screen.suspend(|| crate::text::terminal::say(line));
        }
        match event {
            Event::StageStarted { stage, .. } => {
                self.begin(bars, stage);
                let words = [position.count(stage)].into_iter().chain(position.left());
                bars.iter().filter(|bar| bar.stage == *stage).for_each(|bar| bar.set(0.0, words.clone()));
            }
            Event::Progress { stage, reading, seconds } => {
                let Some(at) = bars.iter().position(|bar| bar.stage == *stage) else { return };
                let pace = StagePace::of_event(reading, *seconds);
                // The first bar is that of the run too.
                let left = position.left().filter(|_| at == 0);
                let words = pace.words().into_iter().chain([position.count(stage)]).chain(left);
                bars[at].set(pace.share().unwrap_or(0.0), words);
            }
            Event::StageDone { stage, .. } => self.end(bars, stage),
            Event::RunEnded { .. } | Event::StageFailed { .. } | Event::StageStopped { .. } => {
                bars.drain(..).for_each(|bar| bar.bar.finish_and_clear());
            }
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
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.bars.drain(..).for_each(|bar| bar.bar.finish_and_clear());
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
    fn each_running_stage_has_a_bar() {
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
            let bars: Vec<String> = state.bars.iter().map(|bar| bar.bar.prefix()).collect();
            assert_eq!(bars, expected);
        };
        start("sweep:9", 1);
        done("sweep:9");
        check(&["sweep:9"]);
        start("sweep:10", 2);
        start("verify:9", 3);
        check(&["sweep:10", "verify:9"]);
        done("sweep:10");
        start("capture:12", 4);
        check(&["verify:9", "capture:12"]);
        observer.notice(&Event::StageStopped { stage: name("verify:9") });
        check(&[]);
    }
}
