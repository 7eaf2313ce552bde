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

    /// Seconds left, when `elapsed` seconds have passed and `share` of the step at hand is done.
    pub fn left(&self, share: f64, elapsed: f64) -> f64 {
        let done = self.done + self.current * share.clamp(0.0, 1.0);
        let left = (self.total - done).max(0.0);
        if elapsed < SECONDS_MIN || done <= 0.0 { left } else { left * elapsed / done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experience_corrects_the_prediction() {
        let mut forecast = Forecast::new(100.0);
        forecast.begin(20.0);
        assert_eq!(forecast.left(0.0, 0.0), 100.0);
        assert_eq!(forecast.left(0.5, 0.5), 90.0);
        // Half as fast as predicted.
        assert_eq!(forecast.left(0.5, 20.0), 180.0);
        forecast.end();
        forecast.begin(80.0);
        assert_eq!(forecast.left(0.0, 20.0), 80.0);
        assert_eq!(forecast.left(2.0, 50.0), 0.0);
    }
}
