//! Progress of the running stage: written by its threads, read by observers.

mod forecast;
mod passes;

pub use forecast::{Forecast, StepProgress};
pub use passes::{PassSample, Passes};

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The progress of one stage. Shared by reference; every method may be called from any thread.
#[derive(Debug, Default)]
pub struct StageProgress {
    done: AtomicU64,
    total: AtomicU64,
    course: Mutex<Course>,
}

/// The part of the progress that changes rarely.
#[derive(Debug, Default)]
struct Course {
    unit: &'static str,
    bound: Option<BoundReading>,
    passes: Option<ActivePasses>,
    /// When the stage began to write its result, in steady time.
    writing_since: Option<Duration>,
}

/// The passes of a stage, and the start of the current one.
#[derive(Debug)]
struct ActivePasses {
    passes: Passes,
    /// When the current pass began, in steady time.
    begun: Duration,
}

/// The current bound of a stage that processes bounds from `of` down to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundReading {
    /// The current bound.
    pub bound: u32,
    /// The first bound.
    pub of: u32,
}

/// The current pass of a stage that repeats passes until one changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassReading {
    /// Its number, from 1.
    pub number: u64,
    /// The share of positions that the previous pass changed.
    pub changed_share: Option<f64>,
    /// Whether the pass is expected to change nothing, and so to be the last.
    pub is_last: bool,
    /// Estimated seconds until the last pass ends.
    pub left_seconds: Option<f64>,
    /// Seconds since the pass began.
    #[serde(default)]
    pub seconds: f64,
}

/// One reading of a [`StageProgress`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ProgressReading {
    /// Completed units of the stage, or of the current pass.
    pub done: u64,
    /// Units in total; 0 if unknown.
    pub total: u64,
    /// Name of the unit, such as `positions` or `rows`. Empty until the stage sets it.
    pub unit: &'static str,
    /// The current bound, where there are bounds.
    pub bound: Option<BoundReading>,
    /// The current pass, where there are passes.
    pub pass: Option<PassReading>,
    /// Seconds since the stage began to write its result, all of which it has computed: the units are those written.
    pub writing_seconds: Option<f64>,
}

impl StageProgress {
    /// Creates a progress of 0 units of an unknown total.
    pub fn new() -> Self {
        StageProgress::default()
    }

    /// Starts to count from 0 to `total` (0: unknown) in `unit`s. Ends bounds and passes.
    pub fn begin(&self, total: u64, unit: &'static str) {
        *self.course() = Course { unit, ..Course::default() };
        self.reach(0, total);
    }

    /// Starts to count what is written of a computed result, from 0 to `total`, at the steady time `now`.
    pub fn begin_writing(&self, total: u64, unit: &'static str, now: Duration) {
        *self.course() = Course { unit, writing_since: Some(now), ..Course::default() };
        self.reach(0, total);
    }

    /// Begins passes at the steady time `now`, each of which makes at most `changes_max` changes.
    pub fn begin_passes(&self, changes_max: u64, now: Duration) {
        self.reach(0, 0);
        self.course().passes = Some(ActivePasses { passes: Passes::new(changes_max), begun: now });
    }

    /// Ends a pass at the steady time `now`, and begins the next one. Does nothing without passes.
    pub fn end_pass(&self, is_full: bool, is_next_full: bool, changed: u64, now: Duration) {
        if let Some(under_way) = &mut self.course().passes {
            let seconds = now.saturating_sub(under_way.begun).as_secs_f64();
            under_way.passes.end(PassSample { is_full, is_next_full, changed, seconds });
            under_way.begun = now;
        }
    }

    /// Begins a bound.
    pub fn begin_bound(&self, bound: u32, of: u32) {
        self.course().bound = Some(BoundReading { bound, of });
    }

    /// Adds completed units.
    pub fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Sets the completed units.
    pub fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Sets the completed and the total units (0: unknown).
    pub fn reach(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Reads the progress at the steady time `now`. The values may be of slightly different moments.
    pub fn read(&self, now: Duration) -> ProgressReading {
        let course = self.course();
        let seconds_since = |begun: Duration| now.saturating_sub(begun).as_secs_f64();
        ProgressReading {
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            unit: course.unit,
            bound: course.bound,
            pass: course.passes.as_ref().map(|active| PassReading::new(&active.passes, seconds_since(active.begun))),
            writing_seconds: course.writing_since.map(seconds_since),
        }
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PassReading {
    /// Describes the current pass, `seconds` after it began.
    pub fn new(passes: &Passes, seconds: f64) -> PassReading {
        PassReading {
            number: passes.number(),
            changed_share: passes.changed_share(),
            is_last: passes.is_last(),
            // A pass that exceeds the estimate for all passes refutes the estimate.
            left_seconds: passes.left_seconds().map(|left| left - seconds).filter(|left| *left > 0.0),
            seconds,
        }
    }
}

impl ProgressReading {
    /// Returns the completed share of the stage, or of the current pass; `None` if the total is unknown or reached.
    pub fn share(&self) -> Option<f64> {
        (self.done < self.total).then(|| self.done as f64 / self.total as f64)
    }

    /// Returns the progress of the step, for a forecast.
    pub fn at_hand(&self) -> StepProgress {
        if let Some(seconds) = self.writing_seconds {
            let left = self.share().filter(|share| *share > 0.0).map(|share| seconds * (1.0 - share) / share);
            return left.map_or(StepProgress::Unknown, StepProgress::Left);
        }
        match (self.pass, self.bound, self.share()) {
            (Some(PassReading { left_seconds: Some(left), .. }), ..) => StepProgress::Left(left),
            // The time of a bound depends on the number of positions that it decides.
            (Some(_), ..) | (_, Some(_), _) | (.., None) => StepProgress::Unknown,
            (None, None, Some(share)) => StepProgress::Share(share),
        }
    }

    /// Estimates the seconds left for a stage that has run for `seconds`.
    pub fn left_seconds(&self, seconds: f64) -> Option<f64> {
        self.at_hand().left_seconds(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_bounds_and_passes_are_read() {
        let (progress, now) = (StageProgress::new(), Duration::from_secs(7));
        progress.begin(10, "rows");
        progress.advance(5);
        assert_eq!(
            progress.read(now),
            ProgressReading { done: 5, total: 10, unit: "rows", ..ProgressReading::default() }
        );
        assert_eq!(progress.read(now).at_hand(), StepProgress::Share(0.5));
        assert_eq!(progress.read(now).left_seconds(3.0), Some(3.0));
        progress.set(10);
        assert_eq!((progress.read(now).share(), progress.read(now).at_hand()), (None, StepProgress::Unknown));
        progress.end_pass(true, true, 5, now);
        assert_eq!(progress.read(now).pass, None);
        progress.begin_bound(3, 9);
        progress.reach(1, 2);
        assert_eq!(
            (progress.read(now).bound, progress.read(now).at_hand()),
            (Some(BoundReading { bound: 3, of: 9 }), StepProgress::Unknown)
        );
        progress.begin_passes(100, now);
        progress.end_pass(true, true, 50, now);
        let pass = progress.read(now).pass.unwrap();
        assert_eq!((pass.number, pass.changed_share, pass.is_last, pass.left_seconds), (2, Some(0.5), false, None));
        assert_eq!(progress.read(now + Duration::from_secs(2)).pass.unwrap().seconds, 2.0);
        progress.begin(0, "");
        assert_eq!(progress.read(now), ProgressReading::default());
    }

    /// The time left is that of writing: the time of the stage before it says nothing.
    #[test]
    fn a_result_is_written_after_the_work() {
        let (progress, now) = (StageProgress::new(), Duration::from_secs(100));
        progress.begin_passes(100, Duration::ZERO);
        progress.begin_writing(40, "positions", now);
        assert_eq!(progress.read(now).at_hand(), StepProgress::Unknown);
        progress.advance(10);
        let reading = progress.read(now + Duration::from_secs(3));
        assert_eq!((reading.pass, reading.share(), reading.writing_seconds), (None, Some(0.25), Some(3.0)));
        assert_eq!(reading.left_seconds(103.0), Some(9.0));
        progress.advance(30);
        assert_eq!(progress.read(now + Duration::from_secs(12)).at_hand(), StepProgress::Unknown);
        progress.begin(7, "rows");
        assert_eq!(progress.read(now).writing_seconds, None);
    }

    #[test]
    fn a_pass_that_takes_too_long_refutes_the_estimate() {
        let mut passes = Passes::new(1000);
        for changed in [1000, 100, 10] {
            passes.end(PassSample { is_full: false, is_next_full: false, changed, seconds: 1.0 });
        }
        let left = PassReading::new(&passes, 0.0).left_seconds.unwrap();
        assert!((PassReading::new(&passes, 0.5).left_seconds.unwrap() - left + 0.5).abs() < 1e-9);
        assert_eq!(PassReading::new(&passes, 1e3).left_seconds, None);
    }
}
