//! The verifier: compares every score with those of the children.
//!
//! The verifier is independent of every solver: it uses the plain rules and the index. A position passes if
//! its score is the best of `captured - score(child)` over its legal moves, or minus its stones if it has
//! none. Children of non-capturing moves are in the same database.
//!
//! This proves consistency with verified smaller databases, but the equations have other solutions than the
//! right one. [`crate::certify`] closes that gap. Published counts close it too: in the order in which 0 is
//! least and magnitudes grow outward, the right solution is the least, so the magnitudes of any other
//! solution add up to more.

use crate::databases::{AnyScores, Database, Databases, ScoreSource};
use crate::error::{CheckError, Result};
use crate::extent::Extent;
use crate::histogram::Histogram;
use crate::pairs::pairs_of;
use crate::statistics::CaptureStatistics;
use crate::walk::{DatabasePortion, VisitedPosition, WalkTally, walk_of, walk_portion};
use crate::wrong_score::WrongScore;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// The largest number of wrong positions that an error names.
pub(crate) const MISTAKES_NAMED_MAX: usize = 8;

/// A verified database: its scores follow from those of their children. Only [`verify`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    stones: u32,
    checked: u64,
    histogram: Histogram,
    choice: CaptureStatistics,
}

/// Verifies the `stones`-stone database: the range of every score, and every score of the extent against those of the
/// children.
///
/// Needs the smaller databases that captures lead to, which must have been verified themselves. Does not
/// compare digests.
pub fn verify<L: ScoreSource>(databases: &Databases<L>, stones: u32, extent: Extent) -> Result<Verified> {
    verify_watched(databases, stones, extent, &|_| ControlFlow::Continue(()))
}

/// As [`verify`]; `watch` receives the number of further positions derived, and ends it early with
/// [`CheckError::Stopped`].
pub fn verify_watched<L: ScoreSource>(
    databases: &Databases<L>,
    stones: u32,
    extent: Extent,
    watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<Verified> {
    let histogram = Histogram::of(databases.get(stones)?)?;
    verify_portion(databases, stones, extent, DatabasePortion::WHOLE, watch)?.verified(stones, histogram)
}

/// Verifies the bounds of all positions with `stones` stones, what the mover can force and to what the
/// opponent can hold the mover: either one against the other ones of the children, and that none exceeds the
/// other.
///
/// # Errors
/// As [`verify`]; [`CheckError::Crossed`] where the lower bound exceeds the upper one.
pub fn verify_bounds<L: ScoreSource>(low: &Databases<L>, high: &Databases<L>, stones: u32) -> Result<[Verified; 2]> {
    verify_bounds_watched(low, high, stones, Extent::Full, &|_| ControlFlow::Continue(()))
}

/// As [`verify_bounds`], of the positions of an extent; no position of the database may have crossed bounds.
/// `watch` is that of [`verify_watched`].
pub fn verify_bounds_watched<L: ScoreSource>(
    low: &Databases<L>,
    high: &Databases<L>,
    stones: u32,
    extent: Extent,
    watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<[Verified; 2]> {
    let against = |bounds: &Databases<L>, children: &Databases<L>| {
        let histogram = Histogram::of(bounds.get(stones)?)?;
        tally_of(&bounds.get(stones)?.of_any(), &children.of_any(), extent, watch)?.verified(stones, histogram)
    };
    pairs_of(low, high, stones)?;
    Ok([against(low, high)?, against(high, low)?])
}

/// Verifies a portion of the `stones`-stone database, as [`verify_watched`] does all of it.
///
/// # Errors
/// As [`verify`], except for wrong scores, which are part of the findings.
pub fn verify_portion<L: ScoreSource>(
    databases: &Databases<L>,
    stones: u32,
    extent: Extent,
    portion: DatabasePortion,
    watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<PortionFindings> {
    tally_of_portion(&databases.of_any(), stones, extent, portion, watch).map(PortionFindings)
}

/// Not generic, so that it is compiled here, and not by each crate that verifies.
fn tally_of_portion(
    databases: &Databases<AnyScores<'_>>,
    stones: u32,
    extent: Extent,
    portion: DatabasePortion,
    watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<RuleCheckTally> {
    walk_portion(databases, stones, extent, portion, watch)
}

/// As [`tally_of_portion`].
fn tally_of(
    database: &Database<AnyScores<'_>>,
    children: &Databases<AnyScores<'_>>,
    extent: Extent,
    watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<RuleCheckTally> {
    walk_of(database, children, extent, watch)
}

/// The findings of a portion of a database. Findings add up.
#[derive(Default, Serialize, Deserialize)]
pub struct PortionFindings(pub(crate) RuleCheckTally);

impl PortionFindings {
    /// Adds the findings of another portion.
    pub fn merge(&mut self, other: PortionFindings) {
        self.0.merge(other.0);
    }

    /// Returns the verdict on a database, if these are the findings of all its portions.
    pub fn verified(self, stones: u32, histogram: Histogram) -> Result<Verified> {
        self.0.verified(stones, histogram)
    }
}

impl Verified {
    /// Returns the stones of the database.
    pub fn stones(&self) -> u32 {
        self.stones
    }

    /// Returns the number of re-derived positions.
    pub fn checked(&self) -> u64 {
        self.checked
    }

    /// Whether all positions were re-derived.
    pub fn is_full(&self) -> bool {
        self.checked == self.histogram.total()
    }

    /// Returns the histogram of all positions.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Returns the capture statistics of the re-derived positions.
    pub fn choice(&self) -> CaptureStatistics {
        self.choice
    }
}

/// The comparison of scores with the derived ones.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct RuleCheckTally {
    checked: u64,
    mistakes: u64,
    /// The mistakes at the lowest positions.
    lowest: Vec<(u64, WrongScore)>,
    choice: CaptureStatistics,
}

impl RuleCheckTally {
    /// Returns the verdict.
    pub(crate) fn verified(self, stones: u32, histogram: Histogram) -> Result<Verified> {
        if self.mistakes > 0 {
            let (mistakes, checked, first) = (self.mistakes, self.checked, self.named());
            return Err(CheckError::Wrong { stones, mistakes, checked, first });
        }
        Ok(Verified { stones, checked: self.checked, histogram, choice: self.choice })
    }

    fn named(&self) -> Vec<WrongScore> {
        self.lowest.iter().map(|&(_, mistake)| mistake).collect()
    }

    fn keep_lowest(&mut self) {
        self.lowest.sort_unstable_by_key(|&(position, _)| position);
        self.lowest.truncate(MISTAKES_NAMED_MAX);
    }
}

impl WalkTally for RuleCheckTally {
    fn see(&mut self, seen: &VisitedPosition) {
        self.checked += 1;
        self.choice.see(seen);
        if seen.expected != seen.found {
            self.mistakes += 1;
            let mistake = WrongScore { board: seen.board, expected: seen.expected, found: seen.found };
            self.lowest.push((seen.position, mistake));
            if self.lowest.len() > 2 * MISTAKES_NAMED_MAX {
                self.keep_lowest();
            }
        }
    }

    fn merge(&mut self, other: RuleCheckTally) {
        self.checked += other.checked;
        self.mistakes += other.mistakes;
        self.lowest.extend(other.lowest);
        self.keep_lowest();
        self.choice.merge(other.choice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;
    use crate::solved::solved;
    use game::{Board, PositionSet, Rules, Score};
    use std::collections::BTreeSet;

    const SAMPLE: Extent = Extent::Sample(Sample { one_in: 10, at_least: 100, seed: 1 });

    #[test]
    fn right_databases_pass() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            let databases = solved(7, set);
            for stones in 0..=7 {
                let positions = set.positions(stones);
                for extent in [Extent::Full, SAMPLE] {
                    let verified = verify(&databases, stones, extent).unwrap();
                    assert_eq!(verified.checked(), extent.count(positions));
                    assert_eq!(verified.is_full(), verified.checked() == positions);
                    assert_eq!(verified.histogram().total(), positions);
                }
            }
        }
    }

    #[test]
    fn parts_add_up() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            let mut databases = solved(7, set);
            let right = databases.get(7).unwrap().scores().clone();
            let wrong =
                right.iter().enumerate().map(|(at, &score)| if at % 50 == 7 { -score } else { score }).collect();
            for scores in [right, wrong] {
                databases.insert(7, scores).unwrap();
                let histogram = Histogram::of(databases.get(7).unwrap()).unwrap();
                for extent in [Extent::Full, SAMPLE, TILES] {
                    let expected = verify(&databases, 7, extent).map_err(|error| error.to_string());
                    for parts in [1, 2, 5, 100_000] {
                        let mut all = PortionFindings::default();
                        for number in 0..parts {
                            let watch = |_| ControlFlow::Continue(());
                            let portion = DatabasePortion { number, of: parts };
                            let found = verify_portion(&databases, 7, extent, portion, &watch).unwrap();
                            let sent = serde_json::to_vec(&found).unwrap();
                            all.merge(serde_json::from_slice(&sent).unwrap());
                        }
                        let found = all.verified(7, histogram.clone()).map_err(|error| error.to_string());
                        assert_eq!(found, expected, "{set}, {extent:?}, {parts} parts");
                    }
                }
            }
        }
    }

    const TILES: Extent = Extent::Tiles(Sample { one_in: 10, at_least: 100, seed: 1 });

    #[test]
    fn a_sample_visits_positions_as_a_full_walk_does() {
        let databases = solved(6, PositionSet::REACHABLE);
        let all: VisitedPositions =
            walk_portion(&databases, 6, Extent::Full, DatabasePortion::WHOLE, &|_| ControlFlow::Continue(())).unwrap();
        for sample in [SAMPLE, TILES] {
            let some: VisitedPositions =
                walk_portion(&databases, 6, sample, DatabasePortion::WHOLE, &|_| ControlFlow::Continue(())).unwrap();
            assert!(some.0.len() > 1_000 && some.0.iter().all(|place| all.0.contains(place)));
        }
    }

    #[test]
    fn every_position_is_in_as_many_samples_of_tiles() {
        const SEEDS: u64 = 600;
        let databases = solved(5, PositionSet::All);
        let positions = PositionSet::All.positions(5);
        let mut looked = vec![0; positions as usize];
        for seed in 0..SEEDS {
            let sample = Sample { one_in: 10, at_least: 100, seed };
            let seen: VisitedPositions =
                walk_portion(&databases, 5, Extent::Tiles(sample), DatabasePortion::WHOLE, &|_| {
                    ControlFlow::Continue(())
                })
                .unwrap();
            let of_asked = seen.0.len() as f64 / sample.count(positions) as f64;
            assert!((0.7..1.4).contains(&of_asked), "{of_asked}");
            seen.0.iter().for_each(|place| looked[place.0 as usize] += 1);
        }
        let (least, most) = (looked.iter().min().unwrap(), looked.iter().max().unwrap());
        // The mean is a tenth of the seeds, 60, with a standard deviation of 7.
        assert!((25..60).contains(least) && (60..110).contains(most), "{least} to {most} of {SEEDS}");
    }

    #[test]
    fn a_sample_of_tiles_finds_a_block_of_wrong_scores() {
        let right = solved(7, PositionSet::All);
        let positions = PositionSet::All.positions(7);
        let block = positions / 50;
        for first in (0..50).map(|at| at * block) {
            let mut databases = solved(7, PositionSet::All);
            let mut scores = right.get(7).unwrap().scores().clone();
            scores[first as usize..(first + block) as usize].iter_mut().for_each(|score| *score = -*score);
            databases.insert(7, scores.clone()).unwrap();
            let is_wrong = scores != *right.get(7).unwrap().scores();
            assert_eq!(verify(&databases, 7, TILES).is_err(), is_wrong, "{first}");
        }
    }

    #[derive(Default)]
    struct VisitedPositions(BTreeSet<Visit>);

    type Visit = (u64, Board, Score, Option<Score>, Option<Score>);

    impl WalkTally for VisitedPositions {
        fn see(&mut self, seen: &VisitedPosition) {
            let (capture, quiet) = (seen.derived.capture, seen.derived.quiet);
            let place = (seen.position, seen.board, seen.found, capture, quiet);
            assert!(self.0.insert(place), "seen twice");
        }

        fn merge(&mut self, mut other: VisitedPositions) {
            self.0.append(&mut other.0);
        }
    }

    #[test]
    fn every_single_wrong_score_is_found() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            for position in 0..set.positions(3) {
                for wrong in -3..=3 {
                    let mut databases = solved(3, set);
                    let mut scores = databases.get(3).unwrap().scores().clone();
                    let right = std::mem::replace(&mut scores[position as usize], wrong);
                    databases.insert(3, scores).unwrap();
                    let verdict = verify(&databases, 3, Extent::Full);
                    assert_eq!(verdict.is_ok(), right == wrong, "{set} {position} {wrong}");
                }
            }
        }
    }

    #[test]
    fn errors_name_the_first_wrong_positions() {
        let mut databases = solved(2, PositionSet::All);
        let mut scores = databases.get(2).unwrap().scores().clone();
        scores[0] = 1;
        databases.insert(2, scores).unwrap();
        let error = verify(&databases, 2, Extent::Full).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(
                "of 78 positions checked in the 2-stone database is wrong: \
                 position 0 0 0 0 0 0 2 0 0 0 0 0: expected -2, found 1"
            ),
            "{text}"
        );
    }

    #[test]
    fn missing_and_short_databases_are_errors() {
        let mut databases: Databases<Vec<Score>> = Databases::new(Rules::AWARI, PositionSet::All);
        let missing = verify(&databases, 4, Extent::Full).unwrap_err();
        assert!(matches!(missing, CheckError::Missing { stones: 4 }));
        let short = databases.insert(2, vec![0; 77]).unwrap_err();
        assert_eq!(short.to_string(), "the 2-stone database has 77 scores, expected 78 (positions all)");
    }

    #[test]
    fn a_walk_can_be_stopped() {
        let databases = solved(6, PositionSet::All);
        for extent in [Extent::Full, SAMPLE, TILES] {
            let stopped = verify_watched(&databases, 6, extent, &|_| ControlFlow::Break(()));
            assert!(matches!(stopped, Err(CheckError::Stopped)));
        }
    }
}
