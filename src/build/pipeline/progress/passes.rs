//! Estimates the time left of a stage that repeats passes until one changes nothing.
//!
//! The changes of a pass fall roughly geometrically, so the number of remaining passes follows from the last changes
//! and their ratio. Full passes take equal times; later passes, which recompute only what may have changed, shorten
//! roughly geometrically too. There is no estimate until the changes fall.

/// A completed pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassSample {
    /// Whether it recomputed everything.
    pub is_full: bool,
    /// Whether the next pass recomputes everything.
    pub is_next_full: bool,
    /// The number of changes, in the same unit for all passes.
    pub changed: u64,
    /// Seconds it took.
    pub seconds: f64,
}

/// The completed passes of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Passes {
    /// The largest number of changes of a pass.
    changes_max: u64,
    ended: Vec<PassSample>,
}

/// The largest number of ratios that an estimate uses.
const RATIOS_MAX: usize = 3;

/// Changes that fall more slowly than this do not determine the number of remaining passes.
const CHANGE_RATIO_MAX: f64 = 0.9;

/// The range of the ratio of pass times.
const SECONDS_RATIOS: (f64, f64) = (0.1, 0.9);

/// Time of all later passes as a share of the time of the full passes: 0.08 to 0.25 for 17 to 20 stones.
const REST_SHARE: f64 = 0.2;

/// Passes are full until one pass after the first that changes less than this share.
const FULL_UNTIL: f64 = 1.0 / 30.0;

impl Passes {
    /// Makes an empty list of passes, each of which makes at most `changes_max` changes.
    pub fn new(changes_max: u64) -> Passes {
        Passes { changes_max, ended: Vec::new() }
    }

    /// Adds a completed pass.
    pub fn end(&mut self, pass: PassSample) {
        self.ended.push(pass);
    }

    /// Returns the number of the current pass, from 1.
    pub fn number(&self) -> u64 {
        self.ended.len() as u64 + 1
    }

    /// Returns the share of positions that the last pass changed.
    pub fn changed_share(&self) -> Option<f64> {
        let last = self.ended.last().filter(|_| self.changes_max > 0)?;
        Some(last.changed as f64 / self.changes_max as f64)
    }

    /// Whether the current pass is expected to change nothing, and so to be the last.
    pub fn is_last(&self) -> bool {
        let [.., before, last] = &self.ended[..] else { return false };
        let (before, changed) = (before.changed as f64, last.changed as f64);
        !last.is_next_full && changed * changed < before
    }

    /// Estimates the seconds left when the current pass began.
    pub fn left_seconds(&self) -> Option<f64> {
        let last = self.ended.last()?;
        let so_far: f64 = self.ended.iter().map(|pass| pass.seconds).sum();
        if last.is_full && !last.is_next_full && self.ended.len() > 1 {
            return Some(REST_SHARE * so_far);
        }
        let ratio = self.ratio(self.ended.len(), |pass| pass.changed as f64)?;
        if ratio >= CHANGE_RATIO_MAX {
            return None;
        }
        let passes_until = |changed: f64| (last.changed as f64 / changed).ln() / (1.0 / ratio.max(1e-6)).ln();
        if last.is_next_full {
            let full = passes_until(self.changes_max as f64 * FULL_UNTIL).ceil().max(0.0) + 1.0;
            let full_seconds = full * last.seconds;
            return Some(full_seconds + REST_SHARE * (so_far + full_seconds));
        }
        // Includes the last pass, which changes nothing.
        let passes = passes_until(1.0).floor().max(0.0) + 1.0;
        let same = self.ended.iter().rev().take_while(|pass| !pass.is_full).count();
        // Time falls more slowly than changes: more positions are recomputed than change.
        let seconds = self.ratio(same, |pass| pass.seconds).unwrap_or(0.0).max(ratio.sqrt());
        let seconds = seconds.clamp(SECONDS_RATIOS.0, SECONDS_RATIOS.1);
        Some(last.seconds * seconds * (1.0 - seconds.powf(passes)) / (1.0 - seconds))
    }

    /// Returns the geometric mean of the last ratios of successive passes, among the last `known` passes.
    fn ratio(&self, known: usize, value: impl Fn(&PassSample) -> f64) -> Option<f64> {
        let ratios = known.checked_sub(1)?.min(RATIOS_MAX);
        let last = self.ended.len() - 1;
        let (first, last) = (value(&self.ended[last - ratios]), value(&self.ended[last]));
        (ratios > 0 && first > 0.0).then(|| (last / first).powf(1.0 / ratios as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded passes. The last one, which changed nothing, has only its time.
    struct RecordedPasses {
        changes_max: u64,
        full: usize,
        changed: &'static [u64],
        ended_at: &'static [f64],
    }

    /// Sweep in memory of 17 and 18 stones; sweep on disk of 17 stones, in cells; bounds 1 and 2 of 16 stones by the
    /// two-bit method. Two threads on a loaded machine.
    const RECORDED: [RecordedPasses; 5] = [
        RecordedPasses {
            changes_max: 21_474_180,
            full: 6,
            changed: &[13057735, 8128616, 3271277, 1329901, 535103, 175021, 31874, 5004, 802, 147, 25],
            ended_at: &[0.370, 0.747, 1.124, 1.422, 1.789, 2.097, 2.217, 2.251, 2.254, 2.267, 2.268, 2.269],
        },
        RecordedPasses {
            changes_max: 34_597_290,
            full: 6,
            changed: &[
                20217599, 11495352, 4831862, 2078786, 839899, 314895, 97309, 37869, 20043, 11627, 6668, 3823, 1579,
                179, 10,
            ],
            ended_at: &[
                0.900, 1.802, 2.852, 3.582, 4.304, 5.206, 5.706, 5.831, 5.910, 5.978, 6.034, 6.070, 6.082, 6.083,
                6.096, 6.097,
            ],
        },
        RecordedPasses {
            changes_max: 8_424,
            full: 1,
            changed: &[7134, 8424, 8423, 8423, 8408, 8275, 7308, 4851, 2489, 791, 256, 68, 9, 1],
            ended_at: &[
                1.304, 2.571, 3.468, 4.599, 5.673, 6.927, 8.159, 9.619, 10.641, 11.848, 13.737, 15.235, 16.486, 17.429,
                17.737,
            ],
        },
        RecordedPasses {
            changes_max: 13_037_895,
            full: 0,
            changed: &[409292, 197773, 62799, 12848, 2943, 1347, 411, 246, 57, 3],
            ended_at: &[0.113, 0.187, 0.234, 0.257, 0.269, 0.273, 0.277, 0.2775, 0.285, 0.2852, 0.2853],
        },
        RecordedPasses {
            changes_max: 13_037_895,
            full: 0,
            changed: &[982379, 572284, 96936, 26394, 6244, 1516, 229, 97],
            ended_at: &[0.072, 0.124, 0.160, 0.180, 0.192, 0.199, 0.200, 0.2003, 0.2004],
        },
    ];

    impl RecordedPasses {
        /// Calls `each` after each pass, with the passes so far and the seconds left.
        fn replay(&self, mut each: impl FnMut(&Passes, f64)) {
            let mut passes = Passes::new(self.changes_max);
            let mut begun = 0.0;
            let end = self.ended_at[self.changed.len()];
            for (number, (&changed, &ended_at)) in self.changed.iter().zip(self.ended_at).enumerate() {
                let (is_full, is_next_full) = (number < self.full, number + 1 < self.full);
                passes.end(PassSample { is_full, is_next_full, changed, seconds: ended_at - begun });
                begun = ended_at;
                each(&passes, end - ended_at);
            }
        }
    }

    #[test]
    fn estimates_are_near_what_was_left() {
        for (number, recorded) in RECORDED.iter().enumerate() {
            let total = recorded.ended_at[recorded.changed.len()];
            let (mut estimated, mut all) = (0, 0);
            recorded.replay(|passes, left| {
                // Shortly before the end no estimate is needed.
                if left < total / 20.0 {
                    return;
                }
                all += 1;
                if let Some(estimate) = passes.left_seconds() {
                    estimated += 1;
                    let ratio = estimate / left;
                    assert!((0.4..2.5).contains(&ratio), "{number}: {estimate} s for {left} s, {passes:?}");
                }
            });
            assert!(estimated * 3 >= all, "{number}: {estimated} of {all}");
        }
    }

    #[test]
    fn the_last_pass_is_announced_and_no_other() {
        let mut announced = 0;
        for recorded in &RECORDED {
            recorded.replay(|passes, _| {
                if passes.is_last() {
                    assert_eq!(passes.number() as usize, recorded.ended_at.len(), "{passes:?}");
                    announced += 1;
                }
            });
        }
        assert!(announced >= 3, "{announced}");
    }

    #[test]
    fn there_is_no_estimate_without_evidence() {
        let mut passes = Passes::new(1000);
        assert_eq!((passes.left_seconds(), passes.is_last(), passes.changed_share()), (None, false, None));
        for changed in [500, 700, 690, 680] {
            passes.end(PassSample { is_full: false, is_next_full: false, changed, seconds: 1.0 });
            assert_eq!((passes.left_seconds(), passes.is_last()), (None, false), "{changed}");
        }
        assert_eq!((passes.number(), passes.changed_share()), (5, Some(0.68)));
        // No changes at all, after a snapshot of an almost finished stage.
        for changed in [0, 0, 3, 0] {
            passes.end(PassSample { is_full: true, is_next_full: changed > 0, changed, seconds: 0.0 });
            assert!(passes.left_seconds().is_none_or(f64::is_finite), "{passes:?}");
        }
        assert!(Passes::new(0).changed_share().is_none());
    }
}
