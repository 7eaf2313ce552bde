//! The progress of a run and of its current stage, as words.

use crate::text::quantity;
use pipeline::progress::{BoundReading, Forecast, PassReading};
use pipeline::{Event, ProgressReading, StageHeartbeat, StageName};
use std::time::Instant;

/// The position of a run among its stages.
pub(crate) struct RunPosition {
    started: Instant,
    forecast: Forecast,
    /// The current stages, and their numbers. Between stages it holds the last one.
    stages: Vec<(StageName, usize)>,
    /// Whether the only stage has ended.
    is_between: bool,
    steps: usize,
}

impl RunPosition {
    /// Creates the state before the first stage.
    pub(crate) fn new() -> RunPosition {
        let (started, forecast) = (Instant::now(), Forecast::default());
        RunPosition { started, forecast, stages: Vec::new(), is_between: false, steps: 0 }
    }

    /// Updates the state from an event.
    pub(crate) fn follow(&mut self, event: &Event) {
        match event {
            Event::RunStarted { seconds, .. } => {
                *self = RunPosition { forecast: Forecast::new(*seconds), ..RunPosition::new() };
            }
            Event::StageStarted { stage, number, steps, cost, .. } => {
                if std::mem::take(&mut self.is_between) {
                    self.stages.clear();
                }
                self.stages.push((stage.clone(), *number));
                self.steps = *steps;
                self.forecast.begin(stage, cost.seconds);
            }
            Event::Progress { stage, reading, seconds } => self.forecast.advance(stage, reading.at_hand(), *seconds),
            Event::StageDone { stage, .. } => {
                self.forecast.end(stage);
                self.is_between = self.stages.len() == 1;
                if !self.is_between {
                    self.stages.retain(|(running, _)| running != stage);
                }
            }
            _ => {}
        }
    }

    /// Returns the number of a current stage: `stage 12 of 52`.
    pub(crate) fn count(&self, stage: &StageName) -> String {
        let number = self.stages.iter().find(|(running, _)| running == stage).map_or(0, |(_, number)| *number);
        format!("stage {number} of {}", self.steps)
    }

    /// Returns the time left for the run: `12 s left in all`.
    pub(crate) fn left(&self) -> Option<String> {
        left_in_all(self.forecast.left(self.started.elapsed().as_secs_f64()))
    }
}

/// Formats the time left for a run, if known: `12 s left in all`.
pub(crate) fn left_in_all(seconds: Option<f64>) -> Option<String> {
    seconds.map(|seconds| quantity::about(seconds) + " left in all")
}

/// The progress of a stage, from an event or a heartbeat.
pub(crate) struct StagePace<'a> {
    done: u64,
    total: u64,
    unit: &'a str,
    bound: Option<BoundReading>,
    pass: Option<PassReading>,
    seconds: f64,
    /// Time left for the stage, if known.
    left_seconds: Option<f64>,
}

impl<'a> StagePace<'a> {
    pub(crate) fn of_event(reading: &ProgressReading, seconds: f64) -> StagePace<'a> {
        let ProgressReading { done, total, unit, bound, pass } = *reading;
        StagePace { done, total, unit, bound, pass, seconds, left_seconds: reading.left_seconds(seconds) }
    }

    pub(crate) fn of_heartbeat(heartbeat: &'a StageHeartbeat) -> StagePace<'a> {
        let StageHeartbeat { done, total, unit, bound, pass, seconds, stage_left_seconds, .. } = heartbeat;
        StagePace {
            done: *done,
            total: *total,
            unit,
            bound: *bound,
            pass: *pass,
            seconds: *seconds,
            left_seconds: *stage_left_seconds,
        }
    }

    /// Returns the finished share of the stage, or of its current pass.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.done < self.total).then(|| self.done as f64 / self.total as f64)
    }

    /// Returns the known parts as text: `63 %`, `24.1 M/s`, `12 s left`; `bound 3 of 18`, `pass 4`, `45 % of the pass`, `0.31 % changed in the last`.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.bound.map(|BoundReading { bound, of }| format!("bound {bound} of {of}")));
        let percent = self.share().map(|share| format!("{:.0} %", (share * 100.0).floor()));
        match &self.pass {
            Some(PassReading { number, changed_share, is_last, .. }) => {
                let last = if *is_last { ", expected to be the last" } else { "" };
                words.push(format!("pass {number}{last}"));
                words.extend(percent.map(|percent| percent + " of the pass"));
                words.extend(changed_share.filter(|share| *share > 0.0).map(|share| match share * 100.0 {
                    percent if percent < 0.01 => "less than 0.01 % changed in the last".to_owned(),
                    percent => format!("{percent:.2} % changed in the last"),
                }));
            }
            None if self.total > 0 && self.done >= self.total => words.push("finishing".to_owned()),
            None => {
                let decided = if self.bound.is_some() { " decided" } else { "" };
                words.extend(percent.map(|percent| percent + decided));
                words.extend(rate(self.done, self.unit, self.seconds));
            }
        }
        words.extend(self.left_seconds.map(|seconds| quantity::about(seconds) + " left"));
        words
    }
}

/// Formats the speed of a stage, if known: `24.1 M/s`.
fn rate(done: u64, unit: &str, seconds: f64) -> Option<String> {
    let rate = quantity::rate_over(done, seconds)?;
    Some(if matches!(unit, "" | "positions") { rate } else { format!("{rate} {unit}") })
}

/// Returns the message about an event that every text display prints, if there is one.
pub(crate) fn remark(event: &Event) -> Option<String> {
    match event {
        Event::Adopted { artifacts } => Some(match artifacts.as_slice() {
            [one] => format!("{one} was not in the journal: adopted (header checked)"),
            many => format!("{} files were not in the journal: adopted (headers checked)", many.len()),
        }),
        Event::JournalCut { bytes } => Some(format!(
            "a crash has torn the end of the journal: {} cut off; the work since then is repeated",
            quantity::plural(*bytes, "byte")
        )),
        Event::DamageFound { artifact, what } => Some(format!("damage in {artifact}: {what}")),
        Event::RunStarted { .. }
        | Event::StageStarted { .. }
        | Event::Progress { .. }
        | Event::StageDone { .. }
        | Event::StageStopped { .. }
        | Event::StageFailed { .. }
        | Event::Removed { .. }
        | Event::RunEnded { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_contain_what_is_known() {
        let check = |reading: ProgressReading, seconds: f64, words: &[&str]| {
            assert_eq!(StagePace::of_event(&reading, seconds).words(), words);
        };
        let counted = ProgressReading { done: 25, total: 100, unit: "positions", ..ProgressReading::default() };
        check(counted, 5.0, &["25 %", "5 /s", "15 s left"]);
        check(ProgressReading { unit: "rows", ..counted }, 5.0, &["25 %", "5 /s rows", "15 s left"]);
        check(counted, 0.01, &["25 %", "1 s left"]);
        check(ProgressReading { done: 100, ..counted }, 5.0, &["finishing"]);
        check(ProgressReading { total: 0, ..counted }, 5.0, &["5 /s"]);
        check(ProgressReading::default(), 5.0, &[]);
        let pass = PassReading { number: 7, changed_share: Some(0.0031), is_last: false, left_seconds: Some(12.0) };
        let passes = ProgressReading { pass: Some(pass), ..counted };
        check(passes, 5.0, &["pass 7", "25 % of the pass", "0.31 % changed in the last", "12 s left"]);
        let pass = PassReading { changed_share: Some(1e-9), is_last: true, left_seconds: None, ..pass };
        let bound = Some(BoundReading { bound: 3, of: 18 });
        let last = ProgressReading { bound, pass: Some(pass), done: 0, total: 0, ..counted };
        let expected = ["bound 3 of 18", "pass 7, expected to be the last", "less than 0.01 % changed in the last"];
        check(last, 5.0, &expected);
        check(ProgressReading { bound, ..counted }, 5.0, &["bound 3 of 18", "25 % decided", "5 /s"]);
    }
}
