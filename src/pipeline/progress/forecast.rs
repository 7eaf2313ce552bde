//! How long a run will still take: what the plan predicts, corrected by how it went so far.

/// Less than this says nothing about the speed of the machine.
const SECONDS_MIN: f64 = 1.0;

/// The time that a run will take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forecast {
    /// Predicted seconds of all steps.
    total: f64,
    /// Predicted seconds of the steps that are done.
    done: f64,
    /// Predicted seconds of the step at hand.
    current: f64,
}

/// How far the step at hand is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepProgress {
    /// This share of it is done.
    Share(f64),
    /// It takes so many seconds more.
    Left(f64),
    /// It does not tell.
    Unknown,
}

impl Forecast {
    /// A run whose steps are predicted to take so many seconds together.
    pub fn new(total: f64) -> Forecast {
        Forecast { total, done: 0.0, current: 0.0 }
    }

    /// A step begins that is predicted to take so many seconds.
    pub fn begin(&mut self, seconds: f64) {
        self.current = seconds;
    }

    /// The step at hand is done.
    pub fn end(&mut self) {
        self.done += std::mem::take(&mut self.current);
    }

    /// Seconds left, when `elapsed` seconds have passed, `elapsed_at_hand` of them with the step at hand. A step that does
    /// not tell how far it is, and takes longer than predicted, leaves nothing to go by.
    pub fn left(&self, at_hand: StepProgress, elapsed_at_hand: f64, elapsed: f64) -> Option<f64> {
        let others = (self.total - self.done - self.current).max(0.0);
        let elapsed_before = elapsed - elapsed_at_hand;
        // Seconds that a predicted second takes.
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
    fn experience_corrects_the_prediction() {
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
    fn a_step_that_does_not_tell_is_taken_to_be_as_predicted_until_it_is_not() {
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
