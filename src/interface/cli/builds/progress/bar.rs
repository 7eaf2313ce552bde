//! Progress as a bar on a terminal: the current stage, its speed, and the time left for the run.

use crate::builds::progress::pace::{RunPosition, StagePace, remark};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pipeline::progress::StepProgress;
use pipeline::{Event, Observer};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The resolution of the bar.
const STEPS: u64 = 1000;

/// Draws a bar on stderr.
pub(crate) struct BarObserver {
    bar: ProgressBar,
    position: Mutex<RunPosition>,
}

impl BarObserver {
    /// Creates the display without drawing it.
    pub(crate) fn new() -> BarObserver {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix:>14} {bar:12} {wide_msg}")
            .expect("the template is part of the program, and a test draws it")
            .progress_chars("━╸ ");
        bar.set_style(style);
        BarObserver { bar, position: Mutex::new(RunPosition::new()) }
    }

    fn set(&self, share: f64, message: String) {
        self.bar.set_position((share * STEPS as f64) as u64);
        self.bar.set_message(message);
    }
}

impl Observer for BarObserver {
    fn notice(&self, event: &Event) {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        position.follow(event);
        if let Some(line) = remark(event) {
            self.bar.suspend(|| crate::text::terminal::say(line));
        }
        match event {
            Event::StageStarted { stage, .. } => {
                self.bar.set_prefix(stage.to_string());
                let left = position.left(StepProgress::Share(0.0), 0.0);
                self.set(0.0, parts([position.count()].into_iter().chain(left)));
            }
            Event::Progress { reading, seconds, .. } => {
                let pace = StagePace::of_event(reading, *seconds);
                let left = position.left(reading.at_hand(), *seconds);
                let words = pace.words().into_iter().chain([position.count()]).chain(left);
                self.set(pace.share().unwrap_or(0.0), parts(words));
            }
            Event::RunEnded { .. } | Event::StageFailed { .. } | Event::StageStopped { .. } => {
                self.bar.finish_and_clear();
            }
            _ => {}
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(200)
    }
}

fn parts(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

impl Drop for BarObserver {
    fn drop(&mut self) {
        // A rerun of one stage sends no end of the run.
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::SilentObserver;

    #[test]
    fn template_is_valid() {
        let bar = BarObserver::new();
        bar.notice(&Event::JournalCut { bytes: 3 });
        assert!(bar.interval() < SilentObserver.interval());
    }
}
