//! Forecast of the time left of a run: the prediction of the plan, corrected by the progress so far.

/// The shortest elapsed time from which the speed of the machine is estimated.
const SECONDS_MIN: f64 = 1.0;

/// The forecast of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forecast {
    /// Predicted seconds of all steps.
    total: f64,
    /// Predicted seconds of the completed steps.
    done: f64,
    /// Predicted seconds of the current step.
    current: f64,
}

/// The progress of the current step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepProgress {
    /// The completed share.
    Share(f64),
    /// The seconds left.
    Left(f64),
    /// Neither is known.
    Unknown,
}

impl Forecast {
    /// Makes the forecast of a run whose steps are predicted to take `total` seconds.
    pub fn new(total: f64) -> Forecast {
        Forecast { total, done: 0.0, current: 0.0 }
    }

    /// Begins a step that is predicted to take `seconds`.
    pub fn begin(&mut self, seconds: f64) {
        self.current = seconds;
    }

    /// Ends the current step.
    pub fn end(&mut self) {
        self.done += std::mem::take(&mut self.current);
    }

    /// Estimates the seconds left, after `elapsed` seconds, `elapsed_at_hand` of them in the current step. `None` if
    /// the current step has unknown progress and exceeds its prediction.
    pub fn left(&self, at_hand: StepProgress, elapsed_at_hand: f64, elapsed: f64) -> Option<f64> {
        let others = (self.total - self.done - self.current).max(0.0);
        let elapsed_before = elapsed - elapsed_at_hand;
        // Actual seconds per predicted second.
        let slowness = if elapsed_before < SECONDS_MIN || self.done <= 0.0 { 1.0 } else { elapsed_before / self.done };
        match at_hand {
            StepProgress::Share(share) => {
                let done = self.done + self.current * share.clamp(0.0, 1.0);
                let left = (self.total - done).max(0.0);
                Some(if elapsed < SECONDS_MIN || done <= 0.0 { left } else { left * elapsed / done })
            }
            StepProgress::Left(left) => Some(left + others * slowness),
            StepProgress::Unknown => {
                let left = self.current * slowness - elapsed_at_hand;
                (left > 0.0).then_some(left + others * slowness)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_steps_correct_the_prediction() {
        let mut forecast = Forecast::new(100.0);
        forecast.begin(20.0);
        let share =
            |forecast: Forecast, share, elapsed| forecast.left(StepProgress::Share(share), 0.0, elapsed).unwrap();
        assert_eq!(share(forecast, 0.0, 0.0), 100.0);
        assert_eq!(share(forecast, 0.5, 0.5), 90.0);
        // Half as fast as predicted.
        assert_eq!(share(forecast, 0.5, 20.0), 180.0);
        forecast.end();
        forecast.begin(80.0);
        assert_eq!(share(forecast, 0.0, 20.0), 80.0);
        assert_eq!(share(forecast, 2.0, 50.0), 0.0);
    }

    #[test]
    fn a_step_of_unknown_progress_is_expected_to_take_its_prediction() {
        let mut forecast = Forecast::new(100.0);
        forecast.begin(20.0);
        assert_eq!(forecast.left(StepProgress::Unknown, 5.0, 5.0), Some(95.0));
        assert_eq!(forecast.left(StepProgress::Unknown, 20.0, 20.0), None);
        assert_eq!(forecast.left(StepProgress::Left(300.0), 20.0, 20.0), Some(380.0));
        forecast.end();
        // Three times as long as predicted.
        forecast.begin(30.0);
        assert_eq!(forecast.left(StepProgress::Unknown, 0.0, 60.0), Some(240.0));
        assert_eq!(forecast.left(StepProgress::Left(1.0), 7.0, 67.0), Some(151.0));
        assert_eq!(forecast.left(StepProgress::Unknown, 90.0, 150.0), None);
    }
}
