//! Forecast of the time left of a run: the prediction of the plan, corrected by the progress so far.

use crate::stage::StageName;

/// The shortest elapsed time from which the speed of the machine is estimated.
const SECONDS_MIN: f64 = 1.0;

/// The forecast of a run.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    /// Predicted seconds of all steps.
    total: f64,
    /// Seconds of the run for each of them: less than 1 where steps run side by side.
    pace: f64,
    /// Predicted seconds of the completed steps.
    done: f64,
    /// The current steps, in the order in which they began.
    current: Vec<CurrentStep>,
}

/// A step that runs.
#[derive(Clone, Debug)]
struct CurrentStep {
    stage: StageName,
    /// Predicted seconds.
    predicted: f64,
    progress: StepProgress,
    /// Seconds since it began.
    elapsed: f64,
}

/// The progress of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepProgress {
    /// The completed share.
    Share(f64),
    /// The seconds left.
    Left(f64),
    /// Neither is known.
    Unknown,
}

impl StepProgress {
    /// Estimates the seconds left for a step that has run for `elapsed` seconds, if its progress says something.
    pub(super) fn left_seconds(self, elapsed: f64) -> Option<f64> {
        match self {
            StepProgress::Left(left) => Some(left),
            StepProgress::Share(share) if share > 0.0 => Some(elapsed * (1.0 - share.min(1.0)) / share),
            StepProgress::Share(_) | StepProgress::Unknown => None,
        }
    }
}

impl Forecast {
    /// Makes the forecast of a run that is predicted to take `run` seconds, and its steps `total`.
    pub fn new(total: f64, run: f64) -> Forecast {
        let pace = if total > 0.0 { run / total } else { 1.0 };
        Forecast { total, pace, ..Forecast::default() }
    }

    /// Begins a step that is predicted to take `predicted` seconds.
    pub fn begin(&mut self, stage: &StageName, predicted: f64) {
        let (stage, progress) = (stage.clone(), StepProgress::Share(0.0));
        self.current.push(CurrentStep { stage, predicted, progress, elapsed: 0.0 });
    }

    /// Sets the progress of a current step that has run for `elapsed` seconds.
    pub fn advance(&mut self, stage: &StageName, progress: StepProgress, elapsed: f64) {
        if let Some(step) = self.current.iter_mut().find(|step| step.stage == *stage) {
            (step.progress, step.elapsed) = (progress, elapsed);
        }
    }

    /// Ends a current step.
    pub fn end(&mut self, stage: &StageName) {
        let is_it = |step: &mut CurrentStep| step.stage == *stage;
        self.done += self.current.extract_if(.., is_it).map(|step| step.predicted).sum::<f64>();
    }

    /// Estimates the seconds left, after `elapsed` seconds: no fewer than any current step has left by its
    /// own progress. `None` if a step has unknown progress and exceeds its prediction.
    pub fn left(&self, elapsed: f64) -> Option<f64> {
        let left = match &self.current[..] {
            [] => Some(self.left_at(self.done, elapsed)),
            [step] => self.left_with(step, elapsed),
            steps => {
                let shares = steps.iter().map(|step| step.share().map(|share| step.predicted * share));
                let done = self.done + shares.sum::<Option<f64>>()?;
                Some(self.left_at(done, elapsed))
            }
        };
        let says_something =
            |step: &&CurrentStep| step.elapsed >= SECONDS_MIN || matches!(step.progress, StepProgress::Left(_));
        let of_steps = self.current.iter().filter(says_something);
        Some(of_steps.filter_map(|step| step.progress.left_seconds(step.elapsed)).fold(left?, f64::max))
    }

    /// Returns the seconds left if steps of `done` predicted seconds took `elapsed` seconds.
    fn left_at(&self, done: f64, elapsed: f64) -> f64 {
        let left = (self.total - done).max(0.0);
        if elapsed < SECONDS_MIN || done <= 0.0 { left * self.pace } else { left * elapsed / done }
    }

    /// Returns the seconds left while only this step runs.
    fn left_with(&self, step: &CurrentStep, elapsed: f64) -> Option<f64> {
        let others = (self.total - self.done - step.predicted).max(0.0);
        let elapsed_before = elapsed - step.elapsed;
        // Actual seconds per predicted second.
        let slowness = if elapsed_before < SECONDS_MIN || self.done <= 0.0 { 1.0 } else { elapsed_before / self.done };
        match step.progress {
            StepProgress::Share(share) => {
                Some(self.left_at(self.done + step.predicted * share.clamp(0.0, 1.0), elapsed))
            }
            StepProgress::Left(left) => Some(left + others * slowness),
            StepProgress::Unknown => {
                let left = step.predicted * slowness - step.elapsed;
                (left > 0.0).then_some(left + others * slowness)
            }
        }
    }
}

impl CurrentStep {
    /// Returns the completed share, if it can be estimated.
    fn share(&self) -> Option<f64> {
        match self.progress {
            StepProgress::Share(share) => Some(share.clamp(0.0, 1.0)),
            StepProgress::Left(left) => Some(self.elapsed / (self.elapsed + left.max(0.0)).max(f64::MIN_POSITIVE)),
            StepProgress::Unknown => (self.elapsed < self.predicted).then(|| self.elapsed / self.predicted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str) -> StageName {
        name.parse().unwrap()
    }

    #[test]
    fn completed_steps_correct_the_prediction() {
        let mut forecast = Forecast::new(100.0, 100.0);
        assert_eq!(forecast.left(0.0), Some(100.0));
        let [first, second] = [stage("sweep:1"), stage("sweep:2")];
        forecast.begin(&first, 20.0);
        let share = |forecast: &mut Forecast, stage: &StageName, share, elapsed| {
            forecast.advance(stage, StepProgress::Share(share), 0.0);
            forecast.left(elapsed).unwrap()
        };
        assert_eq!(share(&mut forecast, &first, 0.0, 0.0), 100.0);
        assert_eq!(share(&mut forecast, &first, 0.5, 0.5), 90.0);
        // Half as fast as predicted.
        assert_eq!(share(&mut forecast, &first, 0.5, 20.0), 180.0);
        forecast.end(&first);
        forecast.begin(&second, 80.0);
        assert_eq!(share(&mut forecast, &second, 0.0, 20.0), 80.0);
        assert_eq!(share(&mut forecast, &second, 2.0, 50.0), 0.0);
    }

    #[test]
    fn a_step_of_unknown_progress_is_expected_to_take_its_prediction() {
        let mut forecast = Forecast::new(100.0, 100.0);
        let [first, second] = [stage("sweep:1"), stage("sweep:2")];
        forecast.begin(&first, 20.0);
        let left = |forecast: &mut Forecast, stage: &StageName, progress, elapsed_in_it, elapsed| {
            forecast.advance(stage, progress, elapsed_in_it);
            forecast.left(elapsed)
        };
        assert_eq!(left(&mut forecast, &first, StepProgress::Unknown, 5.0, 5.0), Some(95.0));
        assert_eq!(left(&mut forecast, &first, StepProgress::Unknown, 20.0, 20.0), None);
        assert_eq!(left(&mut forecast, &first, StepProgress::Left(300.0), 20.0, 20.0), Some(380.0));
        forecast.end(&first);
        // Three times as long as predicted.
        forecast.begin(&second, 30.0);
        assert_eq!(left(&mut forecast, &second, StepProgress::Unknown, 0.0, 60.0), Some(240.0));
        assert_eq!(left(&mut forecast, &second, StepProgress::Left(1.0), 7.0, 67.0), Some(151.0));
        assert_eq!(left(&mut forecast, &second, StepProgress::Unknown, 90.0, 150.0), None);
    }

    #[test]
    fn a_slow_step_has_time_left() {
        let mut forecast = Forecast::new(100.0, 100.0);
        let [first, last] = [stage("sweep:1"), stage("verify:1")];
        forecast.begin(&first, 96.0);
        forecast.end(&first);
        forecast.begin(&last, 4.0);
        // Ten times as slow as predicted, after many steps that were not.
        forecast.advance(&last, StepProgress::Share(0.25), 10.0);
        assert_eq!(forecast.left(106.0), Some(30.0));
    }

    #[test]
    fn several_steps_advance_together() {
        let mut forecast = Forecast::new(100.0, 100.0);
        let [first, second] = [stage("sweep:1"), stage("sweep:2")];
        forecast.begin(&first, 20.0);
        forecast.begin(&second, 40.0);
        forecast.advance(&first, StepProgress::Share(0.5), 10.0);
        forecast.advance(&second, StepProgress::Left(30.0), 10.0);
        // 20 of the predicted 100 seconds took 10.
        assert_eq!(forecast.left(10.0), Some(40.0));
        forecast.advance(&second, StepProgress::Unknown, 10.0);
        assert_eq!(forecast.left(10.0), Some(40.0));
        forecast.advance(&second, StepProgress::Unknown, 50.0);
        assert_eq!(forecast.left(50.0), None);
        forecast.end(&second);
        forecast.advance(&first, StepProgress::Share(0.5), 50.0);
        assert_eq!(forecast.left(50.0), Some(50.0));
    }
}
