//! Histograms of scores.

use crate::databases::{AnyScores, Database, ScoreSource};
use crate::error::{CheckError, Result};
use game::Score;
use rayon::prelude::*;

/// The largest score: all stones of the game.
const SCORE_MAX: usize = game::STONES_MAX as usize;

/// Scores in one parallel unit of counting; a multiple of a file's block (65,536 positions).
const UNIT_POSITIONS: u64 = 1 << 20;

/// Positions by score, -48 to 48.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    positions: [u64; 2 * SCORE_MAX + 1],
}

/// Shares of all positions, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreShares {
    /// Positive scores.
    pub won: f64,
    /// Scores of 0.
    pub drawn: f64,
    /// Negative scores.
    pub lost: f64,
}

impl Histogram {
    /// The histogram of no positions.
    pub const EMPTY: Histogram = Histogram { positions: [0; 2 * SCORE_MAX + 1] };

    /// Counts the positions of a database in parallel, and checks that no score exceeds its stones.
    pub fn of<L: ScoreSource>(database: &Database<L>) -> Result<Histogram> {
        Histogram::of_any(&database.of_any())
    }

    fn of_any(database: &Database<AnyScores<'_>>) -> Result<Histogram> {
        let positions = database.positions();
        (0..positions.div_ceil(UNIT_POSITIONS))
            .into_par_iter()
            .map_init(Vec::new, |buffer, unit| {
                let first = unit * UNIT_POSITIONS;
                buffer.resize(UNIT_POSITIONS.min(positions - first) as usize, 0);
                database.scores().read(first, buffer)?;
                Histogram::of_unit(database, first, buffer)
            })
            .try_reduce(|| Histogram::EMPTY, |a, b| Ok(a.plus(&b)))
    }

    /// Returns the number of positions with a score.
    pub fn positions(&self, score: Score) -> u64 {
        slot(score).map_or(0, |slot| self.positions[slot])
    }

    /// Adds positions to a score.
    ///
    /// # Panics
    /// If the score is outside of -48 to 48.
    pub fn add(&mut self, score: Score, positions: u64) {
        let slot = slot(score).expect("no score exceeds the stones of the game");
        self.positions[slot] += positions;
    }

    /// Returns the counts from the least score of the game to the largest.
    pub fn by_score(&self) -> [u64; 2 * SCORE_MAX + 1] {
        self.positions
    }

    /// Makes a histogram from the output of [`Histogram::by_score`].
    pub fn of_counts(positions: [u64; 2 * SCORE_MAX + 1]) -> Histogram {
        Histogram { positions }
    }

    /// Returns the number of all positions.
    pub fn total(&self) -> u64 {
        self.positions.iter().sum()
    }

    /// Returns the scores that occur, ascending, with their counts.
    pub fn scores(&self) -> impl Iterator<Item = (Score, u64)> + '_ {
        (-(SCORE_MAX as Score)..=SCORE_MAX as Score).zip(self.positions).filter(|&(_, positions)| positions > 0)
    }

    /// Returns the sum of two histograms.
    pub fn plus(&self, other: &Histogram) -> Histogram {
        Histogram { positions: std::array::from_fn(|slot| self.positions[slot] + other.positions[slot]) }
    }

    /// Returns the mean score; 0 without positions.
    pub fn mean(&self) -> f64 {
        let sum: i64 = self.scores().map(|(score, positions)| i64::from(score) * positions as i64).sum();
        sum as f64 / self.total().max(1) as f64
    }

    /// Returns the shares of positive, zero and negative scores.
    pub fn shares(&self) -> ScoreShares {
        let share = |sign: i8| {
            let positions: u64 =
                self.scores().filter(|(score, _)| score.signum() == sign).map(|(_, positions)| positions).sum();
            positions as f64 / self.total().max(1) as f64
        };
        ScoreShares { won: share(1), drawn: share(0), lost: share(-1) }
    }

    /// Counts scores in parallel.
    ///
    /// # Panics
    /// If a score is outside of -48 to 48.
    pub fn of_scores(scores: &[Score]) -> Histogram {
        let units = scores.par_chunks(UNIT_POSITIONS as usize).map(|unit| {
            let mut histogram = Histogram::EMPTY;
            count_scores(unit).for_each(|(score, positions)| histogram.add(score, positions));
            histogram
        });
        units.reduce(|| Histogram::EMPTY, |a, b| a.plus(&b))
    }

    fn of_unit(database: &Database<AnyScores<'_>>, first: u64, scores: &[Score]) -> Result<Histogram> {
        let stones = database.index().stones();
        let mut histogram = Histogram::EMPTY;
        for (score, positions) in count_scores(scores) {
            if u32::from(score.unsigned_abs()) > stones {
                let at = scores.iter().position(|&found| found == score);
                return Err(CheckError::Range {
                    stones,
                    board: database.board(first + at.unwrap_or(0) as u64),
                    found: score,
                });
            }
            histogram.add(score, positions);
        }
        Ok(histogram)
    }
}

/// Counts the scores of a unit. At most 2^32 scores.
fn count_scores(scores: &[Score]) -> impl Iterator<Item = (Score, u64)> + use<> {
    let mut counts = [0u64; 256];
    // Without an early exit this runs at memory bandwidth.
    let outside = scores.iter().fold(0, |any, &score| any | (score as u8).wrapping_add(PAIRED_MAX));
    let is_paired = outside < 2 * PAIRED_MAX && scores.len() >= PAIRS_MIN;
    let (paired, single) = scores.split_at(if is_paired { scores.len() / 4 * 4 } else { 0 });
    if is_paired {
        count_pairs(paired, &mut counts);
    }
    single.iter().for_each(|&score| counts[usize::from(score as u8)] += 1);
    (0..=u8::MAX).map(move |byte| (byte as Score, counts[usize::from(byte)])).filter(|&(_, positions)| positions > 0)
}

/// Scores of -64 to 63 are counted in pairs, which halves the number of counter updates.
const PAIRED_MAX: u8 = 64;
const PAIRED_BITS: u32 = 7;

/// The least number of scores for which the tables pay off.
const PAIRS_MIN: usize = 1 << 16;

fn count_pairs(scores: &[Score], counts: &mut [u64; 256]) {
    // Alternates between two tables, so that a run of equal scores does not serialize on one counter.
    let mut tables = vec![[0u32; 2]; 1 << (2 * PAIRED_BITS)];
    let mask = (1 << PAIRED_BITS) - 1;
    let pair = |a: Score, b: Score| usize::from(a as u8 & mask) << PAIRED_BITS | usize::from(b as u8 & mask);
    for &[a, b, c, d] in scores.as_chunks::<4>().0 {
        tables[pair(a, b)][0] += 1;
        tables[pair(c, d)][1] += 1;
    }
    // Seven bits back to eight.
    let byte = |bits: usize| bits | (bits & usize::from(PAIRED_MAX)) << 1;
    for (pair, found) in tables.iter().enumerate() {
        let found = u64::from(found[0]) + u64::from(found[1]);
        counts[byte(pair >> PAIRED_BITS)] += found;
        counts[byte(pair & usize::from(mask))] += found;
    }
}

fn slot(score: Score) -> Option<usize> {
    let slot = isize::from(score) + SCORE_MAX as isize;
    usize::try_from(slot).ok().filter(|&slot| slot <= 2 * SCORE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Databases;
    use game::{PositionSet, Rules};

    #[test]
    fn scores_that_occur_are_counted() {
        let mut databases = Databases::new(Rules::AWARI, PositionSet::All);
        let scores: Vec<Score> = (0..12).map(|at| at % 3 - 1).collect();
        databases.insert(1, scores).unwrap();
        let histogram = Histogram::of(databases.get(1).unwrap()).unwrap();
        assert_eq!(histogram.total(), 12);
        assert_eq!(histogram.scores().collect::<Vec<_>>(), [(-1, 4), (0, 4), (1, 4)]);
        assert_eq!((histogram.positions(2), histogram.positions(100)), (0, 0));
        assert_eq!(Histogram::of_counts(histogram.by_score()), histogram);
    }

    #[test]
    fn a_score_in_the_last_of_several_units() {
        let mut databases = Databases::new(Rules::AWARI, PositionSet::All);
        let last = PositionSet::All.positions(12) - 1;
        assert!(last > UNIT_POSITIONS);
        for score in [12, 13] {
            let mut scores = vec![0; last as usize];
            scores.push(score);
            databases.insert(12, scores).unwrap();
            let database = databases.get(12).unwrap();
            match Histogram::of(database) {
                Ok(histogram) => assert!(score == 12 && histogram.scores().eq([(0, last), (12, 1)])),
                Err(CheckError::Range { board, .. }) => assert!(score == 13 && board == database.board(last)),
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn pairs_are_counted_as_single_scores_are() {
        for beyond in [None, Some(-128), Some(64), Some(127)] {
            let mut scores: Vec<Score> =
                (0..PAIRS_MIN as u32 + 7).map(|at| ((at % 1000 * at % 128) as i32 - 64) as Score).collect();
            scores[PAIRS_MIN / 3] = beyond.unwrap_or(63);
            let mut expected = [0; 256];
            scores.iter().for_each(|&score| expected[usize::from(score as u8)] += 1);
            let mut found = [0; 256];
            count_scores(&scores).for_each(|(score, positions)| found[usize::from(score as u8)] = positions);
            assert_eq!(found, expected, "{beyond:?}");
        }
    }

    #[test]
    fn a_score_beyond_the_stones_is_named() {
        let mut databases = Databases::new(Rules::AWARI, PositionSet::All);
        let mut scores: Vec<Score> = vec![0; 12];
        scores[7] = -2;
        databases.insert(1, scores).unwrap();
        let error = Histogram::of(databases.get(1).unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "position 0 1 0 0 0 0 0 0 0 0 0 0 of the 1-stone database scores -2, expected -1 to 1"
        );
    }
}
