//! The progress of a run and of its current stage, as words and as lines.

use crate::builds::progress::line::ProgressLine;
use crate::text::quantity;
use pipeline::progress::{BoundReading, Forecast, PassReading};
use pipeline::{Event, ProgressReading, StageHeartbeat, StageName};
use stages::kinds;
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
            Event::RunStarted { seconds, run_seconds, .. } => {
                *self = RunPosition { forecast: Forecast::new(*seconds, *run_seconds), ..RunPosition::new() };
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
        self.left_seconds().map(|seconds| quantity::about(seconds) + " left in all")
    }

    /// Returns the line of the whole run, if it has more than one stage.
    pub(crate) fn line(&self) -> Option<ProgressLine> {
        let number = self.stages.iter().map(|(_, number)| *number).max()?;
        let elapsed = self.started.elapsed().as_secs_f64();
        (self.steps > 1).then(|| run_line(number, self.steps, elapsed, self.left_seconds()))
    }

    fn left_seconds(&self) -> Option<f64> {
        self.forecast.left(self.started.elapsed().as_secs_f64())
    }
}

/// Returns the line of a whole run, which is at a stage of this number.
pub(crate) fn run_line(number: usize, steps: usize, elapsed: f64, left_seconds: Option<f64>) -> ProgressLine {
    ProgressLine {
        name: "whole run".to_owned(),
        activity: vec![format!("stage {number} of {steps}")],
        share: left_seconds.map(|left| elapsed / (elapsed + left).max(1.0)),
        rate: None,
        left_seconds,
    }
}

/// The progress of a stage, from an event or a heartbeat.
pub(crate) struct StagePace<'a> {
    done: u64,
    total: u64,
    unit: &'a str,
    bound: Option<BoundReading>,
    pass: Option<PassReading>,
    writing_seconds: Option<f64>,
    seconds: f64,
    /// Time left for the stage, if known.
    left_seconds: Option<f64>,
}

impl<'a> StagePace<'a> {
    pub(crate) fn of_event(reading: &ProgressReading, seconds: f64) -> StagePace<'a> {
        let ProgressReading { done, total, unit, bound, pass, writing_seconds } = *reading;
        StagePace {
            done,
            total,
            unit,
            bound,
            pass,
            writing_seconds,
            seconds,
            left_seconds: reading.left_seconds(seconds),
        }
    }

    pub(crate) fn of_heartbeat(heartbeat: &'a StageHeartbeat) -> StagePace<'a> {
        let StageHeartbeat { done, total, unit, bound, pass, writing_seconds, seconds, stage_left_seconds, .. } =
            heartbeat;
        StagePace {
            done: *done,
            total: *total,
            unit,
            bound: *bound,
            pass: *pass,
            writing_seconds: *writing_seconds,
            seconds: *seconds,
            left_seconds: *stage_left_seconds,
        }
    }

    /// Returns the finished share of the stage, of its current pass, or of what it writes.
    fn share(&self) -> Option<f64> {
        (self.done < self.total).then(|| self.done as f64 / self.total as f64)
    }

    /// Returns the line of a stage.
    pub(crate) fn line(&self, stage: &StageName) -> ProgressLine {
        let share = match (self.pass, self.left_seconds) {
            // Of the stage, not of its pass.
            (Some(_), Some(left)) => Some(self.seconds / (self.seconds + left).max(f64::MIN_POSITIVE)),
            (Some(_), None) => None,
            (None, _) => self.share(),
        };
        let (name, activity) = (stage.to_string(), self.activity(stage));
        ProgressLine { name, activity, share, rate: self.rate(), left_seconds: self.left_seconds }
    }

    /// Returns what a stage does, the most important first: `solving`, `pass 4`.
    fn activity(&self, stage: &StageName) -> Vec<String> {
        let is_over = self.total > 0 && self.done >= self.total;
        let work = match (self.writing_seconds, self.pass, self.bound) {
            (Some(_), ..) if is_over => Some("completing the file"),
            (Some(_), ..) => Some("writing the scores"),
            (None, None, None) if self.unit.is_empty() => Some("preparing"),
            (None, None, None) if is_over => Some("finishing"),
            (None, _, Some(_)) => None,
            (None, _, None) => kinds::phase(stage).map(|phase| phase.activity()),
        };
        let mut words: Vec<String> = work.map(str::to_owned).into_iter().collect();
        words.extend(self.bound.map(|BoundReading { bound, of }| format!("bound {bound} of {of}")));
        if let Some(PassReading { number, changed_share, is_last, .. }) = self.pass {
            words.push(format!("pass {number}"));
            words.extend(is_last.then(|| "expected to be the last".to_owned()));
            words.extend(changed_share.filter(|share| *share > 0.0).map(|share| match share * 100.0 {
                percent if percent < 0.01 => "less than 0.01 % changed in the last".to_owned(),
                percent => format!("{percent:.2} % changed in the last"),
            }));
        }
        words
    }

    /// Returns the known parts as text: `solving`, `63 %`, `24.1 M/s`, `12 s left`; `bound 3 of 18`,
    /// `pass 4`, `0.31 % changed in the last`, `45 % of the pass`.
    pub(crate) fn words(&self, stage: &StageName) -> Vec<String> {
        let mut words = self.activity(stage);
        let suffix = match (self.pass, self.bound) {
            (Some(_), _) => " of the pass",
            (None, Some(_)) => " decided",
            (None, None) => "",
        };
        words.extend(self.share().map(|share| format!("{:.0} %{suffix}", (share * 100.0).floor())));
        words.extend(self.rate());
        words.extend(self.left_seconds.map(|seconds| quantity::about(seconds) + " left"));
        words
    }

    /// Formats the speed of what the stage does, if known: `24.1 M/s`.
    fn rate(&self) -> Option<String> {
        let pass_seconds = self.pass.map(|pass| pass.seconds);
        let rate = quantity::rate_over(self.done, self.writing_seconds.or(pass_seconds).unwrap_or(self.seconds))?;
        Some(if matches!(self.unit, "" | "positions") { rate } else { format!("{rate} {}", self.unit) })
    }
}

/// Returns the message about an event that every text display prints, if there is one.
pub(crate) fn remark(event: &Event) -> Option<String> {
    match event {
        Event::Adopted { artifacts } => Some(match artifacts.as_slice() {
            [artifact] => format!("{artifact} was not in the journal: adopted (header checked)"),
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
            let stage = "sweep:9".parse().unwrap();
            assert_eq!(StagePace::of_event(&reading, seconds).words(&stage), words);
        };
        let counted = ProgressReading { done: 25, total: 100, unit: "positions", ..ProgressReading::default() };
        check(counted, 5.0, &["solving", "25 %", "5 /s", "15 s left"]);
        check(ProgressReading { unit: "rows", ..counted }, 5.0, &["solving", "25 %", "5 /s rows", "15 s left"]);
        check(counted, 0.01, &["solving", "25 %", "1 s left"]);
        check(ProgressReading { done: 100, ..counted }, 5.0, &["finishing", "20 /s"]);
        check(ProgressReading { total: 0, ..counted }, 5.0, &["solving", "5 /s"]);
        check(ProgressReading::default(), 5.0, &["preparing"]);
        let pass = PassReading {
            number: 7,
            changed_share: Some(0.0031),
            is_last: false,
            left_seconds: Some(12.0),
            seconds: 5.0,
        };
        let passes = ProgressReading { pass: Some(pass), ..counted };
        let changed = "0.31 % changed in the last";
        check(passes, 60.0, &["solving", "pass 7", changed, "25 % of the pass", "5 /s", "12 s left"]);
        let pass = PassReading { changed_share: Some(1e-9), is_last: true, left_seconds: None, ..pass };
        let bound = Some(BoundReading { bound: 3, of: 18 });
        let last = ProgressReading { bound, pass: Some(pass), done: 0, total: 0, ..counted };
        let changed = "less than 0.01 % changed in the last";
        check(last, 5.0, &["bound 3 of 18", "pass 7", "expected to be the last", changed]);
        check(ProgressReading { bound, ..counted }, 5.0, &["bound 3 of 18", "25 % decided", "5 /s"]);
        let writing = ProgressReading { writing_seconds: Some(5.0), ..counted };
        check(writing, 60.0, &["writing the scores", "25 %", "5 /s", "15 s left"]);
        check(ProgressReading { done: 100, ..writing }, 60.0, &["completing the file", "20 /s"]);
    }

    #[test]
    fn the_line_of_a_stage_shows_its_share_and_not_that_of_a_pass() {
        let pass =
            PassReading { number: 2, changed_share: None, is_last: false, left_seconds: Some(30.0), seconds: 5.0 };
        let reading =
            ProgressReading { done: 9, total: 10, unit: "positions", pass: Some(pass), ..ProgressReading::default() };
        let line = |reading: ProgressReading| StagePace::of_event(&reading, 10.0).line(&"sweep:9".parse().unwrap());
        assert_eq!((line(reading).share, line(reading).left_seconds), (Some(0.25), Some(30.0)));
        let pass = Some(PassReading { left_seconds: None, ..pass });
        assert_eq!(line(ProgressReading { pass, ..reading }).share, None);
        assert_eq!(line(ProgressReading { pass: None, ..reading }).share, Some(0.9));
    }
}
